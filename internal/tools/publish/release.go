// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// A RefusedError is a release that may not be made.
type RefusedError struct{ Reasons []string }

// Error implements error.
func (e *RefusedError) Error() string {
	return "no release:\n  " + strings.Join(e.Reasons, "\n  ")
}

// A Plan is the release of all modules under one version.
type Plan struct {
	Version string
	Commit  string   // that it is made from
	Notes   string   // the version's section of the changelog
	ByHand  []string // what has to be done before it can be made; see Draft of [Trial]
	Zips    []Zip    // in the order in which the tags are pushed
}

// Tags are the plan's tags, the generator's first (E-268).
func (p Plan) Tags() []string {
	var tags []string
	for _, z := range p.Zips {
		tags = append(tags, z.Module.Tag(p.Version))
	}
	return tags
}

// Release plans the release of the committed tree. It refuses, with everything
// that is in the way in one [*RefusedError]: a version that is none or not above
// the last one, another branch than Branch of [Trial], no name to sign with, a tree with
// changes, a changelog without a section for the version (but for these see Draft of
// [Trial]), contents that may not be published, an API that breaks callers when the
// version may not, and a tree on which the command green fails. What takes minutes
// comes last: what was found by then is written to t.Out before the API is compared,
// and green is not run when something else was in the way.
func Release(ctx context.Context, t Trial, version string, green []string) (Plan, error) {
	p := Plan{Version: version}
	if err := CheckVersion(version); err != nil {
		return p, &RefusedError{Reasons: []string{err.Error()}}
	}
	work, err := t.fresh()
	if err != nil {
		return p, err
	}
	git := shell{dir: t.Repo, env: t.Env}
	if p.Commit, err = git.run(ctx, "git", "rev-parse", "HEAD"); err != nil {
		return p, err
	}
	p.Commit = strings.TrimSpace(p.Commit)
	tree := filepath.Join(work, "tree")
	links, err := Export(ctx, t.Repo, p.Commit, tree, t.Env)
	if err != nil {
		return p, err
	}
	if err := t.sayLinks(tree, links); err != nil {
		return p, err
	}
	reasons, err := t.beforehand(ctx, tree, &p)
	if err != nil {
		return p, err
	}
	more, err := t.inTree(ctx, tree, filepath.Join(work, "proxy"), &p)
	if err != nil {
		return p, err
	}
	reasons = append(reasons, more...)
	for _, r := range reasons {
		fmt.Fprintf(t.Out, "release   in the way: %s\n", r)
	}
	if len(p.Zips) > 0 {
		if more, err = t.broken(ctx, tree, p); err != nil {
			return p, err
		}
		reasons = append(reasons, more...)
	}
	if len(reasons) == 0 && len(green) > 0 {
		if _, err := git.run(ctx, green...); ctx.Err() != nil {
			return p, err
		} else if err != nil {
			reasons = append(reasons, "the tree is red: "+err.Error())
		}
	}
	if len(reasons) > 0 {
		return p, &RefusedError{Reasons: reasons}
	}
	return p, nil
}

// beforehand looks at what a person sees to before a release, and sets the plan's
// notes. What a draft may lack becomes something to do by hand.
func (t Trial) beforehand(ctx context.Context, tree string, p *Plan) (reasons []string, err error) {
	amiss := func(what string) {
		if t.Draft {
			p.ByHand = append(p.ByHand, what)
		} else {
			reasons = append(reasons, what)
		}
	}
	git := shell{dir: t.Repo, env: t.Env}
	branch := cmp.Or(t.Branch, "main")
	if on, err := git.run(ctx, "git", "rev-parse", "--abbrev-ref", "HEAD"); err != nil {
		return nil, err
	} else if on = strings.TrimSpace(on); on != branch {
		amiss(fmt.Sprintf("HEAD is on %s, and releases are made from %s; check that out, or name another branch with -branch", strings.Replace(on, "HEAD", "no branch", 1), branch))
	}
	for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := git.run(ctx, "git", "var", who); ctx.Err() != nil {
			return nil, err
		} else if err != nil {
			amiss("git knows nobody to make the commit and the tags for; set user.name and user.email by git config")
			break
		}
	}
	if status, err := t.status(ctx); err != nil {
		return nil, err
	} else if status != "" {
		reasons = append(reasons, "the tree has changes that are not committed; commit or remove them:\n"+strings.TrimRight(status, "\n"))
	}
	p.Notes, err = notes(tree, p.Version)
	if errors.Is(err, errNoSection) && t.Draft {
		amiss(fmt.Sprintf("commit CHANGELOG.md with the heading\n\n  + ## [%s] - YYYY-MM-DD\n\nabove what stands under Unreleased", strings.TrimPrefix(p.Version, "v")))
		p.Notes, err = unreleased(tree)
	}
	if err != nil {
		reasons = append(reasons, err.Error())
	}
	return reasons, nil
}

