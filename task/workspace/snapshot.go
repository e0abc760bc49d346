// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Snapshot is the working tree as it stood when a run began. Its methods are for
// one goroutine at a time.
type Snapshot struct {
	r      *Repo
	run    string
	commit string // what the ref points to

	head      Head
	at        time.Time
	committed string // the run's own commit, once it is made
	index     string // the name of the index's content that belongs to it

	files     map[string]state       // bytes as they were, tracked and untracked
	perms     map[string]fs.FileMode // where they are neither 0644 nor 0755, and of links that stand as files
	dirs      []string               // folders in which there was no file of ours, each before its children
	links     nameSet                // submodules
	ignored   nameSet
	untracked nameSet
	clean     string // a tree: tracked content as git would add it

	own nameSet // what the run wrote, see Narrow; nil: whatever differs
}

// meta is what a snapshot's commit says of itself. The lists are blobs of their
// own beside it: names need not be UTF-8.
type meta struct {
	Version   int       `json:"version"`
	Run       string    `json:"run"`
	At        time.Time `json:"at"`
	Head      string    `json:"head"`
	Branch    string    `json:"branch,omitempty"`
	Tree      string    `json:"tree"` // which working tree, as the folder below git's own
	Committed string    `json:"committed,omitempty"`
	Index     string    `json:"index,omitempty"`
}

const metaVersion = 1

// Run is the run's id.
func (s *Snapshot) Run() string { return s.run }

// Head is where the repository stood.
func (s *Snapshot) Head() Head { return s.head }

// At is when the snapshot was taken, as told to [Repo.Snapshot].
func (s *Snapshot) At() time.Time { return s.at }

// Committed is the commit that the run made, or empty.
func (s *Snapshot) Committed() string { return s.committed }

// Snapshot stores the working tree under refs/fiducial/<run>: HEAD, tracked
// content as it stands, changed or not, and every untracked file that is not
// ignored. Neither the tree nor the index is touched. A file that cannot be read
// is a refusal (KindUnreadable); one that vanishes meanwhile is skipped (B-4). now
// is only shown to people.
func (r *Repo) Snapshot(ctx context.Context, run string, now time.Time) (*Snapshot, error) {
	const op = "snapshot"
	if err := checkRun(op, run); err != nil {
		return nil, err
	}
	if _, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", refPrefix+run); err == nil {
		return nil, &Error{Kind: KindExists, Op: op, Err: fmt.Errorf("run %s has a snapshot already", run), Advice: "choose another run id"}
	}
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{r: r, run: run, head: head, at: now.UTC()}
	t, err := r.openTree()
	if err != nil {
		return nil, fail(op, err)
	}
	defer t.close()
	if err := r.ensureOwn(ctx, t.root); err != nil {
		return nil, fail(op, err)
	}
	if err := s.capture(ctx, t); err != nil {
		return nil, fail(op, err)
	}
	if err := s.store(ctx); err != nil {
		return nil, fail(op, err)
	}
	return s, nil
}

// capture reads the tree and stores what git does not hold yet.
func (s *Snapshot) capture(ctx context.Context, t *tree) error {
	st, err := s.r.status(ctx)
	if err != nil {
		return err
	}
	if len(st.unmerged) > 0 {
		return &Error{Kind: KindInvalid, Op: "snapshot", Paths: st.unmerged, Err: errors.New("unresolved conflicts"), Advice: "resolve them first"}
	}
	index, err := s.r.newScratch()
	if err != nil {
		return err
	}
	defer index.close()
	if err := index.copyReal(ctx); err != nil {
		return err
	}
	tracked, err := index.list(ctx)
	if err != nil {
		return err
	}
	s.ignored, s.untracked, s.links = newNameSet(st.ignored), newNameSet(st.untracked), nameSet{}
	if err := s.look(ctx, t, tracked); err != nil {
		return err
	}
	if err := s.storeContent(ctx, t, tracked); err != nil {
		return err
	}
	if err := s.lookDirs(t); err != nil {
		return err
	}
	if len(st.changed) == 0 {
		s.clean, err = s.r.git.line(ctx, "rev-parse", s.head.Commit+"^{tree}")
		return err
	}
	if _, err := index.git(ctx, nil, "add", "--update"); err != nil {
		return err
	}
	s.clean, err = index.writeTree(ctx)
	return err
}

