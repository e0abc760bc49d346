// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"strings"

	"github.com/fiducial-dev/fiducial/tool"
)

// FinishName is the tool through which alone a run ends.
const FinishName = "finish"

type finishInput struct {
	Outcome string `json:"outcome" jsonschema:"done when the work is complete and verified; refuse when the request must not or cannot be carried out"`
	Summary string `json:"summary" jsonschema:"for done: what was changed and how it was verified. For refuse: why, with the figures that decide it"`
}

// FinishTool is the tool that ends the run (B-44 to B-47). Done is refused with
// the reasons while a gate is closed or an obligation is open; refuse needs
// neither.
func (r *Rules) FinishTool() tool.Tool {
	return tool.Must(tool.New(FinishName,
		"Ends the run. Outcome done is accepted only when every check that the edits call for has passed since the last edit. "+
			"Outcome refuse puts the working tree back as it was.",
		r.finish, tool.Exclusive()))
}

func (r *Rules) finish(ctx context.Context, in finishInput) (string, error) {
	in.Summary = strings.TrimSpace(in.Summary)
	switch {
	case in.Outcome != "done" && in.Outcome != "refuse":
		return "", tool.Errorf(tool.InvalidArgument, "outcome is %q; it must be done or refuse", in.Outcome)
	case in.Summary == "":
		return "", tool.Errorf(tool.InvalidArgument, "summary is empty; say what was done, or why it is refused")
	}
	refused := in.Outcome == "refuse"
	if !refused {
		if reasons := r.tryFinish(ctx); len(reasons) > 0 {
			return "", tool.Errorf(tool.Failed, "The run cannot finish as done yet:\n%s", list(reasons))
		}
	}
	r.mu.Lock()
	r.s.Finish = &Finish{Refused: refused, Summary: in.Summary}
	r.mu.Unlock()
	if refused {
		return "Accepted: the run ends as refused and the working tree is put back.", nil
	}
	return "Accepted: the run ends here and its changes are committed.", nil
}
