// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"io/fs"
)

// AsCommitted reports whether a path was at the snapshot as it is in HEAD: tracked, and without changes of the user's.
// Then what the run makes of it can be committed whatever else was not.
func (s *Snapshot) AsCommitted(ctx context.Context, path string) (bool, error) {
	const op = "compare"
	_, there := s.files[path]
	if !there || s.untracked[path] {
		return false, nil
	}
	dirty, err := s.r.diffTrees(ctx, s.head.Commit, s.clean)
	if err != nil {
		return false, fail(op, err)
	}
	_, changed := dirty[path]
	return !changed, nil
}

// File is the content that a file had at the snapshot. A path, relative to the top
// and with slashes, that held no file, or an ignored one, is [fs.ErrNotExist].
func (s *Snapshot) File(ctx context.Context, path string) ([]byte, error) {
	const op = "read"
	st, ok := s.files[path]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	cat, err := s.r.git.cat(ctx)
	if err != nil {
		return nil, fail(op, err)
	}
	defer cat.close()
	var b bytes.Buffer
	if err := cat.copy(&b, st.oid); err != nil {
		return nil, fail(op, err)
	}
	return b.Bytes(), nil
}
