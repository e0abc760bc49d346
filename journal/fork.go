// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"iter"

	"github.com/fiducial-dev/fiducial/machine"
)

// MarkOf describes a run by the machine's state. A run that is ready has input that
// nobody has answered yet, and has not ended.
func MarkOf(st *machine.State) Mark {
	m := Mark{Phase: st.Phase().String(), Ended: st.Idle() && st.Phase() != machine.PhaseReady}
	if p, ok := st.Pending(); ok {
		m.Pending = p.Op
	}
	return m
}

// Fork begins a run with the records of another up to number at, which must be a
// model boundary: no call of the history is without a result (S-72). 0 means the
// last boundary that there is. The new run has the labels and the config of its
// parent, and names it. It owes its parent nothing: either can be deleted. Returned
// is the number of the last record that was taken over. [ErrInvalid] names the
// nearest boundary before at.
func Fork(ctx context.Context, j Journal, parent string, at uint64, child string) (uint64, error) {
	var records []Record
	var st machine.State
	var mark Mark // at the last boundary
	var last uint64
	for rec, err := range j.Read(ctx, parent, 0) {
		if err != nil {
			return 0, err
		}
		if at > 0 && rec.Seq > at {
			break
		}
		if s, ok := rec.Body.(Step); ok {
			if err := st.Apply(s.Input); err != nil {
				return 0, &Error{Kind: KindInvalid, Op: "fork", Run: parent, Err: fmt.Errorf("record %d: %w", rec.Seq, err)}
			}
		}
		records = append(records, rec)
		if st.AtBoundary() {
			last, mark = rec.Seq, MarkOf(&st)
		}
	}
	if at > 0 && last != at {
		why := fmt.Errorf("record %d is no model boundary; the last one before it is %d", at, last)
		if n := uint64(len(records)); n < at {
			why = fmt.Errorf("there is no record %d; the last one is %d", at, n)
		}
		return 0, &Error{Kind: KindInvalid, Op: "fork", Run: parent, Err: why}
	}
	return last, j.Restore(ctx, child, forked(records[:last], parent), mark)
}

// forked is the records with a header that names where they come from.
func forked(records []Record, parent string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for i, rec := range records {
			if h, ok := rec.Body.(Header); ok {
				h.Parent, h.ParentSeq = parent, records[len(records)-1].Seq
				records[i].Body, rec.Body = h, h
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}
