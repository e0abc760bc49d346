// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

// migrations bring the tables from the version of their index to the next; the
// table version holds it. What was released is never changed. $ is the schema.
var migrations = [...]string{`
CREATE TABLE $.run(
	run_id      TEXT COLLATE "C" PRIMARY KEY,
	head        BIGINT NOT NULL,          -- sequence number of the last record
	epoch       BIGINT NOT NULL,          -- of the latest lease
	phase       TEXT NOT NULL,
	pending     BIGINT NOT NULL,          -- 64 bits without a sign
	ended       BOOLEAN NOT NULL,
	owner       TEXT NOT NULL,
	holder      TEXT NOT NULL DEFAULT '', -- a word of the latest lease alone
	lease_until TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
	created     BIGINT NOT NULL,          -- nanoseconds since 1970
	updated     BIGINT NOT NULL,
	labels      TEXT NOT NULL,            -- JSON object
	parent      TEXT NOT NULL,
	parent_seq  BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE $.journal(
	run_id TEXT COLLATE "C" NOT NULL REFERENCES $.run ON DELETE CASCADE,
	seq    BIGINT NOT NULL,
	epoch  BIGINT NOT NULL,
	crc    BIGINT NOT NULL,               -- the one in rec
	rec    BYTEA NOT NULL,                -- one record as JSON, as package journal writes it
	PRIMARY KEY(run_id, seq)
);
CREATE TABLE $.offer(
	run_id TEXT COLLATE "C" NOT NULL REFERENCES $.run ON DELETE CASCADE,
	key    BYTEA NOT NULL,
	n      BIGINT GENERATED ALWAYS AS IDENTITY, -- the order of arrival
	rec    BYTEA NOT NULL,
	PRIMARY KEY(run_id, key)
);
CREATE TABLE $.taken(
	run_id TEXT COLLATE "C" NOT NULL REFERENCES $.run ON DELETE CASCADE,
	key    BYTEA NOT NULL,
	seq    BIGINT NOT NULL,               -- of the first record of the append that took it
	PRIMARY KEY(run_id, key)
);
CREATE TABLE $.blob(
	run_id TEXT COLLATE "C" NOT NULL REFERENCES $.run ON DELETE CASCADE,
	sha256 TEXT NOT NULL,
	bytes  BYTEA NOT NULL,
	PRIMARY KEY(run_id, sha256)
);
`}

// statements are the queries, which name the schema, and the channel of
// notifications.
type statements struct {
	schema, channel string

	create, restore, header, acquire, renew, release, append, notify, at, remove string
	runs, records, sums, blob, offer, inbox                                      string
}

const runColumns = `run_id, head, epoch, phase, pending, ended, owner, lease_until > clock_timestamp(), created, updated, labels, parent, parent_seq`

