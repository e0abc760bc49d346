// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Export writes the tree of a revision of the git repository that repo lies in
// into the folder dir, as a module proxy sees it: what is not committed is not
// there, and what .gitattributes has git archive leave out or fill in, export-ignore
// and export-subst, is there as it is committed, since the go command turns both off.
// Attributes, filters and settings of this machine do not count. Symbolic links are
// left out, as they are from a module's zip, and returned, by name with slashes.
func Export(ctx context.Context, repo, revision, dir string, env []string) (links []string, err error) {
	git, commit, undo, err := bare(ctx, repo, revision, env)
	if err != nil {
		return nil, err
	}
	defer undo()
	// As the go command asks: cmd/go/internal/modfetch/codehost, ReadZip.
	cmd := exec.CommandContext(ctx, git.find("git"), "-c", "core.autocrlf=input", "-c", "core.eol=lf", "archive", "--format=tar", commit)
	cmd.Dir, cmd.Env = git.dir, git.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	links, err = unpack(tar.NewReader(out), dir)
	if err != nil {
		_ = out.Close() // so that git ends
	}
	if gitErr := cmd.Wait(); gitErr != nil && err == nil {
		err = fmt.Errorf("git archive %s: %w: %s", revision, gitErr, stderr.String())
	}
	return links, err
}

// bare makes an empty repository that has the objects of another one at hand, and
// none of its settings and attributes, with a shell in it. undo removes it.
func bare(ctx context.Context, repo, revision string, env []string) (git shell, commit string, undo func(), err error) {
	from := shell{dir: repo, env: env}
	if commit, err = from.run(ctx, "git", "rev-parse", "--verify", "--end-of-options", revision+"^{commit}"); err != nil {
		return shell{}, "", nil, err
	}
	var answers [2]string
	for i, question := range []string{"--git-path objects", "--show-object-format"} {
		out, err := from.run(ctx, append([]string{"git", "rev-parse"}, strings.Fields(question)...)...)
		if err != nil {
			return shell{}, "", nil, err
		}
		answers[i] = strings.TrimSuffix(out, "\n")
	}
	objects := answers[0]
	if !filepath.IsAbs(objects) {
		if objects, err = filepath.Abs(filepath.Join(repo, objects)); err != nil {
			return shell{}, "", nil, err
		}
	}
	dir, err := os.MkdirTemp("", "export-*")
	if err != nil {
		return shell{}, "", nil, err
	}
	undo = func() { _ = os.RemoveAll(dir) }
	git = shell{dir: dir, env: append(
		slices.Clone(env), "GIT_DIR="+dir, "GIT_OBJECT_DIRECTORY="+filepath.Join(dir, "objects"),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=0", "GIT_ATTR_NOSYSTEM=1",
	)}
	_, err = git.run(ctx, "git", "init", "--quiet", "--bare", "--template=", "--object-format="+answers[1])
	if err == nil {
		err = errors.Join(
			writeAll(filepath.Join(dir, "info", "attributes"), "* -export-subst -export-ignore\n"),
			writeAll(filepath.Join(dir, "objects", "info", "alternates"), objects+"\n"),
		)
	}
	if err != nil {
		undo()
		return shell{}, "", nil, err
	}
	return git, strings.TrimSpace(commit), undo, nil
}

func writeAll(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func unpack(r *tar.Reader, dir string) (links []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return links, nil
		}
		if err != nil {
			return nil, fmt.Errorf("git archive: %w", err)
		}
		name := filepath.FromSlash(strings.TrimSuffix(h.Name, "/"))
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = writeFrom(root, name, r, h.FileInfo().Mode().Perm())
		case tar.TypeSymlink:
			links = append(links, h.Name)
		default: // the comment that names the commit
		}
		if err != nil {
			return nil, err
		}
	}
}

func writeFrom(root *os.Root, name string, r io.Reader, mode os.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
