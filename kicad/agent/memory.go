// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"path"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// digest names contents.
type digest [sha256.Size]byte

// memory is what kicad-cli said of contents: it is never asked twice about the same
// ones. Calls for the same contents at the same time wait for one answer.
type memory struct {
	mu    sync.Mutex
	known map[memoryKey]*answered
}

type memoryKey struct {
	what     string // netlist, inventory, erc, drc
	contents digest
}

// answered is one question to kicad-cli. done is closed when the answer is there.
type answered struct {
	done    chan struct{}
	netlist *kicadcli.Netlist
	entries []kicadcli.Entry
	verdict kicadcli.Verdict
	err     error
}

// ask answers from memory or by f. Failures that are not about the contents are
// forgotten.
func (m *memory) ask(ctx context.Context, what string, contents digest, f func(*answered)) (*answered, error) {
	key := memoryKey{what, contents}
	for {
		m.mu.Lock()
		a, found := m.known[key]
		if !found {
			a = &answered{done: make(chan struct{})}
			if m.known == nil {
				m.known = map[memoryKey]*answered{}
			}
			m.known[key] = a
		}
		m.mu.Unlock()
		if !found {
			f(a)
			if hard(a.err) != nil {
				m.mu.Lock()
				if m.known[key] == a {
					delete(m.known, key)
				}
				m.mu.Unlock()
			}
			close(a.done)
			return a, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if hard(a.err) == nil {
			return a, a.err
		}
		// Whoever asked failed for a reason of its own: ask again.
	}
}

// put remembers a netlist that came with another answer.
func (m *memory) put(contents digest, list *kicadcli.Netlist) {
	a := &answered{done: make(chan struct{}), netlist: list}
	close(a.done)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[memoryKey]*answered{}
	}
	m.known[memoryKey{"netlist", contents}] = a
}

// got is the netlist of contents when it is known already.
func (m *memory) got(contents digest) *kicadcli.Netlist {
	m.mu.Lock()
	a := m.known[memoryKey{"netlist", contents}]
	m.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return a.netlist
	default:
		return nil
	}
}

// forget drops everything: something changed that contents do not name.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

// sheets names the contents of the design's sheets.
func (b *Bench) sheets() (digest, error) {
	d, err := b.design()
	if err != nil {
		return digest{}, err
	}
	h := sha256.New()
	for _, name := range d.FileNames() {
		_, _ = h.Write([]byte(name + "\x00")) // a hash never fails
		_, _ = h.Write(d.Files[name].Doc.Source())
		_, _ = h.Write([]byte{0})
	}
	return digest(h.Sum(nil)), nil
}

// contents names what a check looks at, beside the libraries, which a run does not
// change unnoticed.
func (b *Bench) contents(check string) (digest, error) {
	h := sha256.New()
	if b.project.Root != "" {
		s, err := b.sheets()
		if err != nil {
			return digest{}, err
		}
		_, _ = h.Write(s[:])
	}
	files := []string{path.Join(b.project.Dir, "sym-lib-table"), path.Join(b.project.Dir, "fp-lib-table")}
	if check == obligeDRC {
		files = append(files, b.project.PCB)
	}
	for _, name := range files {
		data, err := b.read(name)
		if err != nil {
			data = nil // none, which is what kicad-cli sees as well
		}
		s := sha256.Sum256(data)
		_, _ = h.Write(s[:])
	}
	return digest(h.Sum(nil)), nil
}
