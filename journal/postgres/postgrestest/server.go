//go:build unix

// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrMissing says that the server's programs are not there. Tests skip then,
// unless the environment variable RequireEnv is 1.
var ErrMissing = errors.New("PostgreSQL's programs initdb and postgres are not on this machine: run scripts/setup.sh postgres")

// RequireEnv names the environment variable that makes a missing server a failure.
const RequireEnv = "REQUIRE_POSTGRES"

// A Server is a running server that trusts everybody who comes over loopback. It
// syncs what it commits.
type Server struct {
	URL  string // of the database postgres as its superuser
	Port int

	bin, dir string
	log      io.Writer
	cmd      *exec.Cmd
	exited   chan error
}

// Start makes a server. What it says goes to log. Stop it at the end.
func Start(ctx context.Context, log io.Writer) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fiducial-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, log: log}
	if err := s.init(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range 3 { // somebody may take the port in between
		if s.Port, err = freePort(ctx); err != nil {
			break
		}
		s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.Port)
		if err = s.Run(ctx); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// programs is the folder of the newest server that is installed.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.Join(ErrMissing, err)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for a name that is no number
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

func (s *Server) init(ctx context.Context) error {
	who, err := unprivileged()
	if err != nil {
		return err
	}
	if who != nil {
		if err := os.Chown(s.dir, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	cmd := s.command(ctx, "initdb", who, "-D", filepath.Join(s.dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--no-locale", "--no-sync", "--data-checksums")
	cmd.Stdout, cmd.Stderr = nil, nil
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (s *Server) command(ctx context.Context, name string, who *syscall.Credential, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
	return cmd
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("a listener at %v", l.Addr()), l.Close())
	}
	return addr.Port, l.Close()
}

// Run starts a server that was stopped, on the same port with the same data, and
// returns when it answers.
func (s *Server) Run(ctx context.Context) error {
	who, err := unprivileged()
	if err != nil {
		return err
	}
	s.cmd = s.command(context.WithoutCancel(ctx), "postgres", who, "-D", filepath.Join(s.dir, "data"), "-c", "listen_addresses=127.0.0.1",
		"-c", "port="+strconv.Itoa(s.Port), "-c", "unix_socket_directories=", "-c", "log_min_messages=panic", "-c", "shared_buffers=32MB",
		"-c", "max_connections=60")
	dieWithUs(s.cmd)
	exited := make(chan error, 1)
	s.exited = exited
	if err := start(s.cmd, exited); err != nil {
		return err
	}
	for wait := time.Now().Add(time.Minute); ; {
		select {
		case err := <-exited:
			exited <- err
			return fmt.Errorf("the server ended: %w", cmp.Or(err, io.ErrUnexpectedEOF))
		case <-time.After(20 * time.Millisecond):
		}
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return conn.Close(ctx)
		}
		if time.Now().After(wait) || ctx.Err() != nil {
			return errors.Join(err, s.Halt(true))
		}
	}
}

// start starts a process on a thread that lives as long as the process does: that
// thread's end is what the kernel takes for ours.
func start(cmd *exec.Cmd, exited chan<- error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	return <-started
}

// Halt ends the server and keeps its data. With crash it ends as at a power cut,
// as far as a program can: without writing anything more.
func (s *Server) Halt(crash bool) error {
	sig := syscall.SIGINT // "fast": https://www.postgresql.org/docs/15/server-shutdown.html
	if crash {
		sig = syscall.SIGQUIT
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.exited:
		s.exited <- err
		return nil
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("the server did not end"), s.cmd.Process.Kill())
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	return errors.Join(s.Halt(true), os.RemoveAll(s.dir))
}
