// SPDX-License-Identifier: Apache-2.0

// Package postgrestest starts PostgreSQL servers for tests, each with a folder of
// its own and on a free port of the loopback interface. It needs the server's
// programs (initdb, postgres) on PATH or where Debian puts them, and a Unix.
package postgrestest
