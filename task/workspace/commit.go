// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// An Identity is a name and an e-mail address for a commit.
type Identity struct{ Name, Email string }

// CommitOptions say how a commit is made. The zero value works.
type CommitOptions struct {
	// Fallback is used when neither git's configuration nor the environment names
	// somebody. Without it that is an error of KindIdentity.
	Fallback Identity

	// NoHooks leaves pre-commit, prepare-commit-msg, commit-msg and post-commit out.
	NoHooks bool

	// WholeFiles commits a file as it stands when the run's change cannot be told
	// from what the user had not committed, instead of failing with KindOverlap.
	WholeFiles bool
}

// Committed is the run's commit.
type Committed struct {
	Commit string
	Paths  []string // what it changes, sorted

	// HookStaged names what a pre-commit hook changed in what was about to be
	// committed. It is not in the commit, since nobody verified it; the hook's
	// changes are in the working tree.
	HookStaged []string

	// Hooks is what the hooks wrote, for people.
	Hooks string
}

// Commit makes one commit of the run's own changes on top of the snapshot's HEAD,
// and marks the snapshot as committed in the same transaction. What the user had
// not committed stays so: in a file that holds both, the run's lines alone are
// committed, by a three-way merge, and what was staged stays staged. The user's
// hooks and signing settings apply.
//
// Errors, after each of which nothing is committed and the tree is as it was:
// KindNothing, KindHeadMoved (HEAD is no more where the snapshot was taken),
// KindOverlap with the files, KindIdentity, KindHook with the hook's output in its
// cause, KindGit.
func (s *Snapshot) Commit(ctx context.Context, message string, opts CommitOptions) (Committed, error) {
	const op = "commit"
	if s.committed != "" {
		return Committed{}, &Error{Kind: KindCommitted, Op: op, Err: fmt.Errorf("run %s is committed as %s", s.run, s.committed)}
	}
	if strings.TrimSpace(message) == "" {
		return Committed{}, &Error{Kind: KindInvalid, Op: op, Err: errors.New("the message is empty")}
	}
	if err := s.sameHead(ctx); err != nil {
		return Committed{}, err
	}
	who, err := s.identity(ctx, opts.Fallback)
	if err != nil {
		return Committed{}, err
	}
	changes, err := s.Changed(ctx)
	if err != nil {
		return Committed{}, err
	}
	x, err := s.r.newScratch()
	if err != nil {
		return Committed{}, fail(op, err)
	}
	defer x.close()
	c := &committer{s: s, x: x, opts: opts, who: who}
	done, err := c.commit(ctx, changes, message)
	return done, fail(op, err)
}

// sameHead fails when HEAD is no more what it was at the snapshot (B-59).
func (s *Snapshot) sameHead(ctx context.Context) error {
	head, err := s.r.Head(ctx)
	if err != nil {
		return err
	}
	if head != s.head {
		return &Error{
			Kind: KindHeadMoved, Op: "commit", Err: fmt.Errorf("HEAD moved from %s to %s during the run", s.head, head),
			Advice: "run again on the new HEAD",
		}
	}
	return nil
}

// identity returns the variables that name the author, none when git knows him.
func (s *Snapshot) identity(ctx context.Context, fallback Identity) ([]string, error) {
	switch err := s.r.knowsIdentity(ctx); {
	case err == nil:
		return nil, nil
	case exitCode(err) == -1:
		return nil, fail("commit", err)
	case fallback.Name == "" || fallback.Email == "":
		return nil, &Error{
			Kind: KindIdentity, Op: "commit", Err: err,
			Advice: `git config --global user.name "Your Name" && git config --global user.email you@example.com`,
		}
	}
	return []string{
		"GIT_AUTHOR_NAME=" + fallback.Name, "GIT_AUTHOR_EMAIL=" + fallback.Email,
		"GIT_COMMITTER_NAME=" + fallback.Name, "GIT_COMMITTER_EMAIL=" + fallback.Email,
	}, nil
}

// knowsIdentity fails when git knows no author or no committer by configuration or environment.
func (r *Repo) knowsIdentity(ctx context.Context) error {
	for _, v := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := r.git.line(ctx, "-c", "user.useConfigOnly=true", "var", v); err != nil {
			return err
		}
	}
	return nil
}

// A committer makes one commit. It works on a scratch index and only at the end,
// under git's own lock, on the real one.
type committer struct {
	s     *Snapshot
	x     *scratch
	opts  CommitOptions
	who   []string
	hooks strings.Builder
}