// look names the content of every file that counts.
func (s *Snapshot) look(ctx context.Context, t *tree, tracked map[string]state) error {
	s.files, s.perms = map[string]state{}, map[string]fs.FileMode{}
	names := map[string]uint32{}
	for p, e := range tracked {
		switch {
		case e.mode == 0o160000:
			s.links[p+"/"] = true
		case !isOwn(p):
			names[p] = e.mode
		}
	}
	for p := range s.untracked {
		names[p] = 0
	}
	for _, p := range sortedKeys(names) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		now, mode, ok, err := t.at(p, names[p])
		if err != nil {
			return unreadable(p, err)
		}
		if !ok {
			continue
		}
		s.files[p] = now
		if perm := mode.Perm(); now.plain || now.mode != modeLink && perm != 0o644 && perm != 0o755 {
			s.perms[p] = perm
		}
	}
	return nil
}

func unreadable(p string, err error) error {
	return &Error{
		Kind: KindUnreadable, Op: "snapshot", Paths: []string{p}, Err: err,
		Advice: "make it readable, ignore it in .gitignore, or move it out of the repository",
	}
}

// lookDirs remembers the folders that git cannot: those without a file of ours.
func (s *Snapshot) lookDirs(t *tree) error {
	parents := parentsOf(s.files)
	s.dirs = nil
	return t.walk(s.skip(), func(p string, dir bool) {
		if dir && !parents[p] {
			s.dirs = append(s.dirs, p)
		}
	})
}

// skip is what no walk goes into.
func (s *Snapshot) skip() nameSet {
	skip := maps.Clone(s.ignored)
	maps.Copy(skip, s.links)
	return skip
}

func parentsOf(files map[string]state) map[string]bool {
	parents := map[string]bool{}
	for p := range files {
		for d := path.Dir(p); d != "." && !parents[d]; d = path.Dir(d) {
			parents[d] = true
		}
	}
	return parents
}

// storeContent stores the bytes of files that git does not hold: changed and
// untracked ones, and those that a filter stands before. One git fast-import takes
// them all, without filters.
func (s *Snapshot) storeContent(ctx context.Context, t *tree, tracked map[string]state) error {
	missing, err := s.missing(ctx, tracked)
	if err != nil || len(missing) == 0 {
		return err
	}
	cmd := s.r.git.command(ctx, call{args: []string{"-c", "core.fsync=all", "fast-import", "--quiet", "--done"}})
	var errOut bytes.Buffer
	cmd.Stderr, cmd.Stdout = &errOut, &errOut
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return commandError(ctx, cmd.Args[1:], "", err)
	}
	feed := func() error {
		for _, p := range missing {
			b, err := t.read(p, s.files[p])
			if gone(err) {
				delete(s.files, p)
				continue
			}
			if err != nil {
				return unreadable(p, err)
			}
			oid, err := s.r.hash(int64(len(b)), bytes.NewReader(b), t.buf)
			if err != nil {
				return err
			}
			s.files[p] = state{mode: s.files[p].mode, oid: oid, plain: s.files[p].plain}
			if _, err := fmt.Fprintf(in, "blob\ndata %d\n", len(b)); err != nil {
				return err
			}
			if _, err := in.Write(append(b, '\n')); err != nil {
				return err
			}
		}
		_, err := in.Write([]byte("done\n"))
		return err
	}
	feedErr := feed()
	_ = in.Close() // without "done" git fails, as it must
	err = cmd.Wait()
	if err != nil {
		_ = os.Remove(filepath.Join(s.r.gitDir, fmt.Sprintf("fast_import_crash_%d", cmd.Process.Pid))) // its report, which nobody reads
	}
	if err != nil && (feedErr == nil || !isOurs(feedErr)) {
		return commandError(ctx, cmd.Args[1:], errOut.String(), err)
	}
	return feedErr
}

