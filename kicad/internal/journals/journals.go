// SPDX-License-Identifier: Apache-2.0

// Package journals chooses where the command keeps its runs: in the project's own
// SQLite database, or on a PostgreSQL server that several machines share.
package journals

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
)

// Env names the environment variable that moves the journal to a server: the
// address of a database, postgres://user:password@host:port/database. Unset or
// empty, the journal is .fiducial/journal.db. The password may stand in PGPASSWORD
// or in a password file instead, as with PostgreSQL's own programs.
const Env = "FIDUCIAL_JOURNAL"

// ErrAddress says that the variable holds no address that can be used.
var ErrAddress = errors.New(Env + " is no address of a PostgreSQL database: " +
	"give postgres://user@host:port/database, or unset it to keep runs in .fiducial/journal.db")

// A Place is where runs are kept.
type Place struct {
	file    string // of a SQLite database
	address string // of a server, with its password; empty for a file
	name    string
}

// Find reads the variable by getenv, such as [os.Getenv]. Top is the folder of the
// project. Errors: [ErrAddress].
func Find(getenv func(string) string, top string) (Place, error) {
	address := strings.TrimSpace(getenv(Env))
	if address == "" {
		file := runs.Journal(top)
		return Place{file: file, name: file}, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil: // its text holds the password
		return Place{}, ErrAddress
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return Place{}, fmt.Errorf("%w (it is of the kind %q)", ErrAddress, u.Scheme)
	case u.Host == "" && !u.Query().Has("host"):
		return Place{}, fmt.Errorf("%w (it names no host)", ErrAddress)
	}
	shown := url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}
	if user := u.User.Username(); user != "" {
		shown.User = url.User(user)
	}
	return Place{address: address, name: shown.String()}, nil
}

// String names the place for people, without a password.
func (p Place) String() string { return p.name }

// GoString is String, so that no way of printing a Place shows the password.
func (p Place) GoString() string { return p.name }

// Shared reports whether other machines may use the same place.
func (p Place) Shared() bool { return p.address != "" }

// Open opens the journal for writing and makes it when it is missing. Close it at
// the end. No error holds the password.
func (p Place) Open(ctx context.Context) (journal.Journal, error) { return p.open(ctx, false) }

// OpenReader opens the journal for reading only. A database that is missing is an
// error (errors.Is [io/fs.ErrNotExist]); one on a server in which nobody has written
// yet is a [*journal.FormatError].
func (p Place) OpenReader(ctx context.Context) (journal.Journal, error) { return p.open(ctx, true) }

// Open is Find and [Place.Open] in one.
func Open(ctx context.Context, getenv func(string) string, top string) (journal.Journal, error) {
	p, err := Find(getenv, top)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx)
}

func (p Place) open(ctx context.Context, readOnly bool) (journal.Journal, error) {
	if p.Shared() {
		j, err := postgres.Open(ctx, p.address, postgres.Options{ReadOnly: readOnly})
		if err != nil {
			return nil, fmt.Errorf("open the journal at %s: %w", p, err)
		}
		return j, nil
	}
	j, err := sqlite.Open(ctx, p.file, sqlite.Options{ReadOnly: readOnly})
	if err != nil {
		return nil, fmt.Errorf("open the journal %s: %w", p, err)
	}
	return j, nil
}
