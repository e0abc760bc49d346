// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/sha256"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// note remembers what the bench wrote into a file of the tree; the zero digest
// says that it removed it. The name is the operating system's.
func (b *Bench) note(name string, what digest) {
	name = filepath.ToSlash(name)
	if strings.HasPrefix(name, ".fiducial/") {
		return
	}
	if b.written == nil {
		b.written = map[string]digest{}
	}
	b.written[name] = what
}

// Wrote are the files that the run wrote, also those that it took back; known only
// to the process that began the run.
func (b *Bench) Wrote() (paths []string, complete bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.written)), b.session != nil && !b.session.Resumed
}

// Overwritten are the files that do not hold what the run wrote last: somebody
// else has changed them since.
func (b *Bench) Overwritten() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var paths []string
	for name, want := range b.written {
		var got digest
		if data, err := b.content(name); err == nil {
			got = sha256.Sum256(data)
		}
		if got != want {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return paths
}
