// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Alone builds and vets every module of the working tree without the workspace,
// with the oldest Go that its go.mod states, and runs the tests whose names match
// the regular expression run; "^$" links all of them and runs none. A Go that
// cannot be had is said so, and the one at hand is used. When only is not empty, it is
// the folder or the path of the one module to look at.
func Alone(ctx context.Context, t Trial, run, only string) error {
	modules, err := Modules(t.Repo)
	if err != nil {
		return err
	}
	if modules, err = pick(modules, only); err != nil {
		return err
	}
	var failed []error
	for _, m := range modules {
		start := time.Now()
		sh := shell{dir: filepath.Join(t.Repo, m.Dir), env: append(t.Env, "GOWORK=off")}
		oldest := "GOTOOLCHAIN=go" + patch(m.Go)
		with, err := shell{dir: sh.dir, env: append(sh.env, oldest)}.run(ctx, "go", "env", "GOVERSION")
		if err != nil {
			fmt.Fprintf(t.Out, "alone     %s: go%s NOT RUN, it cannot be had: %v\n", m.Path, patch(m.Go), err)
			if with, err = sh.run(ctx, "go", "env", "GOVERSION"); err != nil {
				return err
			}
		} else {
			sh.env = append(sh.env, oldest)
		}
		if err := sh.alone(ctx, run); err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(t.Out, "alone     %-60s %s %5.1f s\n", m.Path, strings.TrimSpace(with), time.Since(start).Seconds())
	}
	return errors.Join(failed...)
}

// pick leaves the module that only names, all when it is empty.
func pick(modules []Module, only string) ([]Module, error) {
	var dirs []string
	for _, m := range modules {
		if m.Path == only || m.Dir == path.Clean(only) && only != "" {
			return []Module{m}, nil
		}
		dirs = append(dirs, m.Dir)
	}
	if only != "" {
		return nil, fmt.Errorf("no module %q; there are %s", only, strings.Join(dirs, ", "))
	}
	return modules, nil
}

func (s shell) alone(ctx context.Context, run string) error {
	for _, args := range [][]string{
		{"go", "build", "-mod=readonly", "./..."},
		{"go", "vet", "-mod=readonly", "./..."},
		{"go", "test", "-mod=readonly", "-run", run, "./..."},
	} {
		if _, err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// patch makes the name of a release of what a go line says: 1.26 is 1.26.0.
// https://go.dev/doc/toolchain#version
func patch(version string) string {
	if strings.Count(version, ".") == 1 && !strings.Contains(version, "rc") {
		return version + ".0"
	}
	return version
}
