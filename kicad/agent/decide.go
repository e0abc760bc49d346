// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/task"
)

// day is the time that goes into documents.
func (b *Bench) day() time.Time {
	if b.now != nil {
		return b.now()
	}
	return time.Now()
}

// obligeDecided opens the log of decisions for a constraint that changed: what a board must hold is not changed without
// saying why, where the next one reads it (B-72). A new constraint says it by its source.
func (b *Bench) obligeDecided(before papers, c constraint.Constraint) (told string) {
	was, found := before.registry.Get(c.Key)
	if !found || was.Text == c.Text && reflect.DeepEqual(was.Limits, c.Limits) {
		return ""
	}
	b.oblige(task.Obligation{Kind: obligeDecision, Detail: c.Key, Opener: toolRecord})
	return fmt.Sprintf("\n%s said before: %s. Record why it changed with %s, with %s in what or affects.", c.Key, oneLine(was.Text), toolDecide, c.Key)
}

// decided clears the obligations that a decision names, and tells which are left.
func (b *Bench) decided(in decisionInput) (told string) {
	text := strings.Join(append([]string{in.What, in.Why}, in.Affects...), "\n")
	var left []string
	for _, o := range b.session.Rules.Open() {
		switch {
		case o.Kind != obligeDecision:
		case names(text, o.Detail):
			b.session.Rules.Meet(o.Kind, o.Detail)
		default:
			left = append(left, o.Detail)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(". Still to be recorded, each by its name: why %s changed", strings.Join(left, ", "))
}

// names reports whether a text has a key as a word of its own.
func names(text, key string) bool {
	re := regexp.MustCompile(`(^|[^\p{L}\p{N}_.-])` + regexp.QuoteMeta(key) + `($|[^\p{L}\p{N}_.-]|\.($|\s))`)
	return re.MatchString(text)
}

// resolvedFile keeps what a run has looked at again: the process that takes the run up must not open it once more.
func (b *Bench) resolvedFile() string {
	return filepath.Join(".fiducial", "runs", b.session.Run, "resolved.json")
}

// resolved is what the run has looked at again so far.
func (b *Bench) resolved() (done []constraint.Revisit, err error) {
	data, err := b.content(filepath.ToSlash(b.resolvedFile()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &done)
	}
	if err != nil {
		return nil, fmt.Errorf("what the run has looked at again cannot be read: %w", err)
	}
	return done, nil
}

// keepResolved writes it down before anybody is told: a kill behind it leaves the obligation open in the journal at
// the worst, never resolved without having been said.
func (b *Bench) keepResolved(entries []constraint.Resolution) error {
	done, err := b.resolved()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if v := e.Revisit(); !slices.Contains(done, v) {
			done = append(done, v)
		}
	}
	data, err := json.Marshal(done)
	if err != nil {
		return err
	}
	if err := b.root.MkdirAll(filepath.Dir(b.resolvedFile()), 0o700); err != nil {
		return err
	}
	return b.writeWhole(b.resolvedFile(), data, 0o600)
}

// forgetResolved is for a constraint that is recorded anew: what it affects is to be looked at once more.
func (b *Bench) forgetResolved(opened []constraint.Revisit) error {
	done, err := b.resolved()
	if err != nil || !slices.ContainsFunc(done, func(v constraint.Revisit) bool { return slices.Contains(opened, v) }) {
		return err
	}
	done = slices.DeleteFunc(done, func(v constraint.Revisit) bool { return slices.Contains(opened, v) })
	data, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return b.writeWhole(b.resolvedFile(), data, 0o600)
}

// due is what a run that is taken up has still to look at: what it opened at its start, and what the constraints that
// it recorded affect, without what it has looked at (B-79, B-81).
func (b *Bench) due(opened []constraint.Revisit, now papers) ([]constraint.Revisit, error) {
	done, err := b.resolved()
	if err != nil {
		return nil, err
	}
	list := slices.Clone(opened)
	if now.registry != nil {
		for _, c := range now.registry.Constraints {
			was, found := b.base.papers.registry.Get(c.Key)
			if was.Deferred = c.Deferred; found && reflect.DeepEqual(was, c) {
				continue
			}
			for _, item := range c.Affects {
				if v := (constraint.Revisit{Key: c.Key, Item: item}); !slices.Contains(c.Deferred, item) && !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(v constraint.Revisit) bool { return slices.Contains(done, v) }), nil
}
