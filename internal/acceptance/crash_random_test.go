//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// Environment variables of make crash.
const (
	crashCount = "FIDUCIAL_CRASH_N"    // how many runs; else few
	crashSeed  = "FIDUCIAL_CRASH_SEED" // of the first one; alone, that run only
)

func numberIn(t testing.TB, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestCrash lets random runs go wrong at random instants in every way that we know,
// on every store by turns, and holds each to what is promised. It stops at the first
// that breaks a promise and names its seed.
func TestCrash(t *testing.T) {
	n := numberIn(t, crashCount, 20)
	first := numberIn(t, crashSeed, 1)
	if os.Getenv(crashSeed) != "" && os.Getenv(crashCount) == "" {
		n = 1
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	counts := map[string]int{}
	next := first
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		server := crashServerOrNone(t)
		wg.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				seed := next
				next++
				mu.Unlock()
				if seed >= first+n {
					return
				}
				seen, err := crashOnce(ctx, t.TempDir(), uint64(seed), server)
				mu.Lock()
				for _, what := range seen {
					counts[what]++
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("seed %d: %v\nagain: make crash SEED=%d", seed, err, seed)
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%6d %s", counts[what], what))
	}
	t.Logf("%d runs:\n%s", n, strings.Join(lines, "\n"))
}

// crashServerOrNone leaves PostgreSQL out where it is not installed.
func crashServerOrNone(t *testing.T) (server *crashServer) {
	t.Helper()
	t.Run("server", func(sub *testing.T) { server = newCrashServer(sameLife{sub, t}) })
	return server
}

// sameLife is a test that can be skipped by itself, and whose server lives as long
// as the test around it.
type sameLife struct {
	*testing.T
	outer *testing.T
}

func (s sameLife) Cleanup(f func())         { s.outer.Cleanup(f) }
func (s sameLife) Context() context.Context { return s.outer.Context() }

var crashTools = []string{"write", "slow_write", "slow_read", "put", "alone"}

// crashOnce is one run with all that happens to it. What it saw is told by store.
func crashOnce(ctx context.Context, dir string, seed uint64, server *crashServer) (seen []string, err error) {
	random := rand.New(rand.NewPCG(seed, 3))
	stores := []string{"file", "sqlite"}
	if server != nil {
		stores = append(stores, "postgres")
	}
	store := stores[seed%uint64(len(stores))]
	if store != "postgres" {
		server = nil
	}
	plan := make([][]string, 1+random.IntN(4))
	for i := range plan {
		for range 1 + random.IntN(4) {
			plan[i] = append(plan[i], crashTools[random.IntN(len(crashTools))])
		}
	}
	formats := []llmtest.Wire{llmtest.WireAnthropic, llmtest.WireOpenAIChat, llmtest.WireOpenAIResponses, llmtest.WireGemini}
	r := newRig(dir, store, server, formats[random.IntN(len(formats))], plan, seed)
	defer r.close()
	defer func() {
		for i, what := range seen {
			seen[i] = store + ": " + what
		}
		if err != nil {
			err = fmt.Errorf("%s, plan %v, after [%s]: %w", store, plan, strings.Join(r.what, "; "), err)
		}
	}()
	for range 1 + random.IntN(4) {
		what, err := r.disturb(ctx, random)
		if seen = append(seen, what); err != nil {
			return seen, fmt.Errorf("%s: %w", what, err)
		}
		if err := r.keepSettled(ctx); err != nil {
			return seen, err
		}
		if random.IntN(3) == 0 {
			if err := r.offer(ctx); err != nil {
				return seen, err
			}
		}
	}
	rep, err := r.run(ctx, r.spec)
	if err != nil {
		return seen, err
	}
	if err := r.check(ctx, rep); err != nil {
		return seen, err
	}
	if r.offered != "" {
		seen = append(seen, "a message from outside was taken in once")
	}
	for _, m := range rep.History {
		for _, p := range m.Parts {
			if res, ok := p.(llm.Result); ok {
				seen = append(seen, "result "+string(res.Status))
			}
		}
	}
	return append(seen, "run finished with every promise kept"), nil
}

// offer sends the same message twice, if the run is there.
func (r *rig) offer(ctx context.Context) error {
	store, err := r.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the offer was durable before
	for range 2 {
		err := store.Offer(ctx, runName, "k", llm.UserText("And be quick."))
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.offered = "And be quick."
	return nil
}

// disturb starts a child to which one random thing happens, and says what became of
// it.
func (r *rig) disturb(ctx context.Context, random *rand.Rand) (string, error) {
	spec := r.spec
	spec.Seed = random.Uint64()
	do := []func(context.Context, crashSpec, *rand.Rand) (string, *crashReport, error){r.killAfter, r.killAfter, r.killAtPoint, r.failAppend}
	if r.server != nil {
		do = append(do, r.restartServer, r.loseAnswers, r.dropConnections)
	} else {
		do = append(do, r.limitFiles, r.fillDisk)
	}
	what, rep, err := do[random.IntN(len(do))](ctx, spec, random)
	how := ", killed"
	switch {
	case rep == nil:
	case rep.Err != "":
		how = ", it gave up: " + rep.Kind
	case rep.Resumed > 0:
		how = ", it went on and finished"
	default:
		how = ", it finished"
	}
	r.what = append(r.what, what+how)
	if err == nil && rep != nil {
		err = r.badEnd(rep)
	}
	return what + how, err
}

// badEnd is an end that no disturbance explains.
func (r *rig) badEnd(rep *crashReport) error {
	switch {
	case rep.Err == "" && rep.Text == "All done.":
		return nil
	case rep.Kind == "full", rep.Kind == "storage", rep.Kind == "uncertain":
		return nil
	case rep.Kind == "fenced" && r.server != nil: // its server was away for longer than its lease
		return nil
	}
	return fmt.Errorf("it ended with %+v", rep)
}

func (r *rig) killAfter(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	wait := time.Duration(random.IntN(100_000)) * time.Microsecond
	c, err := r.launch(ctx, spec)
	if err != nil {
		return "kill", nil, err
	}
	<-c.ready
	time.Sleep(wait)
	c.kill()
	rep, err := c.wait()
	return "kill at a random instant", rep, err
}

func (r *rig) killAtPoint(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	spec.KillAt = 1 + random.IntN(80)
	rep, err := r.run(ctx, spec)
	return "kill at a random boundary", rep, err
}

func (r *rig) failAppend(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	spec.FaultAt, spec.Stored = 1+random.IntN(20), random.IntN(2) == 0
	what := "EIO in a write"
	if spec.Seed%2 == 1 {
		what = "EIO in a sync"
	}
	rep, err := r.run(ctx, spec)
	return what, rep, err
}

// limitFiles lets files grow a little and no more.
func (r *rig) limitFiles(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	largest := int64(0)
	_ = filepath.WalkDir(spec.Folder, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				largest = max(largest, info.Size())
			}
		}
		return nil // what is not there has no size
	})
	spec.Limit = uint64(largest) + uint64(random.IntN(20_000)) + 1
	rep, err := r.run(ctx, spec)
	return "files may not grow", rep, err
}

