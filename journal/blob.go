// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
)

// InlineLimit is the largest text, in bytes as JSON, that stands in a record.
// What is larger goes into a blob beside the log, and so does the whole of a
// body that is larger than RecordLimit all the same.
const (
	InlineLimit = 64 << 10
	RecordLimit = 1 << 20
)

// A Blob is content beside the log, named by its SHA-256 in lower-case
// hexadecimal.
type Blob struct {
	Digest string
	Data   []byte
}

// A blobRef says where in a record's data a blob belongs. At its place stands the
// string "sha256:" and the digest. The blob is the text of a string, or with JSON
// set a whole value.
type blobRef struct {
	At     int    `json:"at"` // byte offset in the data as stored
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
	JSON   bool   `json:"json,omitempty"`
}

// standIn is what is read in the blob's place.
func (r blobRef) standIn() string { return `"sha256:` + r.Digest + `"` }

func newBlob(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{Digest: hex.EncodeToString(sum[:]), Data: data}
}

// extract moves what is large out of data, which is JSON on one line.
func extract(data []byte) ([]byte, []blobRef, []Blob) {
	if len(data) <= InlineLimit {
		return data, nil, nil
	}
	var out []byte
	var refs []blobRef
	var blobs []Blob
	rest := 0 // what of data was not yet copied to out
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := stringEnd(data, i)
		if end-i > InlineLimit && !isKey(data[end:]) {
			var text string
			if json.Unmarshal(data[i:end], &text) == nil {
				b := newBlob([]byte(text))
				out = append(out, data[rest:i]...)
				ref := blobRef{At: len(out), Digest: b.Digest, Size: int64(len(b.Data))}
				out = append(out, ref.standIn()...)
				refs, blobs, rest = append(refs, ref), append(blobs, b), end
			}
		}
		i = end - 1
	}
	out = append(out, data[rest:]...)
	if len(out) > RecordLimit {
		b := newBlob(data)
		ref := blobRef{Digest: b.Digest, Size: int64(len(b.Data)), JSON: true}
		return []byte(ref.standIn()), []blobRef{ref}, []Blob{b}
	}
	return out, refs, blobs
}

// stringEnd is the index after the string literal that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// isKey reports whether a colon is what follows a string.
func isKey(after []byte) bool {
	after = bytes.TrimLeft(after, " \t\r\n")
	return len(after) > 0 && after[0] == ':'
}

// restore puts the blobs back into data.
func restore(data []byte, refs []blobRef, get func(string) ([]byte, error)) ([]byte, error) {
	if len(refs) == 0 {
		return data, nil
	}
	var out []byte
	rest := 0
	for _, ref := range refs {
		in := ref.standIn()
		if ref.At < rest || ref.At > len(data) || !strings.HasPrefix(string(data[ref.At:min(ref.At+len(in), len(data))]), in) {
			return nil, damaged("the place of blob %s is not there", ref.Digest)
		}
		content, err := fetch(ref, get)
		if err != nil {
			return nil, err
		}
		if !ref.JSON {
			if content, err = json.Marshal(string(content)); err != nil {
				return nil, damaged("blob %s: %v", ref.Digest, err)
			}
		}
		out = append(out, data[rest:ref.At]...)
		out = append(out, content...)
		rest = ref.At + len(in)
	}
	return append(out, data[rest:]...), nil
}

func fetch(ref blobRef, get func(string) ([]byte, error)) ([]byte, error) {
	if !isDigest(ref.Digest) {
		return nil, damaged("%q names no blob", ref.Digest)
	}
	if get == nil {
		return nil, damaged("blob %s is missing", ref.Digest)
	}
	content, err := get(ref.Digest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged("blob %s is missing", ref.Digest)
	case err != nil:
		return nil, err
	case int64(len(content)) != ref.Size || newBlob(content).Digest != ref.Digest:
		return nil, damaged("blob %s is not what was stored", ref.Digest)
	}
	return content, nil
}

// isDigest guards the way from a record's text to a file's name.
func isDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}
