// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// lock is the committed prefix of a [Locked]: what every request begins with.
type lock struct {
	held    bool
	system  string
	tools   []llm.Tool
	n       int // messages of the history
	digest  string
	base    []llm.Message // the n messages, as they are sent
	lent    lentTools
	release func()
	closed  bool // the tools were let go by Close; a run locks them again
}

// noteLock is the kind of the journal note that holds a lockNote.
const noteLock = "lock"

// lockNote is how a journal remembers a lock: enough to name what differs.
type lockNote struct {
	V      int               `json:"v"`
	System string            `json:"system"` // digest
	Tools  map[string]string `json:"tools"`  // digest by name
	N      int               `json:"n"`
	Prefix string            `json:"prefix"`        // digest of the n messages of the history
	Sent   cuts              `json:"sent,omitzero"` // what is left out of them where they are sent
}

// commitPrefix locks what the engine holds now. Of the history that is what is sent of
// it, so that what a provider has in its cache stays of use.
func (c *core) commitPrefix(op string) (err error) {
	release := c.lockTools() // before the list is read, so that it stays
	defer func() {
		if err != nil {
			release()
		}
	}()
	specs, err := guarded(func() ([]llm.Tool, error) { return c.specs(), nil })
	if err != nil { // an executor may hold a nil one
		return fail(KindConfig, op, err, "the executor does not name its tools")
	}
	for i := 1; i < len(specs); i++ {
		if specs[i].Name == specs[i-1].Name {
			return fail(KindConfig, op, nil, "two tools are called %q", specs[i].Name)
		}
	}
	history := c.state.History()
	digest, err := digestOf(history)
	if err != nil {
		return fail(KindConfig, op, err, "the history cannot be stored")
	}
	if !sameTools(specs, c.lock.tools) {
		c.audit.forget(CacheToolsChanged)
	}
	c.lock = lock{held: true, system: c.cfg.system, tools: specs, n: len(history), digest: digest, release: release}
	c.lock.base = c.pruner.commit(history)
	if c.store.j != nil {
		note := c.lock.note()
		note.Sent = c.pruner.fixed
		c.store.add(journal.Note{Kind: noteLock, Data: mustJSON(note)})
	}
	return nil
}

func (c *core) specs() []llm.Tool {
	specs := llm.CloneTools(c.exec.Specs()) // whoever made a schema may write to it
	slices.SortStableFunc(specs, func(a, b llm.Tool) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// lockTools keeps the server's list of tools as it is until release is called, or nobody
// holds the engine any more: others may share the server.
func (c *core) lockTools() (release func()) {
	if c.server == nil {
		return func() {}
	}
	unlock := c.server.Lock()
	dropped := runtime.AddCleanup(c, func(unlock func()) { unlock() }, unlock)
	return func() {
		dropped.Stop()
		unlock()
	}
}

// giveUp ends the lock: what a run was locked with before holds nobody back then.
func (l *lock) giveUp() {
	l.letGo()
	l.held = false
}

// letGo is for an engine that was closed, and may be run again all the same.
func (l *lock) letGo() {
	if l.held && !l.closed {
		l.release()
		l.closed = true
	}
}

// relock undoes letGo, unless the tools are others by now.
func (c *core) relock(op string) error {
	if !c.lock.held || !c.lock.closed {
		return nil
	}
	release := c.lockTools()
	if !sameTools(c.specs(), c.lock.tools) {
		release()
		return fail(KindPrefix, op, nil, "the tools were changed after Close; call Unlock, then Lock, to commit those that there are now")
	}
	c.lock.release, c.lock.closed = release, false
	return nil
}

func (l *lock) note() lockNote {
	n := lockNote{V: 1, System: sum([]byte(l.system)), Tools: make(map[string]string, len(l.tools)), N: l.n, Prefix: l.digest}
	for _, t := range l.tools {
		n.Tools[t.Name] = sum(mustJSON(t))
	}
	return n
}

// openFirst is the way on for a run whose engine is put together otherwise now.
const openFirst = "put it back as it was, or commit a new prefix: make another Engine, and call its Open, then Lock, then Resume or Run"

// adopt takes over the lock of a run that this process did not begin, after
// checking that the engine was put together as it was then. What is sent of the history
// is not known yet.
func (l *lock) adopt(op string, stored lockNote, history []llm.Message) error {
	now := l.note()
	if now.System != stored.System {
		return fail(KindPrefix, op, nil, "the system prompt differs from the one that the run was locked with; %s", openFirst)
	}
	if d := diffTools(stored.Tools, now.Tools); d != "" {
		return fail(KindPrefix, op, nil, "the tools differ from those that the run was locked with: %s; %s", d, openFirst)
	}
	if stored.N > len(history) {
		return fail(KindPrefix, op, nil, "the run was locked with %d messages, and the journal holds %d; %s", stored.N, len(history), openFirst)
	}
	digest, err := digestOf(history[:stored.N])
	if err != nil || digest != stored.Prefix {
		return fail(KindPrefix, op, err, "the first %d messages are not those that the run was locked with; %s", stored.N, openFirst)
	}
	l.n, l.digest = stored.N, digest
	return nil
}

func diffTools(old, now map[string]string) string {
	var d []string
	for _, name := range slices.Sorted(maps.Keys(old)) {
		switch got, ok := now[name]; {
		case !ok:
			d = append(d, name+" is missing")
		case got != old[name]:
			d = append(d, name+" is defined otherwise")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := old[name]; !ok {
			d = append(d, name+" is new")
		}
	}
	return strings.Join(d, ", ")
}

// verify refuses a request that does not begin with the committed prefix.
// Edited says that somebody else made it: then tools and messages are compared by what
// they hold. Otherwise they come from the history, which only grows, and it is enough
// that they are the same values.
func (l *lock) verify(req *llm.Request, edited bool) error {
	const op = "request"
	switch {
	case req.System != l.system:
		return fail(KindPrefix, op, nil, "the system prompt was changed while the engine is locked")
	case !sameTools(req.Tools, l.tools):
		return fail(KindPrefix, op, nil, "the list of tools was changed while the engine is locked")
	case len(req.Messages) < l.n:
		return fail(KindPrefix, op, nil, "the request holds %d messages, and %d are committed", len(req.Messages), l.n)
	}
	prefix := req.Messages[:l.n]
	if edited {
		if !equalMessages(prefix, l.base) {
			return fail(KindPrefix, op, nil, "a tool or a message of the committed prefix was changed")
		}
		return nil
	}
	if l.n == 0 || &prefix[0] == &l.base[0] {
		return nil
	}
	for i := range prefix {
		if !sameMessage(prefix[i], l.base[i]) {
			return fail(KindPrefix, op, nil, "message %d of the committed prefix was changed", i)
		}
	}
	l.base = prefix
	return nil
}

func digestOf(messages []llm.Message) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, m := range messages {
		if err := enc.Encode(m); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// mustJSON encodes values whose types always encode.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fiducial: %T does not encode: %v", v, err))
	}
	return data
}
