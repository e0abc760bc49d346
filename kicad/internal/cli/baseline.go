// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// compare judges the tree by what it adds to the project as it was at a revision.
func (a *app) compare(ctx context.Context, r *kicadcli.Runner, p place, now tree, rev string, w which, out *checkJSON) error {
	if !p.git {
		return cannot(fmt.Errorf("--baseline: %s is in no git repository", p.dir), "run check without --baseline")
	}
	dir, err := a.temp("baseline")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	g := gitAt{dir: p.top, environ: a.Environ}
	commit, err := g.takeOut(ctx, rev, dir)
	if err != nil {
		return err
	}
	return compareTo(ctx, r, dir, now, baselineJSON{Revision: rev, Commit: commit}, w, out)
}

// compareTo judges a tree by what it adds to the one that was taken out into dir.
func compareTo(ctx context.Context, r *kicadcli.Runner, dir string, now tree, base baselineJSON, w which, out *checkJSON) error {
	out.Baseline = &base
	old := tree{top: dir, proj: asIn(dir, now.proj)}
	judged, err := underRulesOf(old, now, out)
	if err != nil {
		return err
	}
	return comparison{r: r, old: old, judged: judged, which: w}.run(ctx, out)
}

// asIn is the same project in another tree, with the files that are there.
func asIn(top string, proj *project.Project) *project.Project {
	old := *proj
	old.Locks, old.Others = nil, nil
	for _, file := range []*string{&old.Pro, &old.Root, &old.PCB} {
		if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(*file))); err != nil {
			*file = ""
		}
	}
	return &old
}

// underRulesOf gives the tree the rules of the older one, where they differ: under its own a finding may be missing
// only because a rule was switched off. Without a difference the tree comes back as it is.
func underRulesOf(old, now tree, out *checkJSON) (tree, error) {
	stem := path.Join(now.proj.Dir, now.proj.Name)
	var files [2][2][]byte // old and now, settings and custom rules
	for i, t := range []tree{old, now} {
		root, err := os.OpenRoot(t.top)
		if err != nil {
			return now, cannot(err)
		}
		for k, ext := range []string{".kicad_pro", ".kicad_dru"} {
			files[i][k], err = project.Read(project.Files(root), stem+ext, 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return now, cannot(errors.Join(err, root.Close()))
			}
		}
		_ = root.Close()
	}
	before, err := findings.ReadRules(files[0][0], files[0][1])
	if err != nil {
		out.Notices = append(out.Notices, "at the baseline: "+err.Error())
	}
	after, err := findings.ReadRules(files[1][0], files[1][1])
	if err != nil {
		out.Notices = append(out.Notices, err.Error())
	}
	changes := findings.CompareRules(before, after)
	if len(changes) == 0 {
		return now, nil
	}
	for _, c := range changes {
		out.Notices = append(out.Notices, "the rules changed since the baseline, which are used here: "+c.String())
	}
	now.overlay = map[string][]byte{
		now.proj.Name + ".kicad_pro": files[0][0], now.proj.Name + ".kicad_dru": files[0][1], // nil leaves a file out
	}
	return now, nil
}

// A comparison is of two trees. Judged is the newer one, under the rules of old.
type comparison struct {
	r           *kicadcli.Runner
	old, judged tree
	which       which
}

func (c comparison) run(ctx context.Context, out *checkJSON) error {
	type result struct {
		v   verdicts
		err error
	}
	before := make(chan result, 1)
	go func() {
		v, err := verify(ctx, c.r, c.old, c.which)
		before <- result{v, err}
	}()
	now, err := verify(ctx, c.r, c.judged, c.which)
	was := <-before
	if err := errors.Join(err, was.err); err != nil {
		return err
	}
	out.Notices = append(out.Notices, tellProblems(newSince(was.v.sheets.problems, now.sheets.problems))...)
	for _, check := range []findings.Check{findings.ERC, findings.DRC} {
		if v := now.of(check); v != nil {
			out.addRule(v, against(was.v.of(check), v))
		}
	}
	for _, pair := range [][2]*ruleJSON{{was.v.drift, now.drift}, {was.v.constraints, now.constraints}} {
		if pair[1] != nil {
			pair[1].sinceBaseline(pair[0])
		}
	}
	out.addDocs(now.drift, now.constraints)
	return nil
}

