// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/task"
)

// A configuration that lacks something is refused by the field's name, before anything
// is written or locked.
func TestConfig_Required(t *testing.T) {
	for field, drop := range map[string]func(*task.Config){
		"Client":  func(c *task.Config) { c.Client = nil },
		"Repo":    func(c *task.Config) { c.Repo = nil },
		"Run":     func(c *task.Config) { c.Run = "" },
		"Request": func(c *task.Config) { c.Request = "" },
		"Domain":  func(c *task.Config) { c.Domain = nil },
	} {
		for name, begin := range map[string]func(context.Context, task.Config) (*task.Result, error){"Run": task.Run, "Resume": task.Resume} {
			if field == "Request" && name == "Resume" { // it may have been lost
				continue
			}
			r := newRig(t)
			cfg := r.cfg
			cfg.Journal = journal.NewMemory()
			drop(&cfg)
			res, err := begin(t.Context(), cfg)
			if res != nil || err == nil || !strings.Contains(err.Error(), "Config."+field) {
				t.Errorf("%s without %s: %v, %v", name, field, res, err)
			}
			if refs := r.git("for-each-ref", "refs/fiducial"); refs != "" || len(r.events) > 0 {
				t.Errorf("%s without %s left %q and told %v", name, field, refs, r.events)
			}
		}
	}
}
