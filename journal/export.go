// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
)

// ExportVersion is the version of the file that [Export] writes.
const ExportVersion = 1

// An exported run is lines of JSON: one that says what follows, then each record as
// stores write it, with the content that it names on lines before it, then one that
// counts the records and holds the CRC32C of all bytes before its `,"crc":`.
type exportHead struct {
	Export int      `json:"export"`
	Run    string   `json:"run"`
	Head   uint64   `json:"head"`
	Mark   markJSON `json:"mark"`
}

type exportBlob struct {
	Blob string `json:"blob"` // sha256
	Data string `json:"data"` // base64
}

const (
	blobKey   = `{"blob":"`
	endKey    = `{"end":`
	maxExport = 1 << 30 // bytes of a line, and of the content of one record
	maxPieces = 1 << 16 // of content of one record; each that Export writes is large
)

// Export writes a run as one file, which [Import] reads into any store. The same
// records give the same bytes, whichever store they come from. A run that goes on
// meanwhile is written as it is when Export begins. What waits in its inbox is not
// part of it. After an error the file is unfinished, and Import refuses it.
func Export(ctx context.Context, j Journal, run string, to io.Writer) error {
	info, err := j.Stat(ctx, run)
	if err != nil {
		return err
	}
	out := &exporter{sum: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	out.w = bufio.NewWriter(io.MultiWriter(to, out.sum))
	if err := out.json(exportHead{ExportVersion, run, info.Head, markJSON(info.Mark)}); err != nil {
		return err
	}
	n := uint64(0)
	for rec, err := range j.Read(ctx, run, 0) {
		if err != nil {
			return err
		}
		if err := out.record(run, rec); err != nil {
			return err
		}
		if n++; n == info.Head {
			return out.end(n)
		}
	}
	return &DamageError{Run: run, Where: "the journal", Offset: -1, Seq: n + 1, Reason: "the record is missing"}
}

type exporter struct {
	w   *bufio.Writer
	sum hash.Hash32
}

func (e *exporter) line(data []byte) error {
	_, err := e.w.Write(append(data, '\n'))
	return err
}

func (e *exporter) json(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.line(data)
}

func (e *exporter) record(run string, rec Record) error {
	enc, err := EncodeRecord(run, Stored{Record: rec})
	if err != nil {
		return err
	}
	for _, b := range enc.Blobs {
		if err := e.json(exportBlob{b.Digest, base64.StdEncoding.EncodeToString(b.Data)}); err != nil {
			return err
		}
	}
	return e.line(enc.Line)
}

func (e *exporter) end(n uint64) error {
	if _, err := fmt.Fprintf(e.w, "%s%d", endKey, n); err != nil {
		return err
	}
	if err := e.w.Flush(); err != nil { // so that the sum is of all before
		return err
	}
	if _, err := fmt.Fprintf(e.w, "%s%08x\"}\n", crcKey, e.sum.Sum32()); err != nil {
		return err
	}
	return e.w.Flush()
}

// Import stores a run that [Export] wrote, under its own name, and returns the
// name. [ErrExists] when there is one of that name, a [*DamageError] when the file
// is not what was written, a [*FormatError] when it is of a newer version,
// [ErrInvalid] when it holds no run; nothing is stored then. Its records keep their numbers, epochs and times.
func Import(ctx context.Context, j Journal, from io.Reader) (string, error) {
	in := &importer{r: bufio.NewReaderSize(from, 64<<10)}
	head, err := in.head()
	if err != nil {
		return "", err
	}
	in.run = head.Run
	return head.Run, j.Restore(ctx, head.Run, in.records(head.Head), Mark(head.Mark))
}

type importer struct {
	r   *bufio.Reader
	run string
	at  int64  // offset of the next line
	seq uint64 // of the last record
	sum uint32 // of the lines before
}

func (i *importer) bad(at int64, format string, args ...any) error {
	return &DamageError{Run: i.run, Where: "the exported file", Offset: at, Seq: i.seq + 1, Reason: fmt.Sprintf(format, args...)}
}

func (i *importer) refuse(format string, args ...any) error {
	return &Error{Kind: KindInvalid, Op: "import", Run: i.run, Err: fmt.Errorf(format, args...)}
}

// line returns the next line without its newline.
func (i *importer) line() ([]byte, error) {
	var line []byte
	for {
		part, err := i.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			i.at += int64(len(line))
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxExport:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, i.bad(i.at, "a line is longer than any can be")
		case errors.Is(err, io.EOF):
			return nil, i.bad(i.at, "the file ends before its end")
		default:
			return nil, err
		}
	}
}

