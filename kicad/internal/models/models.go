// Package models finds the model that a command is to use.
package models

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/llm"
)

// Usage names what can be chosen, for help texts.
const Usage = "builtin (the planner, the default)"

// A Choice is a model that was chosen.
type Choice struct {
	Name     string
	Client   llm.Client
	Settings llm.Settings
}

// Choose finds the model by the name that a flag gave, else by FIDUCIAL_MODEL,
// else the built-in planner.
func Choose(flag string, lookup func(string) string) (Choice, error) {
	name := flag
	if name == "" {
		name = lookup("FIDUCIAL_MODEL")
	}
	if name == "" || name == planner.Name {
		return Choice{Name: planner.Name, Client: planner.Client{}}, nil
	}
	return Choice{}, fmt.Errorf("there is no model %q; choose one of: %s", name, Usage)
}
