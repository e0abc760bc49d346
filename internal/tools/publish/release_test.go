// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

// released is a tree whose folders have rules.
const released = `
-- CHANGELOG.md --
# Changelog

## [Unreleased]

## [1.2.3] - 2026-11-30

### Added

- All of it.

## [1.2.2] - 2026-11-29
-- LICENSE --
ours
-- go.mod --
module example.com/a

go 1.26
-- a.go --
// Package a is exported.
package a

// F is, too.
func F(int) {}
-- kicad/go.mod --
module example.com/a/kicad

go 1.26.0

require example.com/a v0.0.0

replace example.com/a => ..
-- kicad/k.go --
// Package kicad uses a.
package kicad

import "example.com/a"

// G calls it.
func G() { a.F(1) }
-- toolgen/go.mod --
module example.com/a/toolgen

go 1.26
-- toolgen/t.go --
// Package toolgen is by itself.
package toolgen
`

func trial(t *testing.T, repo string) (publish.Trial, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	return publish.Trial{Repo: repo, Work: t.TempDir(), Env: append(gitEnv(), "GOWORK=off"), Out: &out}, &out
}

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		before  func(dir string)
		green   []string
		want    string
	}{
		"no version":       {"1.2.3", nil, nil, `version "1.2.3" should be like`},
		"an empty one":     {"", nil, nil, "set VERSION=vX.Y.Z"},
		"half a version":   {"v1.2", nil, nil, `version "v1.2" should be like`},
		"build metadata":   {"v1.2.3+x", nil, nil, "should be like"},
		"a second major":   {"v2.0.0", nil, nil, "end in /v2"},
		"a pseudo-version": {"v0.0.0-20261130120000-0123456789ab", nil, nil, "pseudo-version"},
		"not in the log":   {"v1.2.4", nil, nil, `no heading "## [1.2.4] - YYYY-MM-DD"`},
		"nothing to say":   {"v1.2.2", nil, nil, "says nothing under [1.2.2]"},
		"a changed tree":   {"v1.2.3", func(dir string) { write(t, filepath.Join(dir, "new.go"), "package a\n") }, nil, "not committed"},
		"a red tree":       {"v1.2.3", nil, []string{"git", "rev-parse", "--verify", "none"}, "the tree is red"},
		"a version again":  {"v1.2.3", func(dir string) { git(t, dir, "tag", "kicad/v1.2.3") }, nil, "module example.com/a/kicad is at v1.2.3 already"},
		"what may not out": {"v1.2.3", func(dir string) {
			write(t, filepath.Join(dir, "toolgen/key.pem"), "x")
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-q", "-m", "key")
		}, nil, "\n  toolgen/key.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t, released)
			if c.before != nil {
				c.before(dir)
			}
			tr, _ := trial(t, dir)
			_, err := publish.Release(t.Context(), tr, c.version, c.green)
			refused, ok := err.(*publish.RefusedError) //nolint:errorlint // nothing wraps it
			if !ok || len(refused.Reasons) != 1 || !strings.Contains(refused.Reasons[0], c.want) {
				t.Errorf("got %v, want one reason with %q", err, c.want)
			}
		})
	}
}

