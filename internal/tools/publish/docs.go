// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fiducial-dev/fiducial/internal/tools/doccheck"
)

// Docs renders the documentation of every package of the modules that are
// published, as go doc does, and holds their comments by [doccheck.Check]. It reads
// the working tree.
func Docs(ctx context.Context, t Trial) error {
	root, modules, err := t.tree()
	if err != nil {
		return err
	}
	all, err := Modules(root)
	if err != nil {
		return err
	}
	ours := map[string]string{}
	for _, m := range all {
		ours[m.Path] = filepath.Join(root, m.Dir)
	}
	faults := 0
	for _, m := range modules {
		dir := filepath.Join(root, m.Dir)
		env := append(t.Env, "GOWORK=off")
		found, n, err := doccheck.Check(ctx, dir, env, ours, "./...")
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
		for _, f := range found {
			if rel, err := filepath.Rel(root, f.Pos.Filename); err == nil {
				f.Pos.Filename = rel
			}
			fmt.Fprintln(t.Out, f)
		}
		faults += len(found)
		lines, err := render(ctx, shell{dir: dir, env: env})
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "docs      %-60s %3d packages, %5d lines\n", m.Path, n, lines)
	}
	if faults > 0 {
		return fmt.Errorf("%d faults in doc comments", faults)
	}
	return nil
}

// render runs go doc -all over the packages of a module and counts lines.
func render(ctx context.Context, sh shell) (int, error) {
	out, err := sh.run(ctx, "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return 0, err
	}
	lines := 0
	for pkg := range strings.FieldsSeq(out) {
		text, err := sh.run(ctx, "go", "doc", "-all", pkg)
		if err != nil {
			return 0, err
		}
		if strings.TrimSpace(text) == "" {
			return 0, errors.New("go doc -all " + pkg + " printed nothing")
		}
		lines += strings.Count(text, "\n")
	}
	return lines, nil
}