func statementsIn(schema string) statements {
	in := func(query string) string { return strings.ReplaceAll(query, "$.", schema+".") }
	return statements{
		schema: schema, channel: "fiducial_" + schema,

		create: in(`WITH r AS (
	INSERT INTO $.run(run_id, head, epoch, phase, pending, ended, owner, created, updated, labels, parent, parent_seq)
	VALUES($1, 1, 0, '', 0, false, '', $2, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING run_id
), b AS (
	INSERT INTO $.blob SELECT r.run_id, u.sha256, u.bytes FROM r, unnest($8::text[], $9::bytea[]) AS u(sha256, bytes) ON CONFLICT DO NOTHING
)
INSERT INTO $.journal(run_id, seq, epoch, crc, rec) SELECT run_id, 1, 0, $6, $7 FROM r`),

		restore: in(`INSERT INTO $.run(run_id, head, epoch, phase, pending, ended, owner, created, updated, labels, parent, parent_seq)
VALUES($1, $2, $3, $4, $5, $6, '', $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`),

		header: in(`SELECT crc FROM $.journal WHERE run_id=$1 AND seq=1`),

		// The word of the lease lets an acquire be made again whose answer was lost.
		acquire: in(`UPDATE $.run SET epoch=epoch+1, owner=$2, holder=$3, lease_until=clock_timestamp()+$4
WHERE run_id=$1 AND epoch>=0 AND epoch<$5 AND (lease_until<=clock_timestamp() OR holder=$3)
RETURNING epoch, head, (SELECT max(seq) FROM $.journal j WHERE j.run_id=$1)`),

		renew: in(`UPDATE $.run SET lease_until=clock_timestamp()+$3 WHERE run_id=$1 AND epoch=$2`),

		release: in(`UPDATE $.run SET lease_until='-infinity' WHERE run_id=$1 AND epoch=$2`),

		// All of it hangs on f: without its row nothing is stored. A key that was taken
		// before violates the key of its table and undoes the whole.
		append: in(`WITH f AS (
	UPDATE $.run SET head=head+cardinality($6::bigint[]), phase=$9, pending=$10, ended=$11, updated=$12, lease_until=clock_timestamp()+$13
	WHERE run_id=$1 AND epoch=$2 AND head=$3 RETURNING run_id
), b AS (
	INSERT INTO $.blob SELECT f.run_id, u.sha256, u.bytes FROM f, unnest($4::text[], $5::bytea[]) AS u(sha256, bytes) ON CONFLICT DO NOTHING
), t AS (
	INSERT INTO $.taken SELECT f.run_id, u.key, $3+1 FROM f, unnest($8::bytea[]) AS u(key)
), j AS (
	INSERT INTO $.journal(run_id, seq, epoch, crc, rec)
	SELECT f.run_id, $3+u.n, $2, u.crc, u.rec FROM f, unnest($6::bigint[], $7::bytea[]) WITH ORDINALITY AS u(crc, rec, n)
)
SELECT FROM f`),

		// Not part of the append: commits that notify wait for one another.
		notify: in(`SELECT pg_notify($1, run_id) FROM unnest($2::text[]) AS u(run_id)`),

		// Where the run stands, and the record at a place.
		at: in(`SELECT r.epoch, r.head, j.epoch, j.crc FROM $.run r LEFT JOIN $.journal j ON j.run_id=r.run_id AND j.seq=$2 WHERE r.run_id=$1`),

		remove: in(`WITH d AS (DELETE FROM $.run WHERE run_id=$1 AND lease_until<=clock_timestamp() RETURNING run_id)
SELECT pg_notify($2, run_id) FROM d`),

		runs: in(`SELECT ` + runColumns + ` FROM $.run`),

		records: in(`SELECT seq, epoch, crc, rec FROM $.journal WHERE run_id=$1 AND seq>=$2 AND seq<=$3 ORDER BY seq`),

		sums: in(`SELECT seq, crc FROM $.journal WHERE run_id=$1 AND seq IN (1, $2)`),

		blob: in(`SELECT bytes FROM $.blob WHERE run_id=$1 AND sha256=$2`),

		offer: in(`WITH b AS (
	INSERT INTO $.blob SELECT $1, u.sha256, u.bytes FROM unnest($4::text[], $5::bytea[]) AS u(sha256, bytes) ON CONFLICT DO NOTHING
)
INSERT INTO $.offer(run_id, key, rec) VALUES($1, $2, $3) ON CONFLICT DO NOTHING`),

		inbox: in(`SELECT r.epoch, o.key, o.rec FROM $.run r LEFT JOIN $.offer o
ON o.run_id=r.run_id AND NOT EXISTS(SELECT FROM $.taken t WHERE t.run_id=o.run_id AND t.key=o.key)
WHERE r.run_id=$1 ORDER BY o.n`),
	}
}

// migrate brings the tables up to date, one process at a time.
func (j *Journal) migrate(ctx context.Context) error {
	v, err := j.version(ctx, j.pool)
	switch {
	case err != nil || v == len(migrations):
		return err
	case j.opts.ReadOnly:
		return &journal.FormatError{Version: v, Kind: "database", Err: errors.New(
			"the database has older tables, or none: open it for writing once")}
	}
	err = pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockKey(j.opts.Schema)); err != nil {
			return err
		}
		v, err := j.version(ctx, tx)
		if err != nil || v == len(migrations) {
			return err
		}
		s := j.opts.Schema
		var step strings.Builder
		// IF NOT EXISTS asks for the right to make one even when it is there.
		var there bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS(SELECT FROM pg_catalog.pg_namespace WHERE nspname=$1)`, s).Scan(&there); err != nil {
			return err
		}
		if !there {
			step.WriteString("CREATE SCHEMA " + s + ";")
		}
		step.WriteString("CREATE TABLE IF NOT EXISTS " + s + ".version(version INT NOT NULL);")
		for ; v < len(migrations); v++ {
			step.WriteString(strings.ReplaceAll(migrations[v], "$.", s+"."))
		}
		fmt.Fprintf(&step, "DELETE FROM %s.version; INSERT INTO %s.version VALUES(%d);", s, s, v)
		_, err = tx.Exec(ctx, step.String(), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if code(err) == noPrivilege {
		err = fmt.Errorf("%w: this role may not make tables in schema %[2]s: an administrator can CREATE SCHEMA %[2]s AUTHORIZATION it", err, j.opts.Schema)
	}
	return err
}

// lockKey is a number that others who use the database hardly hold a lock under.
func lockKey(schema string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("fiducial journal " + schema)) // a hash does not fail
	return int64(h.Sum64())
}

// A querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// version is that of the tables, 0 when there are none.
func (j *Journal) version(ctx context.Context, q querier) (int, error) {
	var there bool
	err := q.QueryRow(ctx, `SELECT EXISTS(SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid=c.relnamespace
WHERE n.nspname=$1 AND c.relname='version')`, j.opts.Schema).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var v int
	if err := q.QueryRow(ctx, `SELECT version FROM `+j.opts.Schema+`.version`).Scan(&v); err != nil {
		return 0, err
	}
	if v > len(migrations) || v < 0 {
		return 0, &journal.FormatError{Version: v, Kind: "database", Err: fmt.Errorf(
			"the tables have version %d, this program knows up to %d", v, len(migrations))}
	}
	return v, nil
}