// inTree packs the modules, and tells what is wrong with what is in them, and with the
// version beside their last ones. Without zips in the plan they could not be packed.
func (t Trial) inTree(ctx context.Context, tree, proxy string, p *Plan) ([]string, error) {
	modules, _ := Modules(tree) // Prepare says what is wrong with them
	reasons, err := t.notAbove(ctx, modules, p.Version)
	if err != nil {
		return nil, err
	}
	if p.Zips, err = Prepare(tree, proxy, p.Version); err != nil {
		p.Zips = nil
		return append(reasons, err.Error()), nil
	}
	var wrong []Fault
	for _, z := range p.Zips {
		w, err := Contents(z, Rules())
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, w...)
	}
	if len(wrong) > 0 {
		reasons = append(reasons, (&ContentsError{Wrong: wrong}).Error())
	}
	return reasons, nil
}

// broken tells which modules of the tree that is released break callers. The working
// tree may differ, which is another reason.
func (t Trial) broken(ctx context.Context, tree string, p Plan) ([]string, error) {
	var modules []Module
	for _, z := range p.Zips {
		modules = append(modules, z.Module)
	}
	breaks, err := t.breaks(ctx, tree, modules, p.Version)
	if err != nil && ctx.Err() == nil {
		return []string{"the API cannot be compared: " + err.Error()}, nil
	}
	var reasons []string
	for _, b := range breaks {
		reasons = append(reasons, b.Error())
	}
	return reasons, err
}

// CheckVersion takes what the go command takes as a tag of a module whose path has
// no major version in it: https://go.dev/ref/mod#versions. Its error says what to
// set instead.
func CheckVersion(v string) error {
	switch {
	case v == "":
		return errors.New("no version; set VERSION=vX.Y.Z")
	case !semver.IsValid(v) || semver.Canonical(v) != v:
		return fmt.Errorf("version %q should be like v1.2.3 or v1.2.3-rc.1", v)
	case semver.Major(v) != "v0" && semver.Major(v) != "v1":
		return fmt.Errorf("version %s needs module paths that end in /%s", v, semver.Major(v))
	case module.IsPseudoVersion(v):
		return fmt.Errorf("version %s is a pseudo-version, which stands for a commit without a tag", v)
	}
	return nil
}

var errNoSection = errors.New("move there what stands under Unreleased")

// notes is the section of the changelog that is about a version.
func notes(tree, version string) (string, error) {
	name := strings.TrimPrefix(version, "v")
	section, found, err := section(tree, `\[`+regexp.QuoteMeta(name)+`\] - \d{4}-\d{2}-\d{2}`)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("CHANGELOG.md has no heading \"## [%s] - YYYY-MM-DD\": %w", name, errNoSection)
	case section == "":
		return "", fmt.Errorf("CHANGELOG.md says nothing under [%s]", name)
	}
	return section, nil
}

// unreleased is what the next version's section will be.
func unreleased(tree string) (string, error) {
	section, _, err := section(tree, `\[Unreleased\]`)
	if err == nil && section == "" {
		err = errors.New("CHANGELOG.md says nothing under [Unreleased]: there is nothing to release")
	}
	return section, err
}

