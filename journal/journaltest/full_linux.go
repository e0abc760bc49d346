// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

func big(i int) journal.Note {
	return journal.Note{Kind: "test", Data: json.RawMessage(fmt.Sprintf(`{"i":%d,"fill":%q}`, i, strings.Repeat("f", 4000)))}
}

// testFullDisk fills a small file system. The append that does not fit is refused
// and leaves nothing, and once there is room the same lease goes on.
func testFullDisk(t *testing.T, s Store) {
	folder := t.TempDir()
	if err := syscall.Mount("fiducial", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("file systems cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	j := s.open(t, folder)
	create(t, j, "r")
	l := acquire(t, j, "r")
	n, err := fill(t.Context(), l)
	if !errors.Is(err, journal.ErrFull) {
		t.Fatalf("append on a full disk: error %v, want %v", err, journal.ErrFull)
	}
	if n < 20 {
		t.Fatalf("only %d records of 4 KB went into 1 MB", n)
	}
	wantErr(t, "a group on a full disk", l.Append(t.Context(), journal.Mark{}, big(-1), big(-2), big(-3)), journal.ErrFull)
	large := step(strings.Repeat("large", 30_000))
	wantErr(t, "large content on a full disk", l.Append(t.Context(), journal.Mark{}, large), journal.ErrFull)
	wantErr(t, "create on a full disk", j.Create(t.Context(), "big", journal.Header{Config: big(0).Data}), journal.ErrFull)
	wantHead(t, j, l, n+1)
	if err := syscall.Mount("fiducial", folder, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), journal.Mark{}, big(n+2), large); err != nil {
		t.Fatalf("append once there is room: %v", err)
	}
	wantHead(t, j, l, n+3)
}

func wantHead(t *testing.T, j journal.Journal, l journal.Lease, head int) {
	t.Helper()
	records := read(t, j, "r")
	if len(records) != head || int(l.Head()) != head {
		t.Fatalf("%d records and head %d, want %d", len(records), l.Head(), head)
	}
	for _, r := range records[1:] {
		if _, ok := r.Body.(journal.Note); ok && number(t, r) != int(r.Seq) {
			t.Fatalf("record %d holds %d", r.Seq, number(t, r))
		}
	}
}

// fill appends until it fails and returns how many appends went well. There is room
// for far fewer than its limit.
func fill(ctx context.Context, l journal.Lease) (int, error) {
	const limit = 4000
	for n := range limit {
		if err := l.Append(ctx, journal.Mark{}, big(n+2)); err != nil {
			return n, err
		}
	}
	return limit, fmt.Errorf("%d records of 4 KB were taken where 1 MB fits at most: the store is not in its folder, so its Promise is not Durable, or it is a Store.Server", limit)
}

// testFileLimit does the same with a limit on the size of files, which needs no
// rights, in another process.
func testFileLimit(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	p := start(t, "fill", folder)
	var refused, after int
	if _, err := fmt.Sscanf(p.line(t), "refused after %d", &refused); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(p.line(t), "then %d", &after); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if refused < 3 || after != refused+2 {
		t.Fatalf("refused after %d, then at %d; want 3 at least, then two more", refused, after)
	}
	wantHead(t, j, acquire(t, j, "r"), after)
}

func fillChild(ctx context.Context, j journal.Journal, out io.Writer) error {
	l, err := j.Acquire(ctx, "r", "filler")
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	small := limit
	small.Cur = 200_001
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	n, err := fill(ctx, l)
	if !errors.Is(err, journal.ErrFull) && !errors.Is(err, journal.ErrStorage) {
		return fmt.Errorf("append beyond the limit: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	fmt.Fprintln(out, "refused after", n)
	if err := l.Append(ctx, journal.Mark{}, big(n+2)); err != nil {
		return err
	}
	fmt.Fprintln(out, "then", l.Head())
	return nil
}
