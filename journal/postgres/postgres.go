// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fiducial-dev/fiducial/journal"
)

// Options change how a store is opened. The zero value is the usual way.
type Options struct {
	// Schema is where the tables stand: lower-case letters, digits and underscores,
	// 40 at most. Empty means "fiducial". It is made when it is missing.
	Schema string

	// TTL is how long a run stays held after its holder was last heard of. The holder
	// is heard of every quarter of it. 0 means 30 s.
	TTL time.Duration

	// Poll is how often Follow looks when it hears nothing: a notification may be
	// lost with its connection. 0 means every second.
	Poll time.Duration

	// Patience is how long a call goes on trying while the server cannot be reached.
	// 0 means 30 s.
	Patience time.Duration

	// ReadOnly refuses every change, also the making of tables.
	ReadOnly bool
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func (o Options) complete() (Options, error) {
	o.Schema = cmp.Or(o.Schema, "fiducial")
	o.TTL = cmp.Or(o.TTL, 30*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	var why error
	switch {
	case !schemaName.MatchString(o.Schema):
		why = fmt.Errorf("schema %q: use lower-case letters, digits and underscores, 40 at most", o.Schema)
	case o.TTL < 100*time.Millisecond:
		why = fmt.Errorf("a TTL of %v is too short to be renewed in time; give 100ms at least", o.TTL)
	case o.Poll < 0 || o.Patience < 0:
		why = errors.New("a time is negative")
	default:
		return o, nil
	}
	return o, &journal.Error{Kind: journal.KindInvalid, Op: "open", Err: why}
}

// Journal is a [journal.Journal] in a PostgreSQL database.
type Journal struct {
	opts Options
	pool *pgxpool.Pool
	sql  statements

	stop  context.CancelFunc // ends what goes on in the background
	done  <-chan struct{}    // closed by stop
	hub   hub
	crier crier

	mu     sync.Mutex
	leases map[*lease]struct{}
	closed bool
}

// Open opens the journal in the database that url names, in one of the forms that
// libpq knows: postgres://user:password@host:port/database?sslmode=... or key=value
// pairs (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING).
// Tables of an older version are brought up to date; those of a newer one are a
// [*journal.FormatError]. A server that cannot be reached is an error at once. No
// error holds the password.
func Open(ctx context.Context, url string, opts Options) (*Journal, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &journal.Error{Kind: journal.KindInvalid, Op: "open", Err: addressError(err)}
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, 10*time.Second)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "fiducial"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, storeError("open", "", err)
	}
	j := &Journal{opts: opts, pool: pool, sql: statementsIn(opts.Schema), leases: make(map[*lease]struct{})}
	if err := j.migrate(ctx); err != nil {
		pool.Close()
		return nil, storeError("open", "", err)
	}
	ctx, j.stop = context.WithCancel(context.WithoutCancel(ctx))
	j.done = ctx.Done()
	j.hub = hub{waiting: make(map[string]map[chan struct{}]struct{}), first: make(chan struct{}), done: make(chan struct{})}
	j.crier = crier{runs: make(map[string]bool), kick: make(chan struct{}, 1), done: make(chan struct{})}
	go j.cry(ctx)
	go j.listen(ctx)
	return j, nil
}

// addressError says what is wrong with an address and nothing of what stands in it:
// where the parser went astray it takes a part of the password for something else.
func addressError(err error) error {
	const advice = "give postgres://user:password@host:port/database, with %XX for what is no letter or digit in the password"
	text := err.Error() // cannot parse `the address`: what (why)
	i := strings.LastIndex(text, "`: ")
	if i < 0 {
		return errors.New("the address of the database cannot be read: " + advice)
	}
	said, why, _ := strings.Cut(text[i+3:], " (")
	if why = strings.TrimSuffix(why, ")"); why != "" && !strings.ContainsAny(why, `"'`+"`") { // nothing is quoted
		said += ": " + why
	}
	return fmt.Errorf("the address of the database: %s: %s", said, advice)
}

// Promise is [journal.Durable]. It is the server's administrator who keeps fsync and
// synchronous_commit on, as they are by default.
func (j *Journal) Promise() journal.Promise { return journal.Durable }

// enter is what every call looks at first.
func (j *Journal) enter(ctx context.Context, op, run string, writes bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if op != "list" {
		if err := journal.CheckRun(op, run); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return &journal.Error{Kind: journal.KindClosed, Op: op, Run: run}
	case writes && j.opts.ReadOnly:
		return &journal.Error{Kind: journal.KindReadOnly, Op: op, Run: run}
	}
	return nil
}

// releaseTime is how long Close and Release try to tell the server that a lease has
// ended. When they cannot, it runs out by itself.
const releaseTime = 5 * time.Second

// Close implements [journal.Journal].
func (j *Journal) Close() error {
	j.mu.Lock()
	leases, already := j.leases, j.closed
	j.leases, j.closed = nil, true
	j.mu.Unlock()
	if already {
		return nil
	}
	var errs []error
	for l := range leases {
		errs = append(errs, l.giveUp())
	}
	j.stop()
	<-j.crier.done
	<-j.hub.done
	j.pool.Close()
	return errors.Join(errs...)
}

// rows collects what a query gives.
func rows[T any](ctx context.Context, j *Journal, scan pgx.RowToFunc[T], query string, args ...any) (out []T, err error) {
	err = j.try(ctx, func(ctx context.Context) error {
		r, err := j.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(r, scan)
		return err
	})
	return out, err
}
