// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"io/fs"
)

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
