// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"hash/maphash"

	"github.com/fiducial-dev/fiducial/llm"
)

// A fingerprint tells in this process, and fast, whether tools and messages hold
// what they held. It is for code that was handed a request and may have written
// into it; what is stored is compared by digest.
type fingerprint struct {
	hash maphash.Hash // keeps its seed when it is reset
	sum  uint64
}

// take remembers what the values hold now.
func (f *fingerprint) take(tools []llm.Tool, messages []llm.Message) {
	f.sum = f.of(tools, messages)
}

// matches reports whether the values hold what was there at take.
func (f *fingerprint) matches(tools []llm.Tool, messages []llm.Message) bool {
	return f.of(tools, messages) == f.sum
}

func (f *fingerprint) of(tools []llm.Tool, messages []llm.Message) uint64 {
	f.hash.Reset()
	for _, t := range tools {
		f.texts(t.Name, t.Description)
		f.data(t.Schema)
	}
	for _, m := range messages {
		f.texts(string(m.Role), string(m.Stop))
		f.count(len(m.Parts))
		for _, p := range m.Parts {
			f.part(p)
		}
	}
	return f.hash.Sum64()
}

func (f *fingerprint) part(p llm.Part) {
	switch p := p.(type) {
	case llm.Text:
		f.texts("text", p.Text)
		f.opaque(p.Opaque)
	case llm.Thinking:
		f.texts("thinking", p.Text)
		f.opaque(p.Opaque)
	case llm.System:
		f.system(p)
	case llm.Call:
		f.texts("call", p.ID, p.Name, p.Args)
		f.opaque(p.Opaque)
	case llm.Image:
		f.image(p)
	case llm.Result:
		f.texts("result", p.CallID, p.Name, string(p.Status), p.Summary, p.Content)
		f.count(len(p.Images))
		for _, i := range p.Images {
			f.image(i)
		}
		for _, n := range p.Notes {
			f.system(n)
		}
	}
}

func (f *fingerprint) system(n llm.System) {
	f.texts("system", n.Kind, n.Text)
	f.data(n.Data)
}

func (f *fingerprint) image(i llm.Image) {
	f.texts("image", i.Media)
	f.data(i.Data)
}

func (f *fingerprint) opaque(o llm.Opaque) {
	if !o.IsZero() {
		f.texts("opaque", o.Vendor)
		f.data(o.Data)
	}
}

// texts and data write lengths, too, so that no two lists run together.
func (f *fingerprint) texts(texts ...string) {
	for _, s := range texts {
		f.count(len(s))
		_, _ = f.hash.WriteString(s) // never fails, says its documentation
	}
}

func (f *fingerprint) data(b []byte) {
	f.count(len(b))
	_, _ = f.hash.Write(b)
}

func (f *fingerprint) count(n int) {
	for range 8 {
		_ = f.hash.WriteByte(byte(n))
		n >>= 8
	}
}
