// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Trial is one run of [Check] or [Alone].
type Trial struct {
	Repo string // a folder of the git repository
	Work string // a folder for what is built; third parties' modules stay in it for the next time
	Env  []string
	Out  io.Writer // what is done, a line each
	// Offline keeps the go command from any network: third parties come from the
	// module cache alone, and sums are held against the checked-in go.sum files.
	Offline bool
	// Draft has Release plan on when something is amiss that is mended by hand before a
	// release is made: the changelog has no section for the version yet, HEAD is not
	// on Branch, or git knows no name to sign with. Such a plan says so, and cannot be made.
	Draft bool
	// Branch is where releases are made from; main when empty.
	Branch string
}

// A ContentsError lists what may not be published.
type ContentsError struct{ Wrong []Fault }

// Error implements error. Faults that want the same done stand together.
func (e *ContentsError) Error() string {
	var b strings.Builder
	b.WriteString("this may not be published:")
	var said []string
	for _, f := range e.Wrong {
		if slices.Contains(said, f.Advice) {
			continue
		}
		said = append(said, f.Advice)
		b.WriteString("\n" + f.Advice)
		for _, g := range e.Wrong {
			if g.Advice == f.Advice {
				b.WriteString("\n  " + g.What)
			}
		}
	}
	return b.String()
}

// version is what a commit is published as for a check. The go command takes it
// for granted that a version never changes, and keeps things about it outside the
// module cache, too: each commit has a version of its own.
func (t Trial) version(ctx context.Context) (string, error) {
	out, err := shell{dir: t.Repo, env: t.Env}.run(ctx, "git", "rev-parse", "--short=12", "HEAD")
	return "v0.1.0-check.h" + strings.TrimSpace(out), err
}

// Check publishes the committed tree into a proxy of its own, holds what is in
// it to [Rules] (else a [*ContentsError]), and tries every [Consumer]. It goes on
// after what is wrong, and returns all of it.
func Check(ctx context.Context, t Trial) error {
	p, err := t.publish(ctx)
	if err != nil {
		return err
	}
	wrong := t.contents(p.zips)
	env, err := t.consumerEnv(ctx, p.work, p.proxy)
	if err != nil {
		return err
	}
	site := Site{Dir: filepath.Join(p.work, "consumers"), Env: env, Version: p.version, Sum: p.sum}
	if i := slices.IndexFunc(p.zips, func(z Zip) bool { return z.Module.Dir == "." }); i >= 0 {
		site.Root, site.Go = p.zips[i].Module.Path, p.zips[i].Module.Go
	}
	return errors.Join(wrong, t.consume(ctx, site, p.zips))
}

// CheckContents is the part of [Check] that needs neither a network nor a compiler.
func CheckContents(ctx context.Context, t Trial) error {
	p, err := t.publish(ctx)
	if err != nil {
		return err
	}
	return t.contents(p.zips)
}

// A publication is the committed tree as a proxy has it.
type publication struct {
	work, proxy string // folders
	version     string
	zips        []Zip
	sum         string // of third parties, as a go.sum
}

func (t Trial) publish(ctx context.Context) (p publication, err error) {
	if p.work, err = t.fresh(); err != nil {
		return p, err
	}
	tree := filepath.Join(p.work, "tree")
	p.proxy = filepath.Join(p.work, "proxy")
	links, err := Export(ctx, t.Repo, "HEAD", tree, t.Env)
	if err != nil {
		return p, err
	}
	if err := errors.Join(t.sayUncommitted(ctx), t.sayLinks(tree, links)); err != nil {
		return p, err
	}
	if p.sum, err = thirdPartySums(tree); err != nil {
		return p, err
	}
	if p.version, err = t.version(ctx); err != nil {
		return p, err
	}
	p.zips, err = Prepare(tree, p.proxy, p.version)
	return p, err
}

// sayUncommitted tells what a look at the committed tree passes by.
func (t Trial) sayUncommitted(ctx context.Context) error {
	status, err := t.status(ctx)
	if err == nil && status != "" {
		fmt.Fprintf(t.Out, "NOT SEEN  changes that are not committed, of %d files, for only commits are published: see git status\n", strings.Count(status, "\n"))
	}
	return err
}

