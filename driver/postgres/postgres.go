// Package postgres keeps realms in a schema of a PostgreSQL database: 13 or later, or a service that
// speaks like one.
//
// A realm's log is rows of one table, with cursors without gaps: an append inserts the row after one
// that is there, if its place is free. Files are rows of chunks. The board is one row. Nothing is kept
// in a session, so a pooler may hand each transaction to another one. A pooler that cannot keep
// prepared statements is noticed, and then none are used.
//
// What an acknowledged entry survives is up to the database. An entry counts once its commit has
// waited for whatever the database is told to wait for: see log.go. A database that fails over to a
// copy which lags behind loses entries without a trace, so marks are kept outside it: see witness.go.
//
// # Rights
//
// A role that may create a schema in the database sets everything up. A schema that is there and of
// this version needs no more than
//
//	GRANT CONNECT ON DATABASE db TO role;
//	GRANT USAGE ON SCHEMA kuji TO role;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kuji TO role;
//
// This package does not know what entries and files mean. Only the binary (internal/cluster and
// internal/cli) and tests import it, so programs that embed Kuji do not compile it.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// Options say which database it is and how realms are kept there.
type Options struct {
	// URL is "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full", or "host=… user=…", with all that
	// PostgreSQL's own clients read: several hosts, passfile, service, sslrootcert. "schema=NAME" in it is
	// the schema to use; without it: kuji. The server must take writes, whatever target_session_attrs says.
	URL string
	// Cluster is the name of the realms' cluster. It has the form of a realm's name. A schema is one
	// cluster's.
	Cluster string
	// Marks is the directory where this process keeps how far each log came. "": only in memory, so that
	// a restart forgets it.
	Marks string
	// Timeout is how long an append waits before it is unknown, and can be sent again. 0: 1 s.
	Timeout time.Duration
	// Patience is how long calls other than appends are tried. 0: 60 s, since a managed database may take
	// so long to fail over.
	Patience time.Duration
	// MaxConns is the most connections that are open, at least 4. A quarter of them is never used for
	// appends, which may wait for a standby. 0: 16.
	MaxConns int
	// Logger gets what happens to connections and promises. Nil: nobody does.
	Logger *slog.Logger
}

func (o *Options) check() error {
	if err := driver.CheckRealm(o.Cluster); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.Patience = cmp.Or(o.Patience, time.Minute)
	o.MaxConns = cmp.Or(o.MaxConns, 16)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Timeout < 0 || o.Patience < 0 {
		return fmt.Errorf("timeout %v and patience %v: want more than 0", o.Timeout, o.Patience)
	}
	if o.MaxConns < 4 {
		return fmt.Errorf("%d connections: want at least 4", o.MaxConns)
	}
	return nil
}

// Driver keeps realms in a schema of a database. See [driver.Shared].
type Driver struct {
	*database
	courses courses
	poller  poller
	board   lane
	doubt   atomic.Bool // nobody knows whether the last update of the board waited for the standby
}

// database is the schema and the connections to it.
type database struct {
	o      Options
	config *place
	*pool
	texts   sync.Map // SQL with the schema's name in it, by its text without
	promise promise
}

var (
	_ driver.Shared   = (*Driver)(nil)
	_ driver.Nudged   = (*Driver)(nil)
	_ driver.Promiser = (*Driver)(nil)
	_ driver.Witness  = (*Driver)(nil)
	_ driver.Copier   = (*Driver)(nil)
)

// Connect connects to a database, and makes or updates the schema. The context bounds how long that
// may take.
func Connect(ctx context.Context, o Options) (*Driver, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	config, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	d := &Driver{database: &database{o: o, config: config}, board: newLane(1)}
	d.pool = newPool(o.MaxConns, d.connect)
	d.courses = courses{byName: map[string]*course{}, dir: o.Marks, logger: o.Logger}
	d.poller = poller{followed: map[int32]*followed{}}
	if err := d.courses.load(); err != nil {
		d.pool.close()
		return nil, fmt.Errorf("marks: %w", err)
	}
	if err := d.do(ctx, d.life, "connect to "+config.String(), d.migrate); err != nil {
		d.pool.close()
		return nil, err
	}
	d.wg.Go(d.watch)
	d.wg.Go(d.keepMarks)
	return d, nil
}

// Close implements [driver.Driver].
func (d *Driver) Close() error {
	if d.life.Err() != nil {
		return driver.ErrClosed
	}
	d.pool.close()
	return d.courses.close()
}

// Realms implements [driver.Driver].
func (d *Driver) Realms(ctx context.Context) (names []string, err error) {
	err = d.do(ctx, d.life, "list the realms", func(ctx context.Context, c *conn) error {
		rows, err := c.query(ctx, `SELECT name FROM $.realms WHERE NOT copying ORDER BY name COLLATE "C"`)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return names, err
}

// sql returns a statement with the schema's name in place of each "$.".
func (d *database) sql(text string) string {
	if known, ok := d.texts.Load(text); ok {
		return known.(string)
	}
	full := strings.ReplaceAll(text, "$.", pgx.Identifier{d.config.schema}.Sanitize()+".")
	d.texts.Store(text, full)
	return full
}

// attempt bounds one attempt of a call: a server that was lost may not answer.
const attempt = 10 * time.Second

// do calls op, which may be called again, until it succeeds or fails for good. If ctx or Patience
// ends first, the error has ErrUnavailable in it. When life ends, it is ErrClosed. It says what was done.
func (d *database) do(ctx, life context.Context, what string, op func(context.Context, *conn) error) error {
	if err := d.try(ctx, life, op); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// try is do without a text.
func (d *database) try(ctx, life context.Context, op func(context.Context, *conn) error) error {
	if life.Err() != nil {
		return driver.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := known(d.once(ctx, op))
		if err != nil && life.Err() != nil {
			return driver.ErrClosed
		}
		if err == nil || final(err) {
			return err
		}
		if pause(ctx, wait); ctx.Err() != nil {
			if life.Err() != nil {
				return driver.ErrClosed
			}
			return fmt.Errorf("%w: %w", driver.ErrUnavailable, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// once makes one attempt.
func (d *database) once(ctx context.Context, op func(context.Context, *conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	c, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	err = op(ctx, c)
	d.release(c, err)
	return err
}

// pause waits, but not after ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
