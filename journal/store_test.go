// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
)

var memoryStore = journaltest.Store{
	Open: func(string) (journal.Journal, error) { return journal.NewMemory(), nil },
}

var folderStore = journaltest.Store{
	Open: func(folder string) (journal.Journal, error) {
		return journal.OpenFolder(folder, journal.FolderOptions{Poll: 5 * time.Millisecond})
	},
	Files: func(folder string) []string {
		var files []string
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			// Lock files hold no records; the epoch in them only has to grow.
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".lock") && !strings.HasSuffix(path, ".offer") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			panic(err)
		}
		return files
	},
}

func TestMain(m *testing.M) {
	if part := os.Getenv(journaltest.ChildEnv); part != "" {
		os.Exit(journaltest.Child(context.Background(), folderStore, part, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func TestMemory(t *testing.T) { journaltest.Run(t, memoryStore) }
func TestFolder(t *testing.T) { journaltest.Run(t, folderStore) }

func BenchmarkAppend(b *testing.B) {
	b.Run("memory", func(b *testing.B) { journaltest.BenchAppend(b, memoryStore) })
	b.Run("folder", func(b *testing.B) { journaltest.BenchAppend(b, folderStore) })
}

func BenchmarkReload(b *testing.B) {
	b.Run("memory", func(b *testing.B) { journaltest.BenchReload(b, memoryStore) })
	b.Run("folder", func(b *testing.B) { journaltest.BenchReload(b, folderStore) })
}