// fillDisk lets the store run out of room on a file system of its own, where that
// can be had.
func (r *rig) fillDisk(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	if _, err := os.Stat(spec.Folder); err == nil || os.MkdirAll(spec.Folder, 0o755) != nil {
		return r.limitFiles(ctx, spec, random) // the run has begun elsewhere
	}
	if err := mountSmall(spec.Folder, 16+random.IntN(200)); err != nil {
		return r.limitFiles(ctx, spec, random)
	}
	rep, err := r.run(ctx, spec)
	// What was stored moves to where there is room.
	moved := spec.Folder + ".moved"
	err = errors.Join(err, os.CopyFS(moved, os.DirFS(spec.Folder)), unmount(spec.Folder), os.Remove(spec.Folder), os.Rename(moved, spec.Folder))
	return "the disk is full", rep, err
}

func (r *rig) restartServer(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	wait := time.Duration(random.IntN(60_000)) * time.Microsecond
	crash := random.IntN(2) == 0
	what := "the server restarts"
	if crash {
		what = "the server crashes"
	}
	return r.meanwhile(ctx, spec, what, wait, func() error {
		if err := r.server.Halt(crash); err != nil {
			return err
		}
		return r.server.Run(ctx)
	})
}

func (r *rig) loseAnswers(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	wait, n := time.Duration(random.IntN(60_000))*time.Microsecond, 1+random.IntN(3)
	return r.meanwhile(ctx, spec, "answers of the server are lost", wait, func() error {
		r.server.proxy.Cut(n)
		return nil
	})
}

func (r *rig) dropConnections(ctx context.Context, spec crashSpec, random *rand.Rand) (string, *crashReport, error) {
	wait := time.Duration(random.IntN(60_000)) * time.Microsecond
	return r.meanwhile(ctx, spec, "connections break", wait, func() error {
		r.server.proxy.Drop()
		return nil
	})
}

// meanwhile does something while a child runs.
func (r *rig) meanwhile(ctx context.Context, spec crashSpec, what string, wait time.Duration, do func() error) (string, *crashReport, error) {
	c, err := r.launch(ctx, spec)
	if err != nil {
		return what, nil, err
	}
	<-c.ready
	time.Sleep(wait)
	err = do()
	rep, waitErr := c.wait()
	r.server.proxy.Cut(0) // what was not lost by now is not
	return what, rep, errors.Join(err, waitErr)
}
