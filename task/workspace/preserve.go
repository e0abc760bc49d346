// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Preserved says where the changes of a failed run are kept.
type Preserved struct {
	Stash   string // the stash's commit; empty when there was nothing to keep
	Message string // as git stash list shows it
	Files   []string

	// Renamed names files that were untracked before the run and that it changed.
	// The run's version is in the stash under another name, because git stash
	// apply refuses to write over the user's own, which Restore brings back.
	Renamed map[string]string
}

// Preserve keeps everything that the run changed, new files too, as a stash entry
// with the message "fiducial <label> <run>"; the label is "failed run" when empty.
// Neither the working tree nor the index is touched (B-54). The entry holds the
// run's own changes only: its base is the tree as the run found it. After Restore,
// git stash apply brings the run's work back; git itself refuses that for a file
// that holds uncommitted changes of the user's at that time. A second call for the
// same changes makes no second entry.
func (s *Snapshot) Preserve(ctx context.Context, label string) (Preserved, error) {
	const op = "preserve"
	t, err := s.r.openTree()
	if err != nil {
		return Preserved{}, fail(op, err)
	}
	defer t.close()
	changes, _, err := s.changed(ctx, t)
	if err != nil {
		return Preserved{}, fail(op, err)
	}
	if len(changes) == 0 {
		return Preserved{}, nil
	}
	p := Preserved{Message: "fiducial " + cmp.Or(label, "failed run") + " " + s.run}
	p.Stash, err = s.stash(ctx, t, changes, &p)
	if err != nil {
		return Preserved{}, fail(op, err)
	}
	for _, c := range changes {
		p.Files = append(p.Files, c.Path)
	}
	return p, fail(op, s.storeStash(ctx, p))
}

// stash makes the commits that git stash itself makes: the base, the index (here
// the same as the base), the untracked files, and on top the working tree.
func (s *Snapshot) stash(ctx context.Context, t *tree, changes []Change, p *Preserved) (string, error) {
	base, err := s.base(ctx)
	if err != nil {
		return "", err
	}
	inClean, err := s.r.listTree(ctx, s.clean)
	if err != nil {
		return "", err
	}
	var tracked, fresh []Change
	for _, c := range changes {
		_, known := inClean[c.Path]
		switch {
		case known:
			tracked = append(tracked, c)
		case c.Kind == Added:
			fresh = append(fresh, c)
		case c.Kind == Modified:
			if p.Renamed == nil {
				p.Renamed = map[string]string{}
			}
			p.Renamed[c.Path] = c.Path + "." + s.run
		}
	}
	work, err := s.tree(ctx, s.clean, tracked, nil)
	if err != nil {
		return "", err
	}
	extra := map[string]state{}
	for from, to := range p.Renamed {
		c, _, ok, err := t.at(from, 0)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		b, err := t.read(from, c)
		if err != nil {
			return "", err
		}
		oid, err := s.r.storeBlob(ctx, b)
		if err != nil {
			return "", err
		}
		extra[to] = state{mode: c.mode, oid: oid}
	}
	others, err := s.tree(ctx, "", fresh, extra)
	if err != nil {
		return "", err
	}
	baseTree, err := s.r.git.line(ctx, "rev-parse", base+"^{tree}")
	if err != nil {
		return "", err
	}
	index, err := s.r.commitTree(ctx, baseTree, "index of run "+s.run, s.at, base)
	if err != nil {
		return "", err
	}
	parents := []string{base, index}
	if len(fresh)+len(extra) > 0 {
		u, err := s.r.commitTree(ctx, others, "untracked files of run "+s.run, s.at)
		if err != nil {
			return "", err
		}
		parents = append(parents, u)
	}
	return s.r.commitTree(ctx, work, p.Message, s.at, parents...)
}

// base is HEAD, or on top of it a commit of what the user had not committed.
func (s *Snapshot) base(ctx context.Context) (string, error) {
	clean, err := s.r.git.line(ctx, "rev-parse", s.clean)
	if err != nil {
		return "", err
	}
	head, err := s.r.git.line(ctx, "rev-parse", s.head.Commit+"^{tree}")
	if err != nil || clean == head {
		return s.head.Commit, err
	}
	return s.r.commitTree(ctx, clean, "uncommitted changes from before run "+s.run, s.at, s.head.Commit)
}

// tree is a tree of ours: from, with what changed as it stands in the working tree
// (through git's filters, as git add takes them) and some given ones.
func (s *Snapshot) tree(ctx context.Context, from string, changes []Change, more map[string]state) (string, error) {
	x, err := s.r.newScratch()
	if err != nil {
		return "", err
	}
	defer x.close()
	if from != "" {
		if err := x.readTree(ctx, from); err != nil {
			return "", err
		}
	}
	if err := x.stage(ctx, changes); err != nil {
		return "", err
	}
	if err := x.put(ctx, more); err != nil {
		return "", err
	}
	return x.writeTree(ctx)
}

func (s *Snapshot) storeStash(ctx context.Context, p Preserved) error {
	out, err := s.r.git.run(ctx, call{args: []string{"stash", "list", "--format=%H"}})
	if err != nil {
		return err
	}
	for l := range strings.Lines(string(out)) {
		if strings.TrimSpace(l) == p.Stash {
			return nil
		}
	}
	_, err = s.r.git.run(ctx, call{args: []string{"stash", "store", "--message", p.Message, p.Stash}, env: ourName(s.at)})
	if err != nil {
		return fmt.Errorf("the changes are in commit %s: %w", p.Stash, err)
	}
	return nil
}