func (i *importer) count(line []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	i.sum = crc32.Update(crc32.Update(i.sum, table, line), table, []byte{'\n'})
}

func (i *importer) head() (h exportHead, err error) {
	line, err := i.line()
	if err != nil {
		return h, err
	}
	var v struct{ Export int }
	if json.Unmarshal(line, &v) != nil || v.Export < 1 {
		return h, i.bad(0, "it is not the file of a run")
	}
	if v.Export > ExportVersion {
		return h, &FormatError{Version: v.Export, Kind: "export", Err: fmt.Errorf("it is a file of version %d", v.Export)}
	}
	if err := strictJSON(line, &h); err != nil {
		return h, i.bad(0, "its first line: %v", err)
	}
	i.count(line)
	return h, nil
}

func strictJSON(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// records yields what the file holds, and an error when it is not all of it.
func (i *importer) records(head uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		blobs := map[string][]byte{}
		size := 0
		for {
			at := i.at
			line, err := i.line()
			switch {
			case err != nil:
			case bytes.HasPrefix(line, []byte(endKey)):
				if err = i.end(line, at, head); err == nil {
					return
				}
			case bytes.HasPrefix(line, []byte(blobKey)):
				if size += len(line); size > maxExport || len(blobs) == maxPieces {
					err = i.refuse("before record %d stands more content than a record can have", i.seq+1)
				} else if err = i.blob(line, at, blobs); err == nil {
					continue
				}
			default:
				var rec Record
				if rec, err = i.record(line, at, blobs); err == nil {
					if !yield(rec, nil) {
						return
					}
					blobs, size = map[string][]byte{}, 0
					continue
				}
			}
			yield(Record{}, err)
			return
		}
	}
}

func (i *importer) blob(line []byte, at int64, blobs map[string][]byte) error {
	i.count(line)
	var b exportBlob
	if err := strictJSON(line, &b); err != nil {
		return i.bad(at, "content: %v", err)
	}
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return i.bad(at, "content: %v", err)
	}
	if newBlob(data).Digest != b.Blob {
		return i.bad(at, "content is not what its digest says")
	}
	blobs[b.Blob] = data
	return nil
}

func (i *importer) record(line []byte, at int64, blobs map[string][]byte) (Record, error) {
	i.count(line)
	named := map[string]bool{}
	s, err := DecodeRecord(line, func(digest string) ([]byte, error) {
		if data, ok := blobs[digest]; ok {
			named[digest] = true
			return data, nil
		}
		return nil, fs.ErrNotExist
	})
	if d, ok := errors.AsType[*DamageError](err); ok {
		return Record{}, i.bad(at, "%s", d.Reason)
	}
	if err != nil {
		return Record{}, err
	}
	if _, ok := s.Body.(Header); ok && s.Run != i.run || s.Seq != i.seq+1 {
		return Record{}, i.bad(at, "record %d of run %q stands there", s.Seq, s.Run)
	}
	if len(named) != len(blobs) {
		return Record{}, i.bad(at, "it names %d of the %d pieces of content before it", len(named), len(blobs))
	}
	i.seq = s.Seq
	return s.Record, nil
}

// end checks the last line and that nothing follows it.
func (i *importer) end(line []byte, at int64, head uint64) error {
	said := fmt.Appendf(nil, "%s%d", endKey, i.seq)
	sum := crc32.Update(i.sum, crc32.MakeTable(crc32.Castagnoli), said)
	want := fmt.Appendf(said, "%s%08x\"}", crcKey, sum)
	if !bytes.Equal(line, want) || i.seq != head {
		return i.bad(at, "it ends with %q and should with %q, after %d records", line, want, head)
	}
	if _, err := i.r.ReadByte(); !errors.Is(err, io.EOF) {
		return i.bad(i.at, "something follows the end")
	}
	return nil
}
