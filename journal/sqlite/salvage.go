// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/machine"
)

// A find is what can be read of a damaged database, by run. Nothing is in it whose
// checksum does not fit.
type find map[string]*remains

type remains struct {
	run     string
	row     *runRow // nil when it cannot be read
	records map[int64][]foundRecord
	offers  map[int64]foundOffer
	blobs   map[string][]byte
}

type foundRecord struct {
	epoch, crc int64
	line       []byte
}

type foundOffer struct {
	key   string
	taken int64
	line  []byte // empty for a key that was taken without an offer
}

// salvage sorts what stands in an image. The shapes are those of the tables of
// every schema that there was, see migrations: n is a number, b anything else.
func salvage(m *image) []*remains {
	f := find{}
	m.rows(func(c cells) {
		switch c.shape() {
		case "bnnnb":
			f.record(c)
		case "bbnnnb":
			f.offer(c)
		case "bbb":
			f.blob(c)
		case "bnnbnnbnnbbnnn":
			f.row(c)
		}
	})
	return slices.SortedFunc(maps.Values(f), func(a, b *remains) int { return cmp.Compare(a.run, b.run) })
}

func (c cells) shape() string {
	out := make([]byte, len(c))
	for i, v := range c {
		out[i] = 'b'
		if v.number {
			out[i] = 'n'
		}
	}
	return string(out)
}

// of is the place of a run, made when it is missing.
func (f find) of(run []byte) *remains {
	r := f[string(run)]
	if r == nil {
		r = &remains{
			run: string(run), records: map[int64][]foundRecord{}, offers: map[int64]foundOffer{}, blobs: map[string][]byte{},
		}
		f[r.run] = r
	}
	return r
}

func (f find) record(c cells) {
	if line := c[4].bytes; journal.CheckRun("repair", string(c[0].bytes)) == nil && int64(journal.RecordChecksum(line)) == c[3].n {
		r := f.of(c[0].bytes)
		r.records[c[1].n] = append(r.records[c[1].n], foundRecord{c[2].n, c[3].n, line})
	}
}

func (f find) offer(c cells) {
	run, key, n, taken := c[0].bytes, string(c[1].bytes), c[2].n, c[3].n
	if c[4].n == offerSum(string(run), key, n, taken) {
		f.of(run).offers[n] = foundOffer{key, taken, c[5].bytes}
	}
}

func (f find) blob(c cells) {
	sum := sha256.Sum256(c[2].bytes)
	if digest := hex.EncodeToString(sum[:]); digest == string(c[1].bytes) {
		f.of(c[0].bytes).blobs[digest] = c[2].bytes
	}
}

func (f find) row(c cells) {
	row := &runRow{
		Run: string(c[0].bytes), Head: c[1].n, Epoch: c[2].n, Phase: string(c[3].bytes), Pending: c[4].n, Ended: c[5].n != 0,
		Owner: string(c[6].bytes), Created: c[7].n, Updated: c[8].n, Labels: string(c[9].bytes), Parent: string(c[10].bytes),
		ParentSeq: c[11].n, Offers: c[12].n,
	}
	if row.sum() == c[13].n {
		f.of(c[0].bytes).row = row
	}
}

func (r *remains) blob(digest string) ([]byte, error) {
	if data, ok := r.blobs[digest]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// log is the run's records up to the last whole append in front of the first that
// cannot be read, the mark behind it, and why it is not the whole run.
func (r *remains) log() (records []journal.Record, mark journal.Mark, why error) {
	var group []journal.Record
	for seq := int64(1); ; seq++ {
		s, err := r.at(seq)
		if err != nil {
			if whole := r.row != nil && r.row.Head == int64(len(records)); whole && len(group) == 0 {
				return records, journal.Mark{Phase: r.row.Phase, Pending: machine.OperationID(r.row.Pending), Ended: r.row.Ended}, nil
			}
			return records, mark, err
		}
		if group = append(group, s.Record); s.More > 0 {
			continue
		}
		records, mark, group = append(records, group...), s.Mark, nil
	}
}

// at is the record of a number that has a place in the run.
func (r *remains) at(seq int64) (journal.Stored, error) {
	found := r.records[seq]
	slices.SortFunc(found, func(a, b foundRecord) int { return cmp.Compare(b.epoch, a.epoch) })
	err := error(&journal.DamageError{Offset: -1, Reason: "the record cannot be read"})
	for _, c := range found {
		var s journal.Stored
		if s, err = decode(c.line, r.run, seq, c.epoch, c.crc, r.blob); err == nil {
			return s, nil
		}
	}
	if r.row == nil && len(found) == 0 {
		err = &journal.DamageError{Offset: -1, Reason: "there is no further record, nor anything that tells whether there was one"}
	}
	return journal.Stored{}, locate(err, r.run, "table journal", seq)
}

// waiting are the offers that no record up to a number has taken, in order, and how
// many cannot be read.
func (r *remains) waiting(kept int64) (items []journal.Item, lost int) {
	last := int64(0)
	if r.row != nil {
		last = r.row.Offers
	}
	for n := range r.offers {
		last = max(last, n)
	}
	for n := int64(1); n <= last; n++ {
		o, ok := r.offers[n]
		if ok && (o.taken != 0 && o.taken <= kept || len(o.line) == 0) {
			continue
		}
		item, err := journal.DecodeOffer(o.line, r.blob)
		if !ok || err != nil || item.Key != o.key {
			lost++
			continue
		}
		items = append(items, item)
	}
	return items, lost
}
