//go:build unix

// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/postgres/postgrestest"
)

// urlEnv tells other processes of the tests where the server is.
const urlEnv = "FIDUCIAL_POSTGRESTEST_URL"

const ttl = time.Second

// schemaOf gives each folder of the suite tables of its own.
func schemaOf(folder string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(folder)) // a hash does not fail
	return fmt.Sprintf("t%016x", h.Sum64())
}

func open(ctx context.Context, url, folder string) (journal.Journal, error) {
	return postgres.Open(ctx, url, postgres.Options{Schema: schemaOf(folder), TTL: ttl})
}

var store = journaltest.Store{
	Open: func(folder string) (journal.Journal, error) {
		return open(context.Background(), os.Getenv(urlEnv), folder)
	},
	Server: true, Lease: ttl,
}

func TestMain(m *testing.M) {
	if part := os.Getenv(journaltest.ChildEnv); part != "" {
		os.Exit(journaltest.Child(context.Background(), store, part, os.Stdin, os.Stdout))
	}
	os.Exit(withServer(m.Run))
}

// withServer runs the tests beside a server. Without its programs they are left
// out, or fail where it is required.
func withServer(run func() int) int {
	s, err := postgrestest.Start(context.Background(), os.Stderr)
	if errors.Is(err, postgrestest.ErrMissing) && os.Getenv(postgrestest.RequireEnv) != "1" {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		return run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := os.Setenv(urlEnv, s.URL); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// server is the URL of the server, or skips the test.
func server(t testing.TB) string {
	t.Helper()
	url := os.Getenv(urlEnv)
	if url == "" {
		t.Skip(postgrestest.ErrMissing)
	}
	return url
}

func TestPostgres(t *testing.T) {
	server(t)
	journaltest.Run(t, store)
}

func BenchmarkAppend(b *testing.B) {
	server(b)
	journaltest.BenchAppend(b, store)
}

func BenchmarkReload(b *testing.B) {
	server(b)
	journaltest.BenchReload(b, store)
}
