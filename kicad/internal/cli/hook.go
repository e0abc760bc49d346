// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// hookMark is the line by which we know a hook of ours, hookCall what a foreign hook needs to chain it.
const (
	hookMark = "# fiducial pre-commit hook"
	hookCall = "fiducial hook run"
)

// hookJSON is what hook install and hook remove print with --json.
type hookJSON struct {
	Hook     string `json:"hook"`
	Done     string `json:"done"` // installed, unchanged, chained, removed, absent
	ExitCode int    `json:"exit_code"`
}

func newHook(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Check what is about to be committed, by a git hook",
		Long: `A pre-commit hook runs check on the projects that a commit changes, as they will be committed: what is not staged does not
count. Findings that HEAD has as well do not stop a commit, unless the hook was installed with --strict. Commits that
touch no KiCad file and no document pass at once. git commit --no-verify goes past the hook.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var strict bool
	install := &cobra.Command{
		Use:   "install",
		Short: "Install the pre-commit hook",
		Long: `Installs the pre-commit hook of this repository. A hook of somebody else is never touched: then the command fails and says
which line to add to it.

JSON keys: hook, done (installed, unchanged, chained), exit_code.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.installHook(cmd.Context(), strict) },
	}
	install.Flags().BoolVar(&strict, "strict", false, "stop commits for findings that HEAD has as well")
	remove := &cobra.Command{
		Use: "remove", Short: "Remove the pre-commit hook, if it is ours", Args: cobra.NoArgs,
		Long: "Removes the pre-commit hook of this repository, if hook install made it.\n\nJSON keys: hook, done (removed, absent), exit_code.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.removeHook(cmd.Context()) },
	}
	var strictRun bool
	run := &cobra.Command{
		Use: "run", Short: "Check what is staged, as the hook does", Args: cobra.NoArgs,
		Long: "Checks the projects that the staged changes touch, as they are staged.\n\nExit codes: as for check.\n\nJSON keys: projects [as check prints them], exit_code.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runHook(cmd.Context(), strictRun) },
	}
	run.Flags().BoolVar(&strictRun, "strict", false, "findings that HEAD has as well count too")
	cmd.AddCommand(install, remove, run)
	return cmd
}

// hookFile finds the pre-commit hook of the repository.
func (a *app) hookFile(ctx context.Context) (string, error) {
	p, err := a.place()
	if err != nil {
		return "", err
	}
	if !p.git {
		return "", cannot(fmt.Errorf("%s is in no git repository", p.dir), "make one: git init")
	}
	g := gitAt{dir: p.top, environ: a.Environ}
	out, err := g.run(ctx, "rev-parse", "--git-path", "hooks")
	if err != nil {
		return "", cannot(err)
	}
	dir := strings.TrimSpace(string(out))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.top, dir)
	}
	file := filepath.Join(dir, "pre-commit")
	if out, err := g.run(ctx, "config", "--get", "core.hooksPath"); err == nil && strings.TrimSpace(string(out)) != "" {
		if rel, err := filepath.Rel(p.top, dir); err != nil || !filepath.IsLocal(rel) {
			return "", cannot(fmt.Errorf("core.hooksPath puts the hooks into %s, outside the repository, where other repositories may use them too", dir),
				"add this line to "+file+": "+hookCall+" || exit 1", "or give this repository hooks of its own: git config core.hooksPath .git/hooks")
		}
	}
	return file, nil
}

// script is the hook. It is a shell script, for git runs hooks by a shell on every system, also on Windows, whose shell
// takes paths with slashes alone.
func script(exe string, strict bool) string {
	call := "exec \"$fiducial\" hook run"
	if strict {
		call += " --strict"
	}
	return "#!/bin/sh\n" + hookMark + ". fiducial hook remove takes it away, git commit --no-verify goes past it.\n" +
		"fiducial=$(command -v fiducial) || fiducial='" + strings.ReplaceAll(filepath.ToSlash(exe), "'", `'\''`) + "'\n" +
		"if [ ! -x \"$fiducial\" ]; then\n" +
		"\techo 'fiducial is not in PATH, so the design was not checked: install it, or run git commit --no-verify' >&2\n\texit 1\nfi\n" +
		call + "\n"
}

