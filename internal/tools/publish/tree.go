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
	"strings"
)

// Export writes the tree of a revision of the git repository that repo lies in
// into the folder dir, as a module proxy sees it: what is not committed is not
// there. Symbolic links are left out, as they are from a module's zip.
func Export(ctx context.Context, repo, revision, dir string, env []string) error {
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", revision)
	cmd.Dir, cmd.Env = repo, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = unpack(tar.NewReader(out), dir)
	if err != nil {
		_ = out.Close() // so that git ends
	}
	if gitErr := cmd.Wait(); gitErr != nil && err == nil {
		err = fmt.Errorf("git archive %s: %w: %s", revision, gitErr, stderr.String())
	}
	return err
}

func unpack(r *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("git archive: %w", err)
		}
		name := filepath.FromSlash(strings.TrimSuffix(h.Name, "/"))
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = writeFrom(root, name, r, h.FileInfo().Mode().Perm())
		default: // a link, or the comment that names the commit
		}
		if err != nil {
			return err
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