func (c *committer) commit(ctx context.Context, changes []Change, message string) (Committed, error) {
	head := c.s.head.Commit
	if err := c.x.readTree(ctx, head); err != nil {
		return Committed{}, err
	}
	if err := c.stageRun(ctx, changes); err != nil {
		return Committed{}, err
	}
	tree, err := c.x.writeTree(ctx)
	if err != nil {
		return Committed{}, err
	}
	if err := c.differs(ctx, tree); err != nil {
		return Committed{}, err
	}
	if err := c.hook(ctx, "pre-commit"); err != nil {
		return Committed{}, err
	}
	staged, err := c.dropStaged(ctx, tree)
	if err != nil {
		return Committed{}, err
	}
	file, err := c.message(ctx, message)
	if err != nil {
		return Committed{}, err
	}
	commit, err := c.object(ctx, tree, file)
	if err != nil {
		return Committed{}, err
	}
	paths, err := c.s.r.diffTrees(ctx, head, tree)
	if err != nil {
		return Committed{}, err
	}
	if err := c.land(ctx, commit, paths, message); err != nil {
		return Committed{}, err
	}
	if err := c.hook(ctx, "post-commit"); err != nil {
		c.hooks.WriteString("post-commit failed\n") // as git does, too late to refuse
	}
	return Committed{Commit: commit, Paths: sortedKeys(paths), HookStaged: staged, Hooks: c.hooks.String()}, nil
}

// dropStaged takes what a hook staged out of the commit again, and names it: only
// what the run wrote, and what was verified, is committed.
func (c *committer) dropStaged(ctx context.Context, tree string) ([]string, error) {
	now, err := c.x.writeTree(ctx)
	if err != nil || now == tree {
		return nil, err
	}
	paths, err := c.s.r.diffTrees(ctx, tree, now)
	if err != nil {
		return nil, err
	}
	return sortedKeys(paths), c.x.readTree(ctx, tree)
}

func (c *committer) differs(ctx context.Context, tree string) error {
	old, err := c.s.r.git.line(ctx, "rev-parse", c.s.head.Commit+"^{tree}")
	if err == nil && old == tree {
		return &Error{Kind: KindNothing, Op: "commit", Err: errors.New("the run changed nothing")}
	}
	return err
}

// stageRun puts the run's changes on top of HEAD into the scratch index.
func (c *committer) stageRun(ctx context.Context, changes []Change) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(ch Change) bool { return ch.Ignored })
	heads, err := c.x.list(ctx)
	if err != nil {
		return err
	}
	if err := c.x.stage(ctx, changes); err != nil {
		return err
	}
	now, err := c.x.list(ctx)
	if err != nil {
		return err
	}
	dirty, err := c.s.r.diffTrees(ctx, c.s.head.Commit, c.s.clean)
	if err != nil {
		return err
	}
	put := map[string]state{}
	var overlap []string
	for _, ch := range changes {
		p := ch.Path
		user, isDirty := dirty[p]
		if !isDirty && !c.s.untracked[p] {
			continue
		}
		if !isDirty { // untracked before, and not in HEAD
			user = pair{heads[p], state{}}
		}
		if user.to.mode == 0 && c.s.untracked[p] || user.from.mode == 0 && ch.OldMode != 0 {
			overlap = append(overlap, p) // HEAD has nothing that the run's change could be put on
			continue
		}
		if user.to.mode == 0 { // the user had removed it, the run made it anew
			continue
		}
		merged, ok, err := c.merge(ctx, user.to, user.from, now[p])
		if err != nil {
			return err
		}
		if !ok {
			overlap = append(overlap, p)
			continue
		}
		put[p] = merged
	}
	if len(overlap) > 0 && !c.opts.WholeFiles {
		return overlapping(overlap)
	}
	return c.x.put(ctx, put)
}

func overlapping(paths []string) error {
	return &Error{
		Kind: KindOverlap, Op: "commit", Paths: paths, Err: errors.New("the run's change cannot be told from changes that were not committed before"),
		Advice: "commit or stash your own changes to these files first, then run again",
	}
}

