// SPDX-License-Identifier: Apache-2.0

// Package workspace keeps the working tree of a run: it takes a snapshot before
// the first change, tells what the run changed, and either commits exactly that
// or puts everything back byte for byte.
//
// All knowledge of git's files comes from the git command (2.39 or newer). The
// content of files is read and written here, so that a snapshot holds the bytes
// that stood in the working tree, not what git's filters (autocrlf, LFS, ident)
// make of them.
//
// A snapshot is a commit under refs/fiducial/<run>, kept until the run has ended
// well. A process that is killed therefore loses nothing: another one finds the
// run by [Repo.Leftovers], opens it by [Repo.Reopen] and restores it. The real
// index is read but never written, except by [Snapshot.Commit], which leaves what
// the user had staged as it was.
//
// The folder .fiducial at the top of the working tree belongs to the runs. It is
// ignored through info/exclude and is never stored, restored or committed.
package workspace