// TestReleaseTellsAll: everything that is in the way in one run, what is cheap to
// find first and at once, breaks of callers too; green is not run then. What is not
// committed is not released, and so breaks nobody.
func TestReleaseTellsAll(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	git(t, dir, "tag", "v1.2.2")
	git(t, dir, "tag", "toolgen/v1.2.4")
	git(t, dir, "checkout", "-q", "-b", "feature")
	write(t, filepath.Join(dir, "a.go"), "package a\n\nfunc F(...int) {}\n")
	write(t, filepath.Join(dir, "kicad/.env"), "A=b\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "all at once")
	write(t, filepath.Join(dir, "a.go"), "package a\n")
	git(t, dir, "config", "user.useConfigOnly", "true")
	tr, out := trial(t, dir)
	tr.Env = slices.DeleteFunc(tr.Env, func(kv string) bool { return strings.Contains(kv, "_NAME=a") || strings.Contains(kv, "_EMAIL=a@") })
	ran := filepath.Join(t.TempDir(), "ran")
	_, err := publish.Release(t.Context(), tr, "v1.2.3", []string{"touch", ran})
	refused, ok := errors.AsType[*publish.RefusedError](err)
	want := []string{
		"HEAD is on feature, and releases are made from main", "git knows nobody", "not committed; commit or remove them:\n M a.go", "module example.com/a/toolgen is at v1.2.4 already",
		"\n  kicad/.env", "F: changed from func(int) to func(...int)",
	}
	if !ok || len(refused.Reasons) != len(want) {
		t.Fatalf("got %v, want %d reasons", err, len(want))
	}
	for i, part := range want {
		if !strings.Contains(refused.Reasons[i], part) || strings.HasSuffix(refused.Reasons[i], "\n") {
			t.Errorf("reason %d: got %q, want %q", i, refused.Reasons[i], part)
		}
	}
	said, compared := strings.Index(out.String(), "release   in the way: HEAD is on feature"), strings.Index(out.String(), "api ")
	if said < 0 || compared < said || strings.Count(out.String(), "in the way: ") != len(want)-1 {
		t.Errorf("the cheap reasons were not told before the API was compared:\n%s", out)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("green ran: %v", err)
	}
}

// TestReleaseFromAnotherBranch: one that an option names will do; a draft says what
// would be in the way, and cannot be made.
func TestReleaseFromAnotherBranch(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	git(t, dir, "checkout", "-q", "-b", "v1-fixes")
	tr, _ := trial(t, dir)
	tr.Branch = "v1-fixes"
	if _, err := publish.Release(t.Context(), tr, "v1.2.3", nil); err != nil {
		t.Errorf("the branch that was named: %v", err)
	}
	git(t, dir, "checkout", "-q", "--detach")
	if _, err := publish.Release(t.Context(), tr, "v1.2.3", nil); err == nil || !strings.Contains(err.Error(), "HEAD is on no branch") {
		t.Errorf("no branch: got %v", err)
	}
	tr.Draft = true
	plan, err := publish.Release(t.Context(), tr, "v1.2.3", nil)
	if err != nil || !strings.Contains(plan.String(), "Before it is made, by hand: HEAD is on no branch, and releases are made from v1-fixes") {
		t.Errorf("a draft: got %v\n%s", err, plan)
	}
	if _, err := plan.Make(t.Context(), tr); err == nil || git(t, dir, "tag") != "" {
		t.Errorf("made it: %v, tags %q", err, git(t, dir, "tag"))
	}
}

// TestRelease: the plan says what is done, and doing it leaves branch, index and
// files alone. The released tree builds with sums that are its own.
func TestRelease(t *testing.T) {
	t.Parallel()
	dir := repository(t, released+"-- .gitattributes --\n*_test.go export-ignore\n-- a_test.go --\npackage a\n")
	head := git(t, dir, "rev-parse", "HEAD")
	tr, _ := trial(t, dir)
	plan, err := publish.Release(t.Context(), tr, "v1.2.3", []string{"git", "rev-parse", "HEAD"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"toolgen/v1.2.3", "v1.2.3", "kicad/v1.2.3"}
	if diff := cmp.Diff(want, plan.Tags()); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	text := plan.String()
	for _, part := range []string{
		"  - require example.com/a v0.0.0\n", "  - replace example.com/a => ..\n", "  + require example.com/a v1.2.3\n", "  + example.com/a v1.2.3 h1:",
		"  git push origin refs/tags/kicad/v1.2.3\n", "- All of it.",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan lacks %q:\n%s", part, text)
		}
	}
	if tags := git(t, dir, "tag"); tags != "" {
		t.Errorf("planning set tags: %s", tags)
	}
	commit, err := plan.Make(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, strings.Fields(git(t, dir, "tag", "--points-at", commit))); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if got := git(t, dir, "show", "--format=", "--name-only", commit); got != "kicad/go.mod\nkicad/go.sum" {
		t.Errorf("the commit changes %q", got)
	}
	if got, want := git(t, dir, "show", commit+":kicad/go.sum"), vcsSum(t, dir, commit); !strings.Contains(got, want) {
		t.Errorf("go.sum of kicad is\n%s\nand of the tag comes %q", got, want)
	}
	if got := git(t, dir, "rev-parse", "HEAD", commit+"^"); got != head+"\n"+head || git(t, dir, "status", "--porcelain") != "" {
		t.Errorf("HEAD and the commit's parent are %q, want %q twice; status %q", got, head, git(t, dir, "status", "--porcelain"))
	}
}

// TestReleaseDraft: a version that the changelog does not name yet is planned of what
// stands under Unreleased, and not made.
func TestReleaseDraft(t *testing.T) {
	t.Parallel()
	dir := repository(t, strings.Replace(released, "## [Unreleased]\n", "## [Unreleased]\n\n- What comes.\n", 1))
	tr, _ := trial(t, dir)
	tr.Draft = true
	plan, err := publish.Release(t.Context(), tr, "v1.2.4", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := plan.String()
	for _, part := range []string{"  + ## [1.2.4] - YYYY-MM-DD\n", "- What comes.", "  git push origin refs/tags/kicad/v1.2.4\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "All of it") {
		t.Errorf("the notes hold those of another version:\n%s", text)
	}
	if _, err := plan.Make(t.Context(), tr); err == nil || git(t, dir, "tag") != "" {
		t.Errorf("made it: %v, tags %q", err, git(t, dir, "tag"))
	}
	tr, _ = trial(t, repository(t, released))
	tr.Draft = true
	if _, err := publish.Release(t.Context(), tr, "v1.2.4", nil); err == nil || !strings.Contains(err.Error(), "nothing under [Unreleased]") {
		t.Errorf("nothing to release: got %v", err)
	}
}

// TestCheckTellsAll: a key in one module and modules that nobody uses are found in
// one run, and neither hides the other (E-267).
func TestCheckTellsAll(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	key := "sk-" + "ant-api03-h4Xq" + "Zp0LmT9vRb27cWnKe81"
	write(t, filepath.Join(dir, "toolgen/testdata/answer.json"), `{"asked with": "`+key+`"}`)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "recorded")
	tr, _ := trial(t, dir)
	tr.Offline = true
	err := publish.Check(t.Context(), tr)
	contents, ok := errors.AsType[*publish.ContentsError](err)
	if !ok || len(contents.Wrong) != 1 || !strings.Contains(contents.Wrong[0].What, "toolgen/testdata/answer.json:1: looks like a key of a model provider") {
		t.Errorf("got %v, want the key", err)
	}
	if err == nil || !strings.Contains(err.Error(), "consumer root: ") {
		t.Errorf("got %v, want what the consumers say, too", err)
	}
	if err := publish.CheckContents(t.Context(), tr); !errors.As(err, &contents) || len(contents.Wrong) != 1 {
		t.Errorf("the contents alone: got %v, want the key", err)
	}
}

// vcsSum is go.sum's line for the root module as a proxy makes it of the tag.
func vcsSum(t *testing.T, dir, commit string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.zip")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	v := module.Version{Path: "example.com/a", Version: "v1.2.3"}
	// As the go command does, which x/mod/zip leaves to its caller.
	write(t, filepath.Join(dir, ".git/info/attributes"), "* -export-subst -export-ignore\n")
	if err := errors.Join(zip.CreateFromVCS(f, v, dir, commit, ""), f.Close()); err != nil {
		t.Fatal(err)
	}
	sum, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return v.Path + " " + v.Version + " " + sum
}

func TestReleaseLeavesNoHalf(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	tr, _ := trial(t, dir)
	plan, err := publish.Release(t.Context(), tr, "v1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "tag", "kicad/v1.2.3")
	if _, err := plan.Make(t.Context(), tr); err == nil {
		t.Error("set a tag that there was")
	}
	if tags := git(t, dir, "tag"); tags != "kicad/v1.2.3" {
		t.Errorf("tags after that: %q, want the old one alone", tags)
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	tr, out := trial(t, dir)
	if err := publish.API(t.Context(), tr, "v1.2.3"); err != nil || out.String() != "api       no module has a tag yet: nothing to compare with\n" {
		t.Errorf("without tags: %v\n%s", err, out)
	}
	git(t, dir, "tag", "v1.2.3")
	git(t, dir, "tag", "v1.0.0") // not the last
	write(t, filepath.Join(dir, "a.go"), "// Package a is exported.\npackage a\n\n// F is, too.\nfunc F(int) {}\n\n// H is new.\nfunc H() {}\n")
	out.Reset()
	if err := publish.API(t.Context(), tr, "v1.2.4"); err != nil || !strings.Contains(out.String(), "1 changes since v1.2.3, 0 of them breaking") ||
		strings.Count(out.String(), "no tag yet") != 2 {
		t.Errorf("something new: %v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "a.go"), "package a\n\nfunc F(string) {}\n")
	write(t, filepath.Join(dir, "kicad/k.go"), "package kicad\n")
	tr.Out = io.Discard
	err := publish.API(t.Context(), tr, "v1.3.0")
	if err == nil || !strings.Contains(err.Error(), "F: changed from func(int) to func(string)") {
		t.Errorf("something changed: got %v", err)
	}
	if err := publish.API(t.Context(), tr, ""); err != nil {
		t.Errorf("no version planned: %v", err)
	}
}

// TestAPIVersion: what is no version, or not above the last, promises nothing, and is
// refused before anything is compared; before v1 a minor version may break callers.
func TestAPIVersion(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	git(t, dir, "tag", "v0.1.1")
	write(t, filepath.Join(dir, "a.go"), "package a\n\nfunc F(string) {}\n")
	write(t, filepath.Join(dir, "kicad/k.go"), "package kicad\n")
	for version, want := range map[string]string{
		"banana": "should be like v1.2.3", "0.1.2": "should be like v1.2.3", "v2.0.0": "end in /v2", "v0.1.1": "at v0.1.1 already", "v0.0.9": "at v0.1.1 already",
		"v0.1.2": "breaks callers of v0.1.1", "v0.2.0": "", "v1.0.0": "",
	} {
		tr, out := trial(t, dir)
		err := publish.API(t.Context(), tr, version)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", version, err, want)
		}
		if compared := strings.Contains(out.String(), "BREAKING"); compared != (want == "" || strings.HasPrefix(want, "breaks")) {
			t.Errorf("%s: compared: %v\n%s", version, compared, out)
		}
	}
}

// TestAPIOfARelease: the tree at a tag requires its siblings at a version that no
// proxy has, and is compared all the same.
func TestAPIOfARelease(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	tr, out := trial(t, dir)
	plan, err := publish.Release(t.Context(), tr, "v1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Make(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "kicad/k.go"), "// Package kicad uses a.\npackage kicad\n\nimport \"example.com/a\"\n\n// H calls it.\nfunc H() { a.F(1) }\n")
	tr.Env = append(tr.Env, "GOPROXY=off")
	err = publish.API(t.Context(), tr, "v1.2.4")
	broken, ok := errors.AsType[*publish.APIError](err)
	if !ok || broken.Module != "example.com/a/kicad" || len(broken.Changes) != 1 || !strings.Contains(out.String(), "2 changes since v1.2.3, 1 of them breaking") {
		t.Errorf("got %v, want G gone and H new\n%s", err, out)
	}
}

// TestAlone holds that each module is built and tested by itself (E-264).
func TestAlone(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	tr, out := trial(t, dir)
	if err := publish.Alone(t.Context(), tr, "^$", ""); err != nil || strings.Count(out.String(), "alone") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	// In the workspace kicad would find it; alone it does not.
	if err := os.Remove(filepath.Join(dir, "a.go")); err != nil {
		t.Fatal(err)
	}
	if err := publish.Alone(t.Context(), tr, "^$", ""); err == nil {
		t.Error("built a module without what it needs")
	}
}

// TestAloneOne builds the module that is named, and no other.
func TestAloneOne(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	write(t, filepath.Join(dir, "toolgen/t.go"), "not Go")
	for _, only := range []string{"kicad", "kicad/", "example.com/a/kicad", "."} {
		tr, out := trial(t, dir)
		if err := publish.Alone(t.Context(), tr, "^$", only); err != nil || strings.Count(out.String(), "alone") != 1 {
			t.Errorf("%s: %v\n%s", only, err, out)
		}
	}
	tr, _ := trial(t, dir)
	if err := publish.Alone(t.Context(), tr, "^$", "none"); err == nil || !strings.Contains(err.Error(), `no module "none"; there are toolgen, ., kicad`) {
		t.Errorf("none: got %v, want those that there are", err)
	}
}

func TestParsePlatform(t *testing.T) {
	t.Parallel()
	one, err := publish.ParsePlatform("linux/amd64")
	if diff := cmp.Diff([]publish.Platform{{OS: "linux", Arch: "amd64"}}, one); diff != "" || err != nil {
		t.Errorf("one: %v (-want +got):\n%s", err, diff)
	}
	if all, err := publish.ParsePlatform(""); err != nil || len(all) != 6 {
		t.Errorf("none named: got %v, %v, want all six", all, err)
	}
	for _, bad := range []string{"linux", "linux/386", "plan9/amd64", "linux/amd64/v1"} {
		if _, err := publish.ParsePlatform(bad); err == nil || !strings.Contains(err.Error(), "there are linux/amd64, linux/arm64") {
			t.Errorf("%s: got %v, want those that there are", bad, err)
		}
	}
}
