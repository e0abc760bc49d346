// SPDX-License-Identifier: Apache-2.0

// Package journals chooses where the command keeps its runs: in the project's own
// SQLite database, in a folder of files, or on a PostgreSQL server that several
// machines share.
package journals

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
)

// Env names the environment variable that moves the journal: to the database of a
// server, postgres://user:password@host:port/database, or to a folder of files,
// file:///path or file:path below the top of the repository. Unset or empty, the
// journal is .fiducial/journal.db. The password may stand in PGPASSWORD or in a
// password file instead, as with PostgreSQL's own programs.
const Env = "FIDUCIAL_JOURNAL"

// ErrAddress says that the variable holds no address that can be used.
var ErrAddress = errors.New(Env + " is no address of a journal: " +
	"give postgres://user@host:port/database or file:///folder, or unset it to keep runs in .fiducial/journal.db")

// A Kind of place.
type Kind uint8

// The kinds.
const (
	SQLite   Kind = iota + 1 // a database in the repository
	Folder                   // a folder of files on a local disk
	Postgres                 // a server
)

// String is the kind's name for people.
func (k Kind) String() string {
	switch k {
	case SQLite:
		return "SQLite"
	case Folder:
		return "folder"
	case Postgres:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// A Place is where runs are kept.
type Place struct {
	kind   Kind
	at     string // a file, a folder, or the address with its password
	name   string
	secret string
}

// Find reads the variable by getenv, such as [os.Getenv]. Top is the top folder of
// the repository. Errors: [ErrAddress].
func Find(getenv func(string) string, top string) (Place, error) {
	address := strings.TrimSpace(getenv(Env))
	if address == "" {
		file := runs.Journal(top)
		return Place{kind: SQLite, at: file, name: file}, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil: // its text holds the password
		return Place{}, ErrAddress
	case u.Scheme == "file":
		return folder(u, top)
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return Place{}, fmt.Errorf("%w (it is of the kind %q)", ErrAddress, u.Scheme)
	case u.Host == "" && !u.Query().Has("host"):
		return Place{}, fmt.Errorf("%w (it names no host)", ErrAddress)
	}
	shown := url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}
	if user := u.User.Username(); user != "" {
		shown.User = url.User(user)
	}
	secret, _ := u.User.Password()
	if v := u.Query().Get("password"); v != "" {
		secret = v
	}
	return Place{kind: Postgres, at: address, name: shown.String(), secret: secret}, nil
}

func folder(u *url.URL, top string) (Place, error) {
	path := filepath.FromSlash(u.Path)
	if u.Opaque != "" { // file:path
		rest, err := url.PathUnescape(u.Opaque)
		if err != nil {
			return Place{}, ErrAddress
		}
		path = filepath.FromSlash(rest)
	}
	switch {
	case u.Host != "" && u.Host != "localhost":
		return Place{}, fmt.Errorf("%w (file: names a folder of this machine; write file:///folder)", ErrAddress)
	case path == "" || u.RawQuery != "" || u.Fragment != "":
		return Place{}, fmt.Errorf("%w (it names no folder)", ErrAddress)
	case !filepath.IsAbs(path):
		path = filepath.Join(top, path)
	}
	return Place{kind: Folder, at: path, name: path}, nil
}

// String names the place for people, without a password.
func (p Place) String() string { return p.name }

// GoString is String, so that no way of printing a Place shows the password.
func (p Place) GoString() string { return p.name }

// Kind is what the place is.
func (p Place) Kind() Kind { return p.kind }

// Path is the file or folder, empty on a server.
func (p Place) Path() string {
	if p.kind == Postgres {
		return ""
	}
	return p.at
}

// Shared reports whether other repositories, or other machines, may use the same
// place.
func (p Place) Shared() bool { return p.kind != SQLite }

// Secrets are the values that must not be shown or stored: the password, when the
// address has one.
func (p Place) Secrets() []string {
	if p.secret == "" {
		return nil
	}
	return []string{p.secret}
}

// An UnreachableError says that the journal cannot be opened. It holds no password.
type UnreachableError struct {
	Place Place
	Err   error
}

func (e *UnreachableError) Error() string {
	if IsFull(e.Err) {
		return fmt.Sprintf("the disk that holds the journal %s is full (%v)", e.Place, e.Err)
	}
	if e.Place.kind == Postgres {
		return fmt.Sprintf("the journal on the server %s cannot be used: %s", e.Place, oneLine(e.Err.Error()))
	}
	return fmt.Sprintf("the journal %s cannot be used: %v", e.Place, e.Err)
}

// IsFull reports whether err says that a journal's disk is full.
func IsFull(err error) bool {
	return errors.Is(err, journal.ErrFull) || errors.Is(err, syscall.ENOSPC)
}

// oneLine makes one line of what the driver says, each attempt in a line of its own, and the same of two attempts once.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Open opens the journal for writing and makes it when it is missing. Close it at
// the end. Errors: [*UnreachableError].
func (p Place) Open(ctx context.Context) (journal.Journal, error) { return p.open(ctx, false) }

// OpenReader opens the journal for reading only. Errors: [*UnreachableError], around
// one that is [io/fs.ErrNotExist] for a file or folder that is missing, and a
// [*journal.FormatError] of version 0 for a server on which nobody has written yet.
func (p Place) OpenReader(ctx context.Context) (journal.Journal, error) { return p.open(ctx, true) }

// Open is Find and [Place.Open] in one.
func Open(ctx context.Context, getenv func(string) string, top string) (journal.Journal, error) {
	p, err := Find(getenv, top)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx)
}

func (p Place) open(ctx context.Context, readOnly bool) (j journal.Journal, err error) {
	switch p.kind {
	case SQLite:
		j, err = sqlite.Open(ctx, p.at, sqlite.Options{ReadOnly: readOnly})
	case Folder:
		j, err = journal.OpenFolder(p.at, journal.FolderOptions{ReadOnly: readOnly})
	case Postgres:
		j, err = postgres.Open(ctx, p.at, postgres.Options{ReadOnly: readOnly})
	default:
		return nil, ErrAddress
	}
	if err != nil {
		return nil, &UnreachableError{Place: p, Err: err}
	}
	return j, nil
}