func (a *app) installHook(ctx context.Context, strict bool) error {
	file, err := a.hookFile(ctx)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return cannot(err)
	}
	text := script(exe, strict)
	have, err := os.ReadFile(file)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return cannot(err)
	case err == nil && string(have) == text:
		return a.answer(hookJSON{Hook: file, Done: "unchanged"}, "the hook is there already: %s", file)
	case err == nil && !bytes.Contains(have, []byte(hookMark)) && bytes.Contains(have, []byte(hookCall)):
		return a.answer(hookJSON{Hook: file, Done: "chained"}, "%s runs it already", file)
	case err == nil && !bytes.Contains(have, []byte(hookMark)):
		return cannot(fmt.Errorf("%s is there already and is not ours; it was not touched", file), "add this line to it: "+hookCall+" || exit 1")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return cannot(err)
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return cannot(err)
	}
	defer func() { _ = root.Close() }()
	if err := replaceFile(root, filepath.Base(file), []byte(text)); err != nil {
		return cannot(err)
	}
	if err := root.Chmod(filepath.Base(file), 0o755); err != nil {
		return cannot(err)
	}
	return a.answer(hookJSON{Hook: file, Done: "installed"}, "installed: %s", file)
}

func (a *app) removeHook(ctx context.Context) error {
	file, err := a.hookFile(ctx)
	if err != nil {
		return err
	}
	have, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.answer(hookJSON{Hook: file, Done: "absent"}, "there is no hook: %s", file)
	case err != nil:
		return cannot(err)
	case !bytes.Contains(have, []byte(hookMark)):
		return cannot(fmt.Errorf("%s is not ours; it was not touched", file), "take the line with "+hookCall+" out of it by hand")
	}
	if err := os.Remove(file); err != nil {
		return cannot(err)
	}
	return a.answer(hookJSON{Hook: file, Done: "removed"}, "removed: %s", file)
}

// index is git with the index that a commit is made from, which for git commit FILE is not the usual one.
type index struct{ gitAt }

func (x index) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := x.command(ctx, args...)
	for _, kv := range x.environ {
		if strings.HasPrefix(kv, "GIT_INDEX_FILE=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, err
}

// hookRun is what hook run looks at.
type hookRun struct {
	changed []string // staged files that a check reads
	dir     string   // the staged tree
	old     string   // that of HEAD, "" when there is none or it does not matter
	head    string   // its commit
}

func (a *app) runHook(ctx context.Context, strict bool) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	if !p.git {
		return cannot(fmt.Errorf("%s is in no git repository", p.dir), "run fiducial check")
	}
	tmp, err := a.temp("hook")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	h, err := a.staged(ctx, p, tmp, strict)
	if err != nil {
		return cannot(err, "git commit --no-verify goes past the check")
	}
	u := a.newUI()
	defer func() { _ = u.Close() }()
	list, err := h.projects()
	if err != nil {
		return cannot(err, "git commit --no-verify goes past the check")
	}
	if len(list) == 0 {
		if a.json {
			return u.Object(map[string]any{"projects": []any{}, "exit_code": exitOK})
		}
		return nil
	}
	r, err := a.runner()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	code, outs := exitOK, []*checkJSON{}
	for _, proj := range list {
		out, err := h.check(ctx, r, proj)
		if err != nil {
			return err
		}
		code = max(code, out.ExitCode)
		outs = append(outs, out)
		switch {
		case a.json:
		case out.ExitCode == exitOK:
			u.Heading("%s: %s", out.Project.Name, conclusion(out))
		default:
			reportCheck(u, out)
		}
	}
	if a.json {
		return errors.Join(u.Object(map[string]any{"projects": outs, "exit_code": code}), told(code))
	}
	if code != exitOK {
		u.Line("the commit was stopped; git commit --no-verify goes past the check")
	}
	return errors.Join(u.Close(), told(code))
}

