// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/tool"
)

type footprintSearchInput struct {
	Words   string `json:"words" jsonschema:"words that must all be in LIBRARY:NAME; a word with * or ? is a pattern for the whole name"`
	Library string `json:"library,omitempty" jsonschema:"only this library"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many; 20 without it, at most 100"`
}

// footprintSearch looks for footprints by name, in the libraries that the tables name (B-112).
func (b *Bench) footprintSearch(ctx context.Context, in footprintSearchInput) (tool.Output, error) {
	ids, total, err := b.libraries().SearchFootprints(ctx, in.Words, in.Library, min(max(in.Limit, 0), 100))
	if err != nil {
		return tool.Output{}, notInLibraries(ctx, err)
	}
	sum := fmt.Sprintf("%d footprints", total)
	if len(ids) < total {
		sum += fmt.Sprintf("; the shortest %d", len(ids))
	}
	return tool.Output{Summary: sum, Content: strings.Join(ids, "\n")}, nil
}

type footprintPadsInput struct {
	Footprint string `json:"footprint" jsonschema:"LIBRARY:NAME, for example Resistor_SMD:R_0603_1608Metric"`
}

// footprintPads lists the pads of a library footprint, and names similar ones when there is none.
func (b *Bench) footprintPads(ctx context.Context, in footprintPadsInput) (tool.Output, error) {
	f, err := b.libraries().Footprint(ctx, in.Footprint)
	if err != nil {
		if ids := b.footprintsLike(ctx, in.Footprint); len(ids) > 0 {
			return tool.Output{}, tool.Errorf(tool.Failed, "%w; similar names: %s", err, strings.Join(ids, ", "))
		}
		return tool.Output{}, notInLibraries(ctx, err)
	}
	return tool.Output{Summary: fmt.Sprintf("%s, pads: %s", f.ID(), strings.Join(f.Pads, ", ")), Content: oneLine(f.Description)}, nil
}

// footprintsLike are footprints of any library whose names hold the name that was given without a library, or with
// the wrong one.
func (b *Bench) footprintsLike(ctx context.Context, id string) []string {
	name := id[strings.LastIndex(id, ":")+1:]
	for _, words := range []string{name, strings.NewReplacer("_", " ", "-", " ").Replace(name)} {
		if strings.TrimSpace(words) == "" {
			continue
		}
		if ids, _, err := b.libraries().SearchFootprints(ctx, words, "", 5); err == nil && len(ids) > 0 {
			return ids
		}
	}
	return nil
}
