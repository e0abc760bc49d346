// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps runs in a PostgreSQL database (12 or newer), on pgx, so
// that several machines work on one store.
//
// An append is one statement: it moves the head of the run only when epoch and head
// are what the lease left, stores the records and renews the lease.
// Who holds a run is decided by a lease with a time limit on the database's clock; a
// holder that was superseded is fenced by its next append.
//
// A connection that breaks between a commit and its answer is no failure: the same
// append is made again, and when the record that stands at its place has its epoch
// and checksum it had succeeded.
//
// Records have checksums of their own. For the rest of the tables have the server
// check its pages (initdb --data-checksums).
package postgres
