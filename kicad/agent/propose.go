// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/fiducial-dev/fiducial/tool"
)

// lockedTools cannot be used before a proposal has validated (B-82).
var lockedTools = []string{toolEdit, toolWrite, toolRenameNet, toolRenameRef, toolSetField, toolFixDocs, toolRecord, toolResolve, toolDecide}

const unlockHint = "Editing is locked until a change is proposed and validated: call " + toolPropose +
	" (why, what changes, tasks, files), then " + toolValidate + ". Both may stand in one reply with the edits behind them."

// proposal is what propose_change wrote.
type proposal struct {
	Why   string   `json:"why" jsonschema:"why the change is wanted"`
	What  string   `json:"what" jsonschema:"what changes, in a few sentences"`
	Tasks []string `json:"tasks" jsonschema:"the steps, in order"`
	Files []string `json:"files" jsonschema:"paths that will change, relative to the repository"`
}

// changeFile is where the proposal of a run is kept: with the run, outside of
// what is committed.
func (b *Bench) changeFile() string {
	return filepath.Join(".fiducial", "runs", b.session.Run, "proposal.json")
}

func (b *Bench) propose(_ context.Context, in proposal) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return "", err
	}
	name := b.changeFile()
	if err := b.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", tool.Errorf(tool.Failed, "the proposal could not be stored: %w", err)
	}
	if err := b.writeWhole(name, append(data, '\n'), 0o600); err != nil {
		return "", tool.Errorf(tool.Failed, "the proposal could not be stored: %w", err)
	}
	b.proposal = &in
	return "The proposal is stored. Call " + toolValidate + " to unlock editing.", nil
}

// validate holds the proposal against the rules: it must say why, what and how,
// and name files that a run may change (B-92, B-93).
func (b *Bench) validate(context.Context, struct{}) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proposal == nil {
		if b.proposal = b.storedProposal(); b.proposal == nil {
			return "", tool.Errorf(tool.Failed, "there is no proposal yet; call %s first", toolPropose)
		}
	}
	if problems := b.problems(*b.proposal); len(problems) > 0 {
		return "", tool.Errorf(tool.Failed, "The proposal does not validate, and editing stays locked:\n- %s\nPropose again.", strings.Join(problems, "\n- "))
	}
	if !b.session.Rules.Unlocked() {
		b.session.Rules.Unlock()
		b.session.Event("edit-tools-unlocked", map[string]any{"proposal": b.proposal})
	}
	return "The proposal is valid. Editing is unlocked.", nil
}

func (b *Bench) storedProposal() *proposal {
	data, err := b.content(filepath.ToSlash(b.changeFile()))
	if err != nil {
		return nil
	}
	var p proposal
	if json.Unmarshal(data, &p) != nil {
		return nil
	}
	return &p
}

func (b *Bench) problems(p proposal) []string {
	var problems []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	need(strings.TrimSpace(p.Why) != "", "why is empty")
	need(strings.TrimSpace(p.What) != "", "what is empty")
	need(len(p.Tasks) > 0, "tasks is empty")
	for i, t := range p.Tasks {
		need(strings.TrimSpace(t) != "", "task %d is empty", i+1)
	}
	need(len(p.Files) > 0, "files is empty")
	for _, f := range p.Files {
		name, err := clean(f)
		if err == nil {
			err = b.allowed(name)
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if _, err := b.root.Stat(path.Dir(name)); err != nil && kindOf(name) != markdown {
			problems = append(problems, pathError(path.Dir(name), err).Error())
		}
	}
	return problems
}