// merge applies to ours what changed from base to theirs. It reports false where
// that cannot be done without a decision.
func (c *committer) merge(ctx context.Context, base, ours, theirs state) (state, bool, error) {
	if ours == base || ours == theirs {
		return theirs, true, nil
	}
	if theirs == base {
		return ours, true, nil
	}
	for _, s := range []state{base, ours, theirs} {
		if s.mode != modeFile && s.mode != modeExec {
			return state{}, false, nil
		}
	}
	mode := ours.mode
	if theirs.mode != base.mode {
		mode = theirs.mode
	}
	dir, err := makeTemp("merge")
	if err != nil {
		return state{}, false, err
	}
	defer dir.remove()
	var names []string
	for i, s := range []state{ours, base, theirs} {
		b, err := c.s.r.readBlob(ctx, s.oid)
		if err != nil {
			return state{}, false, err
		}
		names = append(names, dir.in(fmt.Sprint(i)))
		if err := os.WriteFile(names[i], b, 0o600); err != nil {
			return state{}, false, err
		}
	}
	out, err := c.s.r.git.run(ctx, call{args: append([]string{"-c", "merge.conflictStyle=merge", "merge-file", "--stdout", "--quiet"}, names...)})
	if code := exitCode(err); err != nil {
		if code > 0 { // conflicts, at most 127, or 255 for binary files
			return state{}, false, nil
		}
		return state{}, false, err
	}
	oid, err := c.s.r.storeBlob(ctx, out)
	return state{mode: mode, oid: oid}, true, err
}

// hookLimit is how long a hook may take.
const hookLimit = 10 * time.Minute

var errHookLimit = fmt.Errorf("the hook took longer than %v", hookLimit)

// hook runs one of the repository's hooks, as git commit does: in the top folder,
// on the index that is about to be committed, with no editor.
func (c *committer) hook(ctx context.Context, name string, args ...string) error {
	if c.opts.NoHooks {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hookLimit, errHookLimit)
	defer cancel()
	all := append([]string{"hook", "run", "--ignore-missing", name, "--"}, args...)
	cmd := c.s.r.git.command(ctx, call{args: all})
	cmd.Env = append(append(append([]string{}, c.s.r.git.env...), c.x.env()...), append([]string{"GIT_EDITOR=:"}, c.who...)...)
	if name == "post-commit" {
		cmd.Env = append(append([]string{}, c.s.r.git.env...), "GIT_EDITOR=:")
	}
	ownGroup(cmd) // the hook's own children end with it
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	c.hooks.Write(out.Bytes())
	if err == nil {
		return nil
	}
	return &Error{
		Kind: KindHook, Op: "commit", Err: commandError(ctx, []string{"hook " + name}, out.String(), err),
		Advice: "see what the hook wants",
	}
}

// message writes the message where hooks expect it, and returns the file's name.
func (c *committer) message(ctx context.Context, message string) (string, error) {
	file, err := c.s.r.gitPath(ctx, "COMMIT_EDITMSG")
	if err != nil {
		return "", err
	}
	tidy := func(b []byte) ([]byte, error) {
		out, err := c.s.r.git.run(ctx, call{args: []string{"stripspace"}, in: bytes.NewReader(b)})
		if err == nil && len(bytes.TrimSpace(out)) == 0 {
			err = &Error{Kind: KindHook, Op: "commit", Err: errors.New("a hook left the message empty")}
		}
		return out, err
	}
	b, err := tidy([]byte(message))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		return "", err
	}
	if err := c.hook(ctx, "prepare-commit-msg", file, "message"); err != nil {
		return "", err
	}
	if err := c.hook(ctx, "commit-msg", file); err != nil {
		return "", err
	}
	if b, err = os.ReadFile(file); err != nil {
		return "", err
	}
	if b, err = tidy(b); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, b, 0o666)
}

// object makes the commit, signed when the user's settings say so.
func (c *committer) object(ctx context.Context, tree, file string) (string, error) {
	args := []string{"-c", "core.fsync=all", "-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, "-p", c.s.head.Commit, "-F", file}
	v, err := c.s.r.git.line(ctx, "config", "--type=bool", "commit.gpgSign")
	sign := err == nil && v == "true"
	if sign {
		args = append(args, "--gpg-sign")
	}
	out, err := c.s.r.git.run(ctx, call{args: args, env: c.who})
	if err != nil && sign && exitCode(err) > 0 {
		return "", &Error{
			Kind: KindGit, Op: "commit", Err: err,
			Advice: "commit.gpgSign asks for a signature that cannot be made: mend the key or its agent (try git commit -S), or turn it off here: git config commit.gpgSign false",
		}
	}
	return strings.TrimSpace(string(out)), err
}

// subject is the first line of a message, for the reflog.
func subject(message string) string {
	s, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return strings.TrimSpace(s)
}
