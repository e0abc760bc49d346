//go:build unix

// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// A Proxy stands between a store and its server and can lose answers.
type Proxy struct {
	Addr string // host and port to connect to

	to     string
	listen net.Listener
	cut    atomic.Int64 // how many answers are still to be lost
	lost   atomic.Int64
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// NewProxy makes a proxy to a server.
func NewProxy(ctx context.Context, s *Server) (*Proxy, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Addr: l.Addr().String(), to: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), listen: l, conns: make(map[net.Conn]struct{}),
	}
	p.wg.Go(func() { p.accept(context.WithoutCancel(ctx)) })
	return p, nil
}

// URL is that of the server by way of the proxy.
func (p *Proxy) URL() string { return "postgres://postgres@" + p.Addr + "/postgres?sslmode=disable" }

// Cut loses the next n answers: the server has carried out what it was asked for,
// and the connection ends before it can say so.
func (p *Proxy) Cut(n int) { p.cut.Store(int64(n)) }

// Lost is how many answers were lost so far.
func (p *Proxy) Lost() int { return int(p.lost.Load()) }

// Drop ends every connection there is.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // it is to break
	}
}

// Close ends the proxy.
func (p *Proxy) Close() error {
	err := p.listen.Close()
	p.Drop()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context) {
	var d net.Dialer
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		server, err := d.DialContext(ctx, "tcp4", p.to)
		if err != nil {
			_ = client.Close() // the server is away, and so are we
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(server, client, false) })
		p.wg.Go(func() { p.pass(client, server, true) })
	}
}

// pass copies one direction until either end closes.
func (p *Proxy) pass(to, from net.Conn, answers bool) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
		_ = errors.Join(to.Close(), from.Close()) // one of them has ended already
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && answers && p.takeCut() {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) takeCut() bool {
	for {
		n := p.cut.Load()
		if n <= 0 {
			return false
		}
		if p.cut.CompareAndSwap(n, n-1) {
			p.lost.Add(1)
			return true
		}
	}
}
