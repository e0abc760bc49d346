// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/base64"
	"encoding/json"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

func dataURL(img llm.Image) string {
	return "data:" + img.Media + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}

func lines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// writeFunction writes what both formats say of a tool, and returns its schema.
func writeFunction(j *wire.JSON, t llm.Tool, names *wire.Names) json.RawMessage {
	schema := schemaOf(t.Schema)
	j.Field("name", names.Wire(t.Name))
	if t.Description != "" {
		j.Field("description", t.Description)
	}
	j.Key("parameters")
	j.Raw(schema)
	return schema
}
