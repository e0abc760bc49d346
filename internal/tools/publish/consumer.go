// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bufio"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed consumer/*.txtar
var consumers embed.FS

// A Consumer is a module that uses published ones, as a stranger would: outside
// the workspace, from a proxy. Its text is a txtar file whose comment has lines
//
//	# anything
//	require MODULE...   folders of the modules that go.mod requires; the code may import no others
//	run PROGRAM ARG...  VERSION stands for the version that is checked
//	want TEXT           the standard output of the last run has this in it
//
// and whose files are the module's.
type Consumer struct {
	Name  string
	lines []string
	files []txtar.File
}

// Consumers are those that this package comes with, by name.
func Consumers() ([]Consumer, error) {
	names, err := fs.Glob(consumers, "consumer/*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Consumer
	for _, name := range names {
		text, err := consumers.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, ParseConsumer(strings.TrimSuffix(path.Base(name), ".txtar"), text))
	}
	return all, nil
}

// ParseConsumer reads a consumer's text.
func ParseConsumer(name string, text []byte) Consumer {
	ar := txtar.Parse(text)
	c := Consumer{Name: name, files: ar.Files}
	for s := bufio.NewScanner(strings.NewReader(string(ar.Comment))); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "#") {
			c.lines = append(c.lines, line)
		}
	}
	return c
}

// Requires are the folders of the modules that the consumer uses: those that its
// go.mod requires, and those that it runs or installs from.
func (c Consumer) Requires() []string {
	var dirs []string
	for _, line := range c.lines {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "require":
			dirs = append(dirs, strings.Fields(rest)...)
		case word == "run" && strings.Contains(rest, "/toolgen/") && strings.Contains(rest, "@VERSION"):
			dirs = append(dirs, "toolgen")
		}
	}
	return dirs
}

// A Site is where consumers are tried.
type Site struct {
	Dir     string // an empty folder
	Env     []string
	Root    string // path of the root module
	Version string
	Go      string // the go line of the consumers' go.mod
	// Sum is the text of a go.sum that has third parties' sums: what this
	// repository builds with, users get too, and no checksum database is asked.
	Sum string
}

// Try makes the module and does what its lines say.
func (c Consumer) Try(ctx context.Context, site Site) error {
	sh := shell{dir: filepath.Join(site.Dir, c.Name), env: site.Env}
	if err := c.make(sh.dir, site); err != nil {
		return err
	}
	var out string
	var dirs []string
	for _, line := range c.lines {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "require":
			dirs = strings.Fields(rest)
			err = c.require(ctx, sh, site, dirs)
		case "run":
			out, err = sh.run(ctx, strings.Fields(strings.ReplaceAll(rest, "VERSION", site.Version))...)
		case "want":
			if want := strings.ReplaceAll(rest, "VERSION", site.Version); !strings.Contains(out, want) {
				err = fmt.Errorf("got %q, want %q in it", out, want)
			}
		default:
			err = errors.New("unknown line")
		}
		if err != nil {
			return fmt.Errorf("consumer %s: %s: %w", c.Name, line, err)
		}
	}
	if err := c.onlyOurs(ctx, sh, site, dirs); err != nil {
		return fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	return nil
}

func (c Consumer) make(dir string, site Site) error {
	files := append(slices.Clone(c.files), txtar.File{Name: "go.sum", Data: []byte(site.Sum)})
	for _, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// require writes go.mod. The go command adds what the required modules need in
// their turn; go mod tidy would ask for what their tests need as well.
func (c Consumer) require(ctx context.Context, sh shell, site Site, dirs []string) error {
	var mod strings.Builder
	fmt.Fprintf(&mod, "module example.com/%s\n\ngo %s\n", c.Name, cmp.Or(site.Go, "1.26.0"))
	for _, dir := range dirs {
		fmt.Fprintf(&mod, "\nrequire %s %s\n", path.Join(site.Root, dir), site.Version)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, "go.mod"), []byte(mod.String()), 0o644); err != nil {
		return err
	}
	_, err := sh.run(ctx, "go", "list", "-mod=mod", "-deps", "./...")
	return err
}

// onlyOurs fails when the module's code imports packages of a module that its
// require line does not name.
func (c Consumer) onlyOurs(ctx context.Context, sh shell, site Site, dirs []string) error {
	out, err := sh.run(ctx, "go", "list", "-f", `{{join .Imports "\n"}}`, "./...")
	if err != nil {
		return err
	}
	out, err = sh.run(ctx, append([]string{"go", "list", "-f", "{{with .Module}}{{.Path}}{{end}}"}, strings.Fields(out)...)...)
	if err != nil {
		return err
	}
	want := []string{"example.com/" + c.Name}
	for _, dir := range dirs {
		want = append(want, path.Join(site.Root, dir))
	}
	for m := range strings.FieldsSeq(out) {
		if !slices.Contains(want, m) {
			return fmt.Errorf("it imports packages of %s, want only those of %v", m, want)
		}
	}
	return nil
}
