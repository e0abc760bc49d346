// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/library"
	"github.com/fiducial-dev/fiducial/tool"
)

type symbolSearchInput struct {
	Words   string `json:"words,omitempty" jsonschema:"words that must all be found in name, keywords, description or footprint filters; a word with * or ? is a pattern for the whole name"`
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression in Go syntax, in any case"`
	Library string `json:"library,omitempty" jsonschema:"only this library; alone it lists all of it"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many matches; 20 without it, at most 100"`
}

// symbolSearch searches the libraries that the tables name, and never guesses
// (B-112).
func (b *Bench) symbolSearch(ctx context.Context, in symbolSearchInput) (tool.Output, error) {
	q := library.Query{Words: in.Words, Pattern: in.Pattern, Library: in.Library, Limit: min(max(in.Limit, 0), 100)}
	res, err := b.libraries().Search(ctx, q)
	if err != nil {
		return tool.Output{}, notInLibraries(ctx, err)
	}
	sum := fmt.Sprintf("%d symbols in %d libraries", res.Total, res.Libraries)
	if n := len(res.Matches); n < res.Total {
		sum += fmt.Sprintf("; the best %d", n)
	}
	var lines []string
	for _, s := range res.Matches {
		line := s.ID() + " | " + oneLine(s.Description)
		if s.Footprint != "" {
			line += " | footprint " + s.Footprint
		}
		lines = append(lines, line)
	}
	for _, p := range res.Problems {
		lines = append(lines, "not searched: "+p)
	}
	return tool.Output{Summary: sum, Content: strings.Join(lines, "\n")}, nil
}

type symbolPinsInput struct {
	Symbol string `json:"symbol" jsonschema:"LIBRARY:NAME, for example Device:R"`
}

// symbolPins lists the pins of a library symbol.
func (b *Bench) symbolPins(ctx context.Context, in symbolPinsInput) (tool.Output, error) {
	s, pins, err := b.libraries().Pins(ctx, in.Symbol)
	if err != nil {
		return tool.Output{}, notInLibraries(ctx, err)
	}
	var lines []string
	for _, p := range pins {
		line := fmt.Sprintf("%s | %s | %s", p.Number, p.Name, p.Type)
		if p.Unit > 0 {
			line += fmt.Sprintf(" | unit %d", p.Unit)
		}
		if p.Hidden {
			line += " | hidden"
		}
		if len(p.Alternates) > 0 {
			line += " | or " + strings.Join(p.Alternates, ", ")
		}
		lines = append(lines, line)
	}
	return tool.Output{Summary: fmt.Sprintf("%s: %d pins. %s", s.ID(), len(pins), oneLine(s.Description)), Content: strings.Join(lines, "\n")}, nil
}

// notInLibraries is a failure of the libraries as the model reads it.
func notInLibraries(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return tool.Errorf(tool.Failed, "%w", err)
}
