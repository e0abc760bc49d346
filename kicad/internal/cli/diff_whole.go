// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/picture"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// leaveOut takes the schematics out of both states where one of them cannot be read whole: each part on a sheet that is
// missing would be told as removed. The notes say why. Without a board there is nothing left to be compared, which is
// the error.
func leaveOut(ctx context.Context, r *kicadcli.Runner, states *[2]picture.State) (notes []string, err error) {
	var why []string
	board := false
	for i, s := range states {
		if s.Project == nil {
			continue
		}
		board = board || s.Project.PCB != ""
		for _, bad := range partly(ctx, r, tree{top: s.Top, proj: s.Project}) {
			why = append(why, fmt.Sprintf("%s: %s", []string{"before", "after"}[i], bad))
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(why) == 0:
		return nil, nil
	}
	if text := unusable(ctx, r); text != "" {
		return nil, cannot(errors.New(text), installKiCad)
	}
	if !board {
		return nil, cannot(fmt.Errorf("the schematics cannot be compared: %s", strings.Join(why, "; ")),
			"mend the sheet; fiducial check says what is wrong", "compare revisions whose sheets can be read: fiducial diff REV..REV")
	}
	for i := range states {
		if states[i].Project != nil {
			proj := *states[i].Project
			proj.Root = ""
			states[i].Project = &proj
		}
	}
	return append(why, "the sheets are not compared, the boards are"), nil
}

// partly says what of a schematic cannot be read, nothing when it can be read whole.
func partly(ctx context.Context, r *kicadcli.Runner, t tree) []string {
	if t.proj.Root == "" {
		return nil
	}
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = root.Close() }()
	if _, err := sch.Load(project.Files(root), t.proj.Root); err != nil {
		return []string{inWords(err.Error())}
	}
	if bad := lookAtSheets(ctx, r, t).bad; len(bad) > 0 {
		return bad
	}
	if why := whyNotLoaded(ctx, r, t, []string{t.proj.Root}); why != "" {
		return []string{why}
	}
	return nil
}
