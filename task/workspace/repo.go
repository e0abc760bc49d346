// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// own is the folder of the runs, at the top of the working tree.
const own = ".fiducial"

// Options say how a repository is used. The zero value works.
type Options struct {
	// Git is the command; "git" when empty.
	Git string

	// Env is the environment of git and of hooks; nil means that of this process.
	Env []string

	// Exclude names untracked files that are no part of the design, such as an
	// editor's lock files. A pattern without a slash is matched against each part
	// of a path, one with a slash against the path from the top and the folders
	// it is in; the syntax is that of [path.Match].
	Exclude []string

	// MaxFile is the size in bytes of the largest file that a snapshot stores; 0
	// means 1 GiB. A larger one that git does not hold already is refused with
	// KindUnreadable, before anything is changed.
	MaxFile int64
}

// A Repo is a git working tree. It is safe for concurrent use.
type Repo struct {
	git      *git
	top      string // the working tree
	gitDir   string // of this working tree, absolute
	common   string // shared by all working trees of the repository, absolute
	exclude  []string
	maxFile  int64
	fileMode bool   // whether the file system knows the executable bit
	links    bool   // whether git makes links (core.symlinks), or files that hold the target
	format   string // sha1 or sha256
}

// Open finds the repository that dir is in, also from a sub-folder or a linked
// working tree. It writes nothing. The error is a [*PreflightError] when dir
// cannot be worked in, and otherwise an [*Error].
func Open(ctx context.Context, dir string, opts Options) (*Repo, error) {
	if err := checkPatterns(opts.Exclude); err != nil {
		return nil, &Error{Kind: KindInvalid, Op: "open", Err: err}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fail("open", err)
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return nil, &PreflightError{
			Check: CheckRepository, Reason: fmt.Sprintf("%s is not a folder", abs),
			Why: "a run works on the files of a folder.", Remedies: []string{"name the folder of the project"}, Err: err,
		}
	}
	bin, env, err := findGit(ctx, abs, opts)
	if err != nil {
		return nil, err
	}
	r := &Repo{git: &git{bin: bin, dir: abs, env: env}, exclude: append([]string{}, opts.Exclude...), maxFile: opts.MaxFile}
	if r.maxFile == 0 {
		r.maxFile = 1 << 30
	}
	if err := r.locate(ctx, abs); err != nil {
		return nil, err
	}
	r.fileMode = true
	if v, err := r.git.line(ctx, "config", "--type=bool", "core.fileMode"); err == nil && v == "false" {
		r.fileMode = false
	}
	r.links = linksByDefault(runtime.GOOS, env)
	if v, err := r.git.line(ctx, "config", "--type=bool", "core.symlinks"); err == nil {
		r.links = v == "true"
	}
	return r, nil
}

func findGit(ctx context.Context, dir string, opts Options) (bin string, env []string, err error) {
	name := opts.Git
	if name == "" {
		name = "git"
	}
	const why = "every run takes a snapshot first and ends in one commit, both by git."
	install := fmt.Sprintf("install git %d.%d or newer (https://git-scm.com/downloads) and see that it is on PATH", minMajor, minMinor)
	bin, err = exec.LookPath(name)
	if err != nil {
		return "", nil, &PreflightError{Check: CheckGit, Reason: "git was not found", Why: why, Remedies: []string{install}, Err: err}
	}
	env = opts.Env
	if env == nil {
		env = exec.CommandContext(ctx, bin).Environ()
	}
	env = cleanEnv(env)
	version, err := (&git{bin: bin, dir: dir, env: env}).line(ctx, "version")
	if err != nil {
		return "", nil, &PreflightError{Check: CheckGit, Reason: "git does not run", Why: why, Remedies: []string{install}, Err: err}
	}
	major, minor, ok := parseVersion(version)
	if ok && oldVersion(major, minor) {
		return "", nil, &PreflightError{
			Check: CheckGit, Reason: fmt.Sprintf("%s is too old", version), Why: why, Remedies: []string{install},
		}
	}
	return bin, env, nil
}

