//go:build unix

// SPDX-License-Identifier: Apache-2.0

package journals_test

import (
	"errors"
	"net/url"
	"os"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres/postgrestest"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
)

func TestOnAServer(t *testing.T) {
	s, err := postgrestest.Start(t.Context(), t.Output())
	if errors.Is(err, postgrestest.ErrMissing) && os.Getenv(postgrestest.RequireEnv) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "S3cret") // whom the server trusts in any case
	top := t.TempDir()
	p, err := journals.Find(env(u.String()), top)
	if err != nil || !p.Shared() {
		t.Fatalf("Find = %v, %v", p, err)
	}
	use(t, p)
	if entries, err := os.ReadDir(top); err != nil || len(entries) != 0 {
		t.Errorf("the project holds %v, %v", entries, err)
	}
	if err := s.Halt(true); err != nil {
		t.Fatal(err)
	}
	_, err = p.Open(t.Context())
	wantNoPassword(t, err, p)
	if !errors.Is(err, journal.ErrStorage) {
		t.Errorf("without its server: %v, want ErrStorage", err)
	}
}