func isOurs(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// missing lists the files whose bytes git does not hold.
func (s *Snapshot) missing(ctx context.Context, tracked map[string]state) ([]string, error) {
	var ask []string
	for _, p := range sortedKeys(s.files) {
		// An entry that is only intended to be added names the empty blob, which need not exist.
		if f := s.files[p]; f.oid != tracked[p].oid || f.oid == s.r.emptyBlob() {
			ask = append(ask, p)
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	var in bytes.Buffer
	for _, p := range ask {
		in.WriteString(s.files[p].oid + "\n")
	}
	out, err := s.r.git.run(ctx, call{args: []string{"cat-file", "--batch-check"}, in: &in})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(ask) {
		return nil, fmt.Errorf("git cat-file answered %d of %d questions", len(lines), len(ask))
	}
	var missing []string
	seen := map[string]bool{}
	for i, p := range ask {
		if strings.HasSuffix(lines[i], " missing") && !seen[s.files[p].oid] {
			seen[s.files[p].oid] = true
			missing = append(missing, p)
		}
	}
	return missing, nil
}

func (r *Repo) emptyBlob() string {
	oid, _ := r.hash(0, strings.NewReader(""), make([]byte, 1)) // a reader of nothing does not fail
	return oid
}

// store makes the snapshot's commit and its ref.
func (s *Snapshot) store(ctx context.Context) error {
	raw, err := s.r.newScratch()
	if err != nil {
		return err
	}
	defer raw.close()
	if err := raw.put(ctx, s.files); err != nil {
		return err
	}
	rawTree, err := raw.writeTree(ctx)
	if err != nil {
		return err
	}
	perms := make([]string, 0, len(s.perms))
	for _, p := range sortedKeys(s.perms) {
		perms = append(perms, fmt.Sprintf("%04o %s", s.perms[p], p))
	}
	var top bytes.Buffer
	fmt.Fprintf(&top, "040000 tree %s\tclean\x00", s.clean)
	for _, l := range []struct {
		name  string
		names []string
	}{
		{"dirs", s.dirs},
		{"ignored", sortedKeys(s.ignored)},
		{"links", sortedKeys(s.links)},
		{"perms", perms},
		{"untracked", sortedKeys(s.untracked)},
	} {
		oid, err := s.r.storeBlob(ctx, joinNames(l.names))
		if err != nil {
			return err
		}
		fmt.Fprintf(&top, "100644 blob %s\t%s\x00", oid, l.name)
	}
	fmt.Fprintf(&top, "040000 tree %s\traw\x00", rawTree)
	s.commit, err = s.commitMeta(ctx, top.Bytes(), s.head.Commit)
	if err != nil {
		return err
	}
	_, err = s.r.git.run(ctx, call{args: []string{"update-ref", refPrefix + s.run, s.commit, strings.Repeat("0", len(s.commit))}})
	return err
}

// commitMeta makes a commit of the entries, with what the snapshot says of itself.
func (s *Snapshot) commitMeta(ctx context.Context, entries []byte, parents ...string) (string, error) {
	text, err := json.Marshal(meta{
		Version: metaVersion, Run: s.run, At: s.at, Head: s.head.Commit, Branch: s.head.Branch,
		Tree: s.r.treeName(), Committed: s.committed, Index: s.index,
	})
	if err != nil {
		return "", err
	}
	oid, err := s.r.storeBlob(ctx, text)
	if err != nil {
		return "", err
	}
	in := append(slices.Clone(entries), fmt.Sprintf("100644 blob %s\tmeta\x00", oid)...)
	out, err := s.r.git.run(ctx, call{args: []string{"-c", "core.fsync=all", "mktree", "-z"}, in: bytes.NewReader(in)})
	if err != nil {
		return "", err
	}
	return s.r.commitTree(ctx, strings.TrimSpace(string(out)), "fiducial: snapshot of run "+s.run, s.at, parents...)
}

// commitTree makes a commit that is no part of the user's history: under our own
// name, so that it works without his, and with a given time, so that the same
// content is the same commit.
func (r *Repo) commitTree(ctx context.Context, tree, message string, at time.Time, parents ...string) (string, error) {
	args := []string{"-c", "core.fsync=all", "commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := r.git.run(ctx, call{args: args, in: strings.NewReader(message + "\n"), env: ourName(at)})
	return strings.TrimSpace(string(out)), err
}

func ourName(at time.Time) []string {
	when := fmt.Sprintf("%d +0000", max(at.Unix(), 0))
	return []string{
		"GIT_AUTHOR_NAME=fiducial", "GIT_AUTHOR_EMAIL=fiducial@localhost", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=fiducial", "GIT_COMMITTER_EMAIL=fiducial@localhost", "GIT_COMMITTER_DATE=" + when,
	}
}

// treeName tells the working trees of one repository apart, also after the
// repository was moved: "." or "worktrees/<name>".
func (r *Repo) treeName() string {
	if rel, ok := strings.CutPrefix(r.gitDir, r.common+"/"); ok {
		return rel
	}
	return "."
}

// Release drops the snapshot after the run has ended well. It may be called again.
// Of a run that was killed just after it committed it first brings the index along.
func (s *Snapshot) Release(ctx context.Context) error {
	if err := s.finishIndex(ctx); err != nil {
		return fail("release", err)
	}
	if err := s.removeTemp(); err != nil {
		return fail("release", err)
	}
	ref := refPrefix + s.run
	if _, err := s.r.git.line(ctx, "rev-parse", "--verify", "--quiet", ref); exitCode(err) == 1 {
		return nil
	}
	_, err := s.r.git.run(ctx, call{args: []string{"update-ref", "-d", ref}})
	return fail("release", err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