// locate finds the folders of the repository that dir is in.
func (r *Repo) locate(ctx context.Context, dir string) error {
	inside, err := r.git.line(ctx, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return outside(dir, err)
	}
	if inside != "true" {
		return &PreflightError{
			Check: CheckRepository, Reason: fmt.Sprintf("%s is in a repository without a working tree (bare, or inside .git)", dir),
			Why: "a run changes files, so it needs a working tree.", Remedies: []string{"clone the repository and run there: git clone " + dir},
		}
	}
	for _, q := range []struct {
		to  *string
		arg []string
	}{
		{&r.top, []string{"--show-toplevel"}},
		{&r.gitDir, []string{"--absolute-git-dir"}},
		{&r.common, []string{"--path-format=absolute", "--git-common-dir"}},
		{&r.format, []string{"--show-object-format"}},
	} {
		v, err := r.git.line(ctx, append([]string{"rev-parse"}, q.arg...)...)
		if err != nil {
			return fail("open", err)
		}
		*q.to = v
	}
	r.top = filepath.FromSlash(r.top)
	r.git.dir = r.top
	return nil
}

// outside tells a folder that is in no repository from a repository that git
// refuses to use, which it does for example when somebody else owns it.
func outside(dir string, err error) error {
	for d := dir; ; d = filepath.Dir(d) {
		if _, statErr := os.Lstat(filepath.Join(d, ".git")); statErr == nil {
			return &PreflightError{
				Check: CheckRepository, Reason: fmt.Sprintf("git refuses the repository at %s: %s", d, gitWords(err)),
				Why: "without git there is no snapshot, and nothing could be put back.", Remedies: []string{"follow git's advice: git -C " + d + " status"}, Err: err,
			}
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return &PreflightError{
		Check: CheckRepository, Reason: fmt.Sprintf("%s is not in a git repository", dir),
		Why: "a run takes a snapshot first, so that everything can be put back, and ends in one commit.",
		Remedies: []string{
			"make one: git init && git add . && git commit -m \"Start\"",
			"run in the folder of a project that is under git",
		}, Err: err,
	}
}

func gitWords(err error) string {
	if e, ok := errors.AsType[*CommandError](err); ok && strings.TrimSpace(e.Output) != "" {
		return strings.TrimSpace(e.Output)
	}
	return err.Error()
}

// Top is the absolute path of the working tree's top folder.
func (r *Repo) Top() string { return r.top }

// A Head is where the repository stands.
type Head struct {
	Commit string // the object name
	Branch string // for example refs/heads/main; empty when HEAD is detached
}

// Head reads where HEAD stands.
func (r *Repo) Head(ctx context.Context) (Head, error) {
	var h Head
	c, err := r.git.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return h, fail("read HEAD", err)
	}
	h.Commit = c
	b, err := r.git.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil && exitCode(err) != 1 { // 1: detached
		return h, fail("read HEAD", err)
	}
	h.Branch = b
	return h, nil
}

// gitPath is where git keeps one of its files, for example "info/exclude".
func (r *Repo) gitPath(ctx context.Context, name string) (string, error) {
	p, err := r.git.line(ctx, "rev-parse", "--path-format=absolute", "--git-path", name)
	return filepath.FromSlash(p), err
}

// ensureOwn makes the folder of the runs, and has git ignore it. Both are done
// once; a file that already says so is left alone.
func (r *Repo) ensureOwn(ctx context.Context, root *os.Root) error {
	if err := root.MkdirAll(own, 0o700); err != nil {
		return err
	}
	p, err := r.gitPath(ctx, "info/exclude")
	if err != nil {
		return err
	}
	old, err := os.ReadFile(p)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	const line = "/" + own + "/"
	for l := range strings.Lines(string(old)) {
		if strings.TrimRight(l, "\r\n") == line {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(p, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	text := line + "\n"
	if len(old) > 0 && old[len(old)-1] != '\n' {
		text = "\n" + text
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
