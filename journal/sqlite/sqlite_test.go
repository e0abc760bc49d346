// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
)

var store = journaltest.Store{
	Open: func(folder string) (journal.Journal, error) {
		return sqlite.Open(context.Background(), filepath.Join(folder, "journal.db"), sqlite.Options{Poll: 2 * time.Millisecond})
	},
	Files: func(folder string) []string { return []string{filepath.Join(folder, "journal.db")} },
}

func TestMain(m *testing.M) {
	if part := os.Getenv(journaltest.ChildEnv); part != "" {
		os.Exit(journaltest.Child(context.Background(), store, part, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func TestSQLite(t *testing.T) { journaltest.Run(t, store) }

func BenchmarkAppend(b *testing.B) { journaltest.BenchAppend(b, store) }
func BenchmarkReload(b *testing.B) { journaltest.BenchReload(b, store) }
