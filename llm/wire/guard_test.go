// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

func TestGuard(t *testing.T) {
	limits := Timeouts{Open: time.Second, First: 2 * time.Second, Idle: 3 * time.Second}
	for _, tt := range []struct {
		name  string
		play  func(*Guard)
		after time.Duration
		want  llm.Class
	}{
		{"never opens", func(*Guard) {}, time.Second, llm.ClassTimeout},
		{"no first event", func(g *Guard) { g.Opened() }, 2 * time.Second, llm.ClassTimeout},
		{"stands still", func(g *Guard) { g.Opened(); g.Seen(); g.Wait() }, 3 * time.Second, llm.ClassStreamIdle},
		{"a slow reader is not the provider's fault", func(g *Guard) {
			g.Opened()
			g.Seen()
			time.Sleep(time.Hour)
			g.Wait()
		}, 3 * time.Second, llm.ClassStreamIdle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, ctx := Watch(t.Context(), limits)
				defer g.Stop()
				tt.play(g)
				if ctx.Err() != nil {
					t.Fatal("ended too early")
				}
				start := time.Now()
				<-ctx.Done()
				err := g.Failure(t.Context(), "op", ctx.Err(), Mask{})
				if llm.ClassOf(err) != tt.want || time.Since(start) != tt.after {
					t.Errorf("got %v after %s; want %s after %s", err, time.Since(start), tt.want, tt.after)
				}
			})
		})
	}
}

func TestGuardFailure(t *testing.T) {
	g, _ := Watch(t.Context(), Timeouts{Open: -1})
	defer g.Stop()
	cause := errors.New("the person pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := g.Failure(ctx, "op", io.ErrUnexpectedEOF, Mask{}); !errors.Is(err, cause) {
		t.Errorf("E-190: got %v, want the caller's cause", err)
	}
	leak := &url.Error{Op: "Post", URL: "https://h.example/?key=AIzaSecret", Err: errors.New("refused")}
	err := g.Failure(t.Context(), "op", leak, Mask{})
	if llm.ClassOf(err) != llm.ClassTransport || strings.Contains(err.Error(), "AIzaSecret") {
		t.Errorf("got %v, want a transport error without the key", err)
	}
	own := &url.Error{Op: "Post", URL: "https://x?key=secret-key-1", Err: &llm.Error{
		Class: llm.ClassInvalidRequest, Op: "replay", Message: "differs from secret-key-1", Err: errors.New("secret-key-1"),
	}}
	err = g.Failure(t.Context(), "op", own, NewMask("secret-key-1"))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassInvalidRequest || err.Error() != "op: invalid_request: differs from [masked]" {
		t.Errorf("a class of the transport's own: %v", err)
	}
	if err := g.Failure(t.Context(), "op", io.ErrUnexpectedEOF, Mask{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the cause kept", err)
	}
}
