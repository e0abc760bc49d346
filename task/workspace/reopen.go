// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Reopen opens the snapshot of a run that another process began. The error is
// KindNotFound when there is none, and KindDamaged when it cannot be understood.
func (r *Repo) Reopen(ctx context.Context, run string) (*Snapshot, error) {
	const op = "reopen"
	if err := checkRun(op, run); err != nil {
		return nil, err
	}
	commit, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", refPrefix+run)
	if err != nil {
		if exitCode(err) == 1 {
			return nil, &Error{Kind: KindNotFound, Op: op, Err: fmt.Errorf("no snapshot of run %s", run), Advice: "the run ended well, or belongs to another repository"}
		}
		return nil, fail(op, err)
	}
	m, err := r.readMeta(ctx, commit)
	if err != nil {
		return nil, err
	}
	if m.Tree != r.treeName() {
		return nil, &Error{
			Kind: KindInvalid, Op: op, Err: fmt.Errorf("run %s belongs to another working tree of this repository: %s", run, m.Tree),
			Advice: "see git worktree list, and go there",
		}
	}
	s := &Snapshot{
		r: r, run: run, commit: commit, at: m.At, committed: m.Committed, index: m.Index,
		head: Head{Commit: m.Head, Branch: m.Branch}, clean: commit + ":clean",
	}
	if err := s.readLists(ctx); err != nil {
		return nil, damaged(run, err)
	}
	return s, nil
}

func damaged(run string, err error) error {
	return &Error{Kind: KindDamaged, Op: "reopen", Err: fmt.Errorf("snapshot of run %s: %w", run, err), Advice: "git fsck shows what is missing"}
}

func (r *Repo) readMeta(ctx context.Context, commit string) (meta, error) {
	var m meta
	b, err := r.readBlob(ctx, commit+":meta")
	if err != nil {
		return m, fail("reopen", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, damaged(commit, err)
	}
	if m.Version != metaVersion {
		return m, &Error{
			Kind: KindDamaged, Op: "reopen", Err: fmt.Errorf("a snapshot of version %d; this program knows %d", m.Version, metaVersion),
			Advice: "use the newer fiducial that made it",
		}
	}
	return m, nil
}

func (s *Snapshot) readLists(ctx context.Context) error {
	var err error
	if s.files, err = s.r.listTree(ctx, s.commit+":raw"); err != nil {
		return err
	}
	lists := map[string][]string{}
	for _, name := range []string{"dirs", "ignored", "links", "perms", "untracked"} {
		b, err := s.r.readBlob(ctx, s.commit+":"+name)
		if err != nil {
			return err
		}
		lists[name] = splitNames(b)
	}
	s.dirs = lists["dirs"]
	s.ignored, s.links, s.untracked = newNameSet(lists["ignored"]), newNameSet(lists["links"]), newNameSet(lists["untracked"])
	s.perms = map[string]fs.FileMode{}
	for _, l := range lists["perms"] {
		perm, p, ok := strings.Cut(l, " ")
		n, err := strconv.ParseUint(perm, 8, 9)
		if !ok || err != nil {
			return errors.Join(fmt.Errorf("mode of %q", l), err)
		}
		s.perms[p] = fs.FileMode(n)
		if f := s.files[p]; f.mode == modeLink {
			f.plain = true
			s.files[p] = f
		}
	}
	return nil
}

// A Leftover is a run whose snapshot still exists: it was killed, or it is running.
type Leftover struct {
	Run       string
	At        time.Time
	Head      Head
	Committed string // the run's commit, when it got that far
	Elsewhere string // the other working tree it belongs to, or empty
}

// Leftovers lists the runs of this repository that have not ended well, oldest
// first. Whether one is still running is told by the lock.
func (r *Repo) Leftovers(ctx context.Context) ([]Leftover, error) {
	const op = "list runs"
	out, err := r.git.run(ctx, call{args: []string{"for-each-ref", "--sort=refname", "--format=%(objectname) %(refname)", refPrefix}})
	if err != nil {
		return nil, fail(op, err)
	}
	var all []Leftover
	for l := range strings.Lines(string(out)) {
		commit, ref, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		m, err := r.readMeta(ctx, commit)
		if err != nil {
			return all, err
		}
		lo := Leftover{Run: strings.TrimPrefix(ref, refPrefix), At: m.At, Head: Head{m.Head, m.Branch}, Committed: m.Committed}
		if m.Tree != r.treeName() {
			lo.Elsewhere = m.Tree
		}
		all = append(all, lo)
	}
	return all, nil
}