// status is a line for each file that differs from the commit.
func (t Trial) status(ctx context.Context) (string, error) {
	return shell{dir: t.Repo, env: t.Env}.run(ctx, "git", "status", "--porcelain", "--untracked-files=all")
}

// sayLinks tells which symbolic links users will not get.
func (t Trial) sayLinks(tree string, links []string) error {
	modules, err := Modules(tree)
	if err != nil {
		return err
	}
	for _, link := range links {
		if m, ok := owner(modules, link); ok && m.Published() {
			fmt.Fprintf(t.Out, "LEFT OUT  %s, a symbolic link, which no module's zip holds: users of %s do not get it; commit a file instead\n", link, m.Path)
		}
	}
	return nil
}

// fresh empties the folder, but for what the go command may find there again.
func (t Trial) fresh() (string, error) {
	work, err := filepath.Abs(t.Work)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"tree", "proxy", "consumers", "bin"} {
		dir := filepath.Join(work, name)
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	return work, nil
}

func (t Trial) contents(zips []Zip) error {
	var wrong []Fault
	for _, z := range zips {
		w, err := Contents(z, Rules())
		if err != nil {
			return err
		}
		wrong = append(wrong, w...)
		info, err := os.Stat(z.File)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "zip       %-60s %5d KiB\n", z.Module.Path, info.Size()>>10)
	}
	if len(wrong) > 0 {
		return &ContentsError{Wrong: wrong}
	}
	return nil
}

// consumerEnv is the environment of somebody who has never seen this repository,
// whose proxy has our modules, and the ordinary one the others; offline it is the
// module cache that has them. GOPRIVATE is empty, since it would have the go
// command pass the proxy by.
func (t Trial) consumerEnv(ctx context.Context, work, proxy string) ([]string, error) {
	own := shell{dir: work, env: t.Env}
	out, err := own.run(ctx, "go", "env", "GOPROXY", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	proxies := []string{fileURL(proxy), lines[0]}
	env := slices.Clone(t.Env)
	if t.Offline {
		proxies[1] = fileURL(filepath.Join(lines[1], "cache", "download"))
		env = append(env, "GOSUMDB=off")
	}
	cache, bin := filepath.Join(work, "modcache"), filepath.Join(work, "bin")
	for _, ours := range []string{"github.com/fiducial-dev", "cache/download/github.com/fiducial-dev"} {
		if err := os.RemoveAll(filepath.Join(cache, ours)); err != nil {
			return nil, err
		}
	}
	return append(
		env, "GOPROXY="+strings.Join(proxies, ","), "GONOSUMDB=github.com/fiducial-dev/fiducial", "GOPRIVATE=", "GONOPROXY=",
		"GOMODCACHE="+cache, "GOBIN="+bin, "PATH="+bin+string(filepath.ListSeparator)+lookup(env, "PATH"),
		"GOWORK=off", "GOFLAGS=-trimpath -modcacherw -buildvcs=false", "GOTOOLCHAIN=local", "GO111MODULE=", "GOENV=off",
	), nil
}

func fileURL(dir string) string {
	return "file://" + strings.TrimSuffix("/"+strings.TrimPrefix(filepath.ToSlash(dir), "/"), "/")
}

func lookup(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

func (t Trial) consume(ctx context.Context, site Site, zips []Zip) error {
	all, err := Consumers()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	var failed []error
	for _, c := range all {
		start := time.Now()
		err := c.Try(ctx, site)
		for _, dir := range c.Requires() {
			used[dir] = true
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(t.Out, "consumer  %-60s %5.1f s\n", c.Name, time.Since(start).Seconds())
	}
	for _, z := range zips {
		if dir := z.Module.Dir; !used[dir] {
			failed = append(failed, fmt.Errorf("no consumer uses module %s: add one to internal/tools/publish/consumer", z.Module.Path))
		}
	}
	return errors.Join(failed...)
}

// thirdPartySums is the union of the go.sum files of a tree.
func thirdPartySums(tree string) (string, error) {
	modules, err := Modules(tree)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, m := range modules {
		if !m.Published() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tree, m.Dir, "go.sum"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		lines = append(lines, strings.SplitAfter(string(text), "\n")...)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), ""), nil
}