// against compares two verdicts. One that is nil is of a file that was not there: everything is new.
func against(was, now *kicadcli.Verdict) ruleJSON {
	rule := newRule(now)
	if now.Status == kicadcli.NotRun {
		return rule
	}
	if was == nil {
		was = &kicadcli.Verdict{Check: now.Check, Status: kicadcli.Pass, Report: findings.Report{Check: now.Check}}
	}
	if was.Status == kicadcli.NotRun {
		rule.Status, rule.Reason = string(kicadcli.NotRun), "at the baseline: "+was.Reason
		return rule
	}
	d := findings.Compare(was.Report, now.Report, nil)
	added := slices.Clone(d.Added)
	for _, f := range now.Report.Findings {
		i := slices.IndexFunc(added, func(x findings.Finding) bool { return x.String() == f.String() })
		if i >= 0 {
			added = slices.Delete(added, i, i+1)
		}
		rule.add(f, i >= 0)
	}
	for _, f := range d.Removed {
		rule.Removed = append(rule.Removed, findingJSON{Finding: f})
	}
	rule.Status, rule.Reason = string(d.Outcome()), d.Summary()
	return rule
}

// gitAt runs git in a folder.
type gitAt struct {
	dir     string
	environ []string
}

func (g gitAt) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", g.dir}, args...)...)
	// What a hook or an outer git has set is about another repository, perhaps.
	cmd.Env = slices.DeleteFunc(slices.Clone(g.environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{
			"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
		}, name)
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return cmd
}

func (g gitAt) run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := g.command(ctx, args...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, cannot(fmt.Errorf("git was not found (%w)", err), "install git 2.39 or newer from your system's packages, and see that it is on PATH")
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(e.Stderr)))
	}
	return out, err
}

// takeOut writes what kicad-cli may need of a revision into dir, byte for byte as git has it, and returns the commit.
func (g gitAt) takeOut(ctx context.Context, rev, dir string) (commit string, err error) {
	line, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if errors.Is(err, exec.ErrNotFound) {
		return "", cannot(fmt.Errorf("--baseline: %w", err), "install git", "run check without --baseline")
	}
	if err != nil {
		return "", cannot(fmt.Errorf("--baseline: there is no commit %q in %s", rev, g.dir),
			"name a branch, a tag or a commit that git log shows", "fetch it first: git fetch")
	}
	commit = strings.TrimSpace(string(line))
	names, err := g.designFiles(ctx, commit)
	if err == nil && len(names) > 0 {
		err = g.extract(ctx, commit, names, dir)
	}
	if err != nil {
		return "", cannot(fmt.Errorf("--baseline: %w", err))
	}
	return commit, nil
}

// A blob is a file of a commit.
type blob struct {
	name, oid string
	link      bool
}

// designFiles lists what KiCad reads: designs, settings, libraries, library tables.
func (g gitAt) designFiles(ctx context.Context, commit string) ([]blob, error) {
	list, err := g.run(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	var files []blob
	for entry := range strings.SplitSeq(string(list), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(head)
		if len(f) != 3 || f[1] != "blob" || !fs.ValidPath(name) || !isDesign(path.Base(name)) {
			continue
		}
		files = append(files, blob{name: name, oid: f[2], link: f[0] == "120000"})
	}
	return files, nil
}

func isDesign(base string) bool {
	if strings.EqualFold(path.Ext(base), ".md") || base == docs.ConfigName || base == docs.RegistryName {
		return true // for the documents
	}
	return strings.HasPrefix(path.Ext(base), ".kicad_") || strings.HasSuffix(base, "-lib-table") || path.Ext(base) == ".lib"
}

// extract reads the blobs through one git cat-file and writes them.
func (g gitAt) extract(ctx context.Context, commit string, files []blob, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var ask bytes.Buffer
	for _, f := range files {
		fmt.Fprintln(&ask, f.oid)
	}
	cmd := g.command(ctx, "cat-file", "--batch")
	cmd.Stdin = &ask
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(pipe)
	links := links{root: root, symlink: root.Symlink, target: map[string]string{}}
	for _, f := range files {
		if err = writeBlob(root, r, f, links); err != nil {
			err = fmt.Errorf("%s of %.12s: %w", f.name, commit, err)
			break
		}
	}
	_, drained := io.Copy(io.Discard, r)
	return errors.Join(err, drained, cmd.Wait(), links.copyAll())
}

// writeBlob reads "<oid> blob <size>\n<content>\n", the answer of cat-file.
func writeBlob(root *os.Root, r *bufio.Reader, f blob, l links) error {
	head, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	var oid string
	var size int64
	if _, err := fmt.Sscanf(head, "%s blob %d", &oid, &size); err != nil {
		return fmt.Errorf("git cat-file says %q", strings.TrimSpace(head))
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	name := filepath.FromSlash(f.name)
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if f.link {
		return l.make(f.name, string(data[:size]))
	}
	return root.WriteFile(name, data[:size], 0o600)
}
