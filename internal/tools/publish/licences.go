// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fiducial-dev/fiducial/internal/tools/licence"
)

// Licences writes THIRD_PARTY.md at the root of the working tree.
func Licences(ctx context.Context, t Trial) error {
	root, modules, err := t.tree()
	if err != nil {
		return err
	}
	var folders []licence.Folder
	ours := ""
	for _, m := range modules {
		folders = append(folders, licence.Folder{Name: m.Dir, Dir: filepath.Join(root, m.Dir)})
		if m.Dir == "." {
			ours = m.Path
		}
	}
	r, err := licence.Collect(ctx, folders, ours, t.Env)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "licences  %d linked, %d in tests alone\n", len(r.Linked), len(r.Tests))
	return os.WriteFile(filepath.Join(root, "THIRD_PARTY.md"), []byte(r.Markdown()), 0o644)
}