// section is the text under a heading of the changelog.
func section(tree, heading string) (text string, found bool, err error) {
	all, err := os.ReadFile(filepath.Join(tree, "CHANGELOG.md"))
	if err != nil {
		return "", false, err
	}
	head := regexp.MustCompile(`(?m)^## ` + heading + `$`).FindIndex(all)
	if head == nil {
		return "", false, nil
	}
	below, _, _ := bytes.Cut(all[head[1]:], []byte("\n## "))
	return string(bytes.TrimSpace(below)), true, nil
}

// String is what the release does, for people.
func (p Plan) String() string {
	var b strings.Builder
	for _, what := range p.ByHand {
		fmt.Fprintf(&b, "Before it is made, by hand: %s.\n\n", what)
	}
	fmt.Fprintf(&b, "Release %s of commit %s.\n\nOne commit on no branch, whose parent is that one, changes these files:\n", p.Version, p.Commit)
	for _, z := range p.Zips {
		for _, c := range z.Changes {
			fmt.Fprintf(&b, "\n%s\n", c.File)
			for _, line := range diff(string(c.Old), string(c.New)) {
				b.WriteString("  " + line + "\n")
			}
		}
	}
	b.WriteString("\nThese tags are set on it, and pushed in this order:\n\n")
	for _, tag := range p.Tags() {
		fmt.Fprintf(&b, "  git push origin refs/tags/%s\n", tag)
	}
	fmt.Fprintf(&b, "\nNotes:\n\n%s\n", p.Notes)
	return b.String()
}

// diff lists the lines that one text has more often than the other: enough for
// go.mod and go.sum, where order means nothing.
func diff(old, text string) []string {
	count := map[string]int{}
	for line := range strings.Lines(text) {
		count[line]++
	}
	var lines []string
	for line := range strings.Lines(old) {
		if count[line]--; count[line] < 0 && strings.TrimSpace(line) != "" {
			lines = append(lines, "- "+strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(text) {
		if count[line] > 0 && strings.TrimSpace(line) != "" {
			count[line]--
			lines = append(lines, "+ "+strings.TrimSpace(line))
		}
	}
	return lines
}

// Make makes the commit and the tags in the repository, and pushes nothing. The
// branch, the index and the working tree stay as they are. When a tag cannot be set, those
// that were are deleted.
func (p Plan) Make(ctx context.Context, t Trial) (commit string, err error) {
	if len(p.ByHand) > 0 {
		return "", &RefusedError{Reasons: p.ByHand}
	}
	index, err := os.CreateTemp("", "release-index-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(index.Name()) }()
	if err := errors.Join(index.Close(), os.Remove(index.Name())); err != nil { // git makes it
		return "", err
	}
	git := shell{dir: t.Repo, env: append(t.Env, "GIT_INDEX_FILE="+index.Name())}
	if _, err := git.run(ctx, "git", "read-tree", p.Commit); err != nil {
		return "", err
	}
	for _, z := range p.Zips {
		for _, c := range z.Changes {
			if err := git.store(ctx, c); err != nil {
				return "", err
			}
		}
	}
	tree, err := git.run(ctx, "git", "write-tree")
	if err != nil {
		return "", err
	}
	message := "release " + p.Version + "\n\n" + p.Notes
	if commit, err = git.run(ctx, "git", "commit-tree", "-p", p.Commit, "-m", message, strings.TrimSpace(tree)); err != nil {
		return "", err
	}
	commit = strings.TrimSpace(commit)
	return commit, p.tag(ctx, git, commit, message)
}

func (p Plan) tag(ctx context.Context, git shell, commit, message string) error {
	for i, tag := range p.Tags() {
		if _, err := git.run(ctx, "git", "tag", "--annotate", "-m", message, tag, commit); err != nil {
			for _, made := range p.Tags()[:i] {
				_, undo := git.run(context.WithoutCancel(ctx), "git", "tag", "--delete", made)
				err = errors.Join(err, undo)
			}
			return err
		}
	}
	return nil
}

// store puts a file into the index.
func (s shell) store(ctx context.Context, c Change) error {
	f, err := os.CreateTemp("", "release-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(c.New)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	id, err := s.run(ctx, "git", "hash-object", "-w", "--no-filters", f.Name())
	if err != nil {
		return err
	}
	_, err = s.run(ctx, "git", "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(id)+","+c.File)
	return err
}
