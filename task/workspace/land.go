// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// land moves the branch to the commit and lets the user's index follow, in git's
// own order: the new index is complete under its lock before the branch moves, and
// is renamed into place after. The branch moves only from where the snapshot was
// taken, in one transaction with the snapshot's mark.
func (c *committer) land(ctx context.Context, commit string, paths map[string]pair, message string) error {
	index, err := c.s.r.gitPath(ctx, "index")
	if err != nil {
		return err
	}
	lock, err := lockIndex(ctx, index+".lock")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		_ = lock.Close() // a second time after success, which does nothing
		if !keep {
			_ = os.Remove(lock.Name())
		}
	}()
	b, err := c.follow(ctx, paths)
	if err != nil {
		return err
	}
	_, err = lock.Write(b)
	if err = errors.Join(err, lock.Sync(), lock.Close()); err != nil {
		return err
	}
	marked, err := c.mark(ctx, commit, b)
	if err != nil {
		return err
	}
	if err := c.move(ctx, commit, marked, message); err != nil {
		return err
	}
	keep = true
	c.s.commit, c.s.committed = marked, commit
	if err := rename(lock.Name(), index); err != nil {
		keep = false
		return fmt.Errorf("commit %s is made, but the index could not be written, so git status shows it undone; git reset mends that: %w", commit, err)
	}
	return nil
}

// finishIndex ends what a process left that was killed between moving the branch and
// renaming the index: the lock that it held is the complete index, known by its
// content.
func (s *Snapshot) finishIndex(ctx context.Context) error {
	if s.index == "" {
		return nil
	}
	index, err := s.r.gitPath(ctx, "index")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(index + ".lock")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name, err := s.r.hash(int64(len(b)), bytes.NewReader(b), make([]byte, 32<<10))
	if err != nil || name != s.index {
		return err // the lock of somebody else
	}
	return rename(index+".lock", index)
}

// lockIndex waits a little for another git command to end.
func lockIndex(ctx context.Context, name string) (*os.File, error) {
	wait := time.NewTicker(50 * time.Millisecond)
	defer wait.Stop()
	for try := 0; ; try++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil || !errors.Is(err, os.ErrExist) {
			return f, err
		}
		if try == 40 {
			return nil, &Error{
				Kind: KindGit, Op: "commit", Err: err,
				Advice: "another git command is running in this tree; if none is, one was killed: remove the file",
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wait.C:
		}
	}
}

// follow returns the user's index with the committed paths brought along. An entry
// that is as in HEAD takes the committed content; on a staged one the run's change
// is merged, so that what was staged stays staged and nothing else does.
func (c *committer) follow(ctx context.Context, paths map[string]pair) ([]byte, error) {
	x, err := c.s.r.newScratch()
	if err != nil {
		return nil, err
	}
	defer x.close()
	if err := x.copyReal(ctx); err != nil {
		return nil, err
	}
	staged, err := x.list(ctx)
	if err != nil {
		return nil, err
	}
	put := map[string]state{}
	var overlap []string
	for p, change := range paths {
		is := staged[p]
		next, ok, err := c.merge(ctx, change.from, is, change.to)
		if err != nil {
			return nil, err
		}
		if !ok && c.opts.WholeFiles {
			next, ok = change.to, true
		}
		if !ok {
			overlap = append(overlap, p)
			continue
		}
		if next != is {
			put[p] = next
		}
	}
	if len(overlap) > 0 {
		return nil, overlapping(overlap)
	}
	if err := x.put(ctx, put); err != nil {
		return nil, err
	}
	// Exit code 1 says that some file differs from its entry, which is no news.
	if _, err := x.git(ctx, nil, "update-index", "-q", "--refresh"); err != nil && exitCode(err) != 1 {
		return nil, err
	}
	return os.ReadFile(x.file)
}

// mark makes the snapshot's commit anew, with the run's commit in it.
func (c *committer) mark(ctx context.Context, commit string, index []byte) (string, error) {
	name, err := c.s.r.hash(int64(len(index)), bytes.NewReader(index), make([]byte, 32<<10))
	if err != nil {
		return "", err
	}
	out, err := c.s.r.git.run(ctx, call{args: []string{"ls-tree", "-z", "--full-tree", c.s.commit}})
	if err != nil {
		return "", err
	}
	var entries bytes.Buffer
	for _, l := range splitNames(out) {
		if !strings.HasSuffix(l, "\tmeta") {
			entries.WriteString(l + "\x00")
		}
	}
	marked := *c.s
	marked.committed, marked.index = commit, name
	return marked.commitMeta(ctx, entries.Bytes(), c.s.commit)
}

// move is the one moment at which the commit becomes true.
func (c *committer) move(ctx context.Context, commit, marked, message string) error {
	s := c.s
	if err := s.sameHead(ctx); err != nil {
		return err
	}
	ref := s.head.Branch
	if ref == "" {
		ref = "HEAD"
	}
	in := fmt.Sprintf("start\x00update %s\x00%s\x00%s\x00update %s\x00%s\x00%s\x00commit\x00",
		ref, commit, s.head.Commit, refPrefix+s.run, marked, s.commit)
	_, err := s.r.git.run(ctx, call{
		args: []string{"update-ref", "-m", "commit: " + subject(message), "--stdin", "-z"}, in: strings.NewReader(in), env: c.who,
	})
	if err == nil {
		return nil
	}
	if moved := s.sameHead(ctx); moved != nil {
		return moved
	}
	return err
}
