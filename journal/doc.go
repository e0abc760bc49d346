// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what happened in a run: one append-only log of small
// records a run, written before and after every effect, from which the run's
// state is rebuilt by feeding the recorded inputs to a new [machine.State].
//
// A [Journal] is a store of such logs. One process at a time may write a run: it
// asks for a [Lease], and a holder that was superseded is fenced before it can
// append anything. Anyone may read and follow a run, and put messages for it into
// its inbox.
//
// What can be done with runs in any store: [Fork], [Export], [Import] and [Prune]; a
// log that is damaged is never read past the damage, see [DamageError].
//
// [NewMemory] keeps everything in the process. [OpenFolder] keeps one file a run.
// Stores on databases are modules of their own; package journaltest holds the
// suite that all of them pass.
package journal