// staged takes the staged tree and that of HEAD out into folders.
func (a *app) staged(ctx context.Context, p place, tmp string, strict bool) (h hookRun, err error) {
	x := index{gitAt{dir: p.top, environ: a.Environ}}
	if out, err := x.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
		h.head = strings.TrimSpace(string(out))
	}
	base := h.head
	if base == "" { // before the first commit
		out, err := x.run(ctx, "hash-object", "-t", "tree", "--stdin")
		if err != nil {
			return h, err
		}
		base = strings.TrimSpace(string(out))
	}
	out, err := x.run(ctx, "diff-index", "--cached", "--name-only", "--no-renames", "-z", base)
	if err != nil {
		return h, err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" && isDesign(path.Base(name)) {
			h.changed = append(h.changed, name)
		}
	}
	if len(h.changed) == 0 {
		return h, nil
	}
	if out, err = x.run(ctx, "write-tree"); err != nil {
		return h, err
	}
	h.dir = filepath.Join(tmp, "staged")
	if err := x.takeTree(ctx, strings.TrimSpace(string(out)), h.dir); err != nil {
		return h, err
	}
	if !strict && h.head != "" {
		h.old = filepath.Join(tmp, "head")
		err = x.takeTree(ctx, h.head, h.old)
	}
	return h, err
}

// takeTree writes what a check reads of a tree into a new folder.
func (g gitAt) takeTree(ctx context.Context, tree, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	names, err := g.designFiles(ctx, tree)
	if err != nil || len(names) == 0 {
		return err
	}
	return g.extract(ctx, tree, names, dir)
}

// projects are the staged projects that the changes are about: files below the folder of a project, or of its
// documents. A library beside all of them is about all.
func (h hookRun) projects() ([]*project.Project, error) {
	if len(h.changed) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var all []*project.Project
	add := func(at string) {
		proj, err := project.Find(project.Files(root), at)
		if err == nil && !slices.ContainsFunc(all, func(x *project.Project) bool { return x.Dir == proj.Dir && x.Name == proj.Name }) {
			all = append(all, proj)
		}
	}
	err = fs.WalkDir(project.Files(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Ext(name) == ".kicad_pro" {
			add(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range h.changed {
		if ext := path.Ext(name); ext == ".kicad_sch" || ext == ".kicad_pcb" {
			add(path.Dir(name))
		}
	}
	var list []*project.Project
	for _, proj := range all {
		if slices.ContainsFunc(h.changed, func(name string) bool { return concerns(proj, all, name) }) {
			list = append(list, proj)
		}
	}
	return list, nil
}

func below(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// concerns reports whether a changed file is about a project.
func concerns(proj *project.Project, all []*project.Project, name string) bool {
	if path.Ext(name) == ".md" {
		return below(proj.Dir, name) || proj.Docs != "" && below(proj.Docs, name)
	}
	mine := below(proj.Dir, name)
	for _, other := range all {
		if len(other.Dir) > len(proj.Dir) && below(other.Dir, name) {
			return false // it is in the folder of a project of its own
		}
		if below(other.Dir, name) {
			mine = mine || other == proj
		}
	}
	return mine || !slices.ContainsFunc(all, func(x *project.Project) bool { return below(x.Dir, name) })
}

func (h hookRun) check(ctx context.Context, r *kicadcli.Runner, proj *project.Project) (*checkJSON, error) {
	out, now := newCheckJSON(proj), tree{top: h.dir, proj: proj}
	w, err := only(nil)
	if err != nil {
		return nil, err
	}
	out.Notices = notices(proj, w)
	if h.old != "" {
		err = compareTo(ctx, r, h.old, now, baselineJSON{Revision: "HEAD", Commit: h.head}, w, out)
	} else {
		var v verdicts
		if v, err = verify(ctx, r, now, w); err == nil {
			out.add(v)
		}
	}
	out.conclude()
	for i := range out.Checks {
		out.Checks[i].Command = strings.ReplaceAll(out.Checks[i].Command, h.dir+string(filepath.Separator), "")
	}
	return out, err
}
