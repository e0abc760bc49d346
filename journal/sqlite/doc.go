// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps runs in one SQLite database, on modernc.org/sqlite, which
// needs no C compiler.
//
// Every append is on disk when it returns (write-ahead log, synchronous FULL).
// Appends of several runs that come at the same time share one transaction, and so
// one sync. Several processes may use one database, on one machine: who holds a
// run is decided by a lock file beside the database, which the kernel frees when
// the process ends.
//
// SQLite finds no changed byte by itself. Each record, and each row that says
// something about a run, has a checksum that is looked at when it is read.
package sqlite
