// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fiducial-dev/fiducial/journal"
)

// try does something that may be done again, until it works, fails for good, or
// patience ends. What it does must find out by itself that it had succeeded before.
func (j *Journal) try(ctx context.Context, do func(context.Context) error) error {
	deadline := time.Now().Add(j.opts.Patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := j.once(ctx, do)
		if err == nil || ctx.Err() != nil || !passing(err) || time.Now().Add(wait).After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// once bounds one attempt, so that a server that is silent does not hold a call
// longer than patience.
func (j *Journal) once(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, max(j.opts.Patience/2, time.Second))
	defer cancel()
	return do(ctx)
}

// passing reports whether an error says nothing about the statement: the server
// was not there, went away, or wants it tried again. The codes are those of
// https://www.postgresql.org/docs/15/errcodes-appendix.html.
func passing(err error) bool {
	if err == nil || isJournalError(err) || errors.Is(err, context.Canceled) || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return true // of the network
	}
	switch {
	case strings.HasPrefix(p.Code, "08"), strings.HasPrefix(p.Code, "57P"), strings.HasPrefix(p.Code, "40"), p.Code == "53300":
		return true
	}
	return false
}

func code(err error) string {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code
	}
	return ""
}

const (
	uniqueViolation = "23505"
	noSuchRow       = "23503" // of the table that a row refers to
	noPrivilege     = "42501"
)

// storeError gives an error of the server or the network its kind. Errors that have
// one pass as they are.
func storeError(op, run string, err error) error {
	if err == nil || isJournalError(err) {
		return err
	}
	kind := journal.KindStorage
	switch code(err) {
	case "53100", "54000": // disk full, program limit exceeded
		kind = journal.KindFull
	case "25006": // a server that only reads
		kind = journal.KindReadOnly
	case "XX001", "XX002": // data corrupted, index corrupted
		return &journal.DamageError{Run: run, Where: "the database", Offset: -1, Reason: err.Error()}
	}
	return &journal.Error{Kind: kind, Op: op, Run: run, Err: err}
}

func isJournalError(err error) bool {
	if _, ok := errors.AsType[*journal.Error](err); ok {
		return true
	}
	return errors.Is(err, journal.ErrHeld) || errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrFormat)
}

// readError is what a reader is told: of a context that has ended, its cause.
func readError(ctx context.Context, op, run string, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return storeError(op, run, err)
}
