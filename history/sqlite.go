package history

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// sqlite is a file of SQLite, which one process at a time should write.
type sqlite struct{ file string }

func (s sqlite) words() dialect {
	return dialect{integer: "INTEGER", name: "TEXT", clustered: " WITHOUT ROWID", read: "BEGIN"}
}

// How a connection is set up. A commit is in the file's journal at once, and survives the end of the
// process. A crash of the machine may take the last ones, but never half of one: the feed has them.
const (
	busyTimeout   = 10 * time.Second
	writerPragmas = `PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
		PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 8192; PRAGMA journal_size_limit = 67108864`
	readerPragmas = `PRAGMA query_only = ON; PRAGMA cache_size = -4096`
)

func (s sqlite) open(_ context.Context, write bool) (conn, error) {
	if write {
		if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
			return nil, err
		}
	}
	db, err := sqlite3.OpenFlags(s.file, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err != nil {
		return nil, err
	}
	pragmas := readerPragmas
	if write {
		pragmas = writerPragmas
	}
	if err := errors.Join(db.BusyTimeout(busyTimeout), db.Exec(pragmas)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqliteConn{db: db, prepared: map[string]*sqlite3.Stmt{}}, nil
}

func (s sqlite) exists(context.Context) (bool, error) {
	_, err := os.Stat(s.file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// replace moves the file away, or removes it, so that the next open makes another one. What was moved
// away first is kept, since it has the oldest rows.
func (s sqlite) replace(keep bool) (bool, error) {
	aside := s.file + damagedSuffix
	if _, err := os.Stat(aside); !errors.Is(err, os.ErrNotExist) {
		keep = false
	}
	for _, part := range []string{"-shm", "-wal", ""} { // without the last one, the others mean nothing
		var err error
		if keep && part != "-shm" {
			err = os.Rename(s.file+part, aside+part)
		} else {
			err = os.Remove(s.file + part)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// damagedSuffix ends the name of a file that was moved away.
const damagedSuffix = ".damaged"

type sqliteConn struct {
	db       *sqlite3.Conn
	prepared map[string]*sqlite3.Stmt // by text; the texts are few
}

func bind(s *sqlite3.Stmt, args []any) (err error) {
	for i, a := range args {
		switch v := a.(type) {
		case int64:
			err = s.BindInt64(i+1, v)
		case string:
			err = s.BindText(i+1, v)
		default:
			err = s.BindNull(i + 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare returns a statement that is kept.
func (c *sqliteConn) prepare(sql string) (*sqlite3.Stmt, error) {
	if s := c.prepared[sql]; s != nil {
		return s, nil
	}
	s, err := c.parse(sql, sqlite3.PREPARE_PERSISTENT)
	if err == nil {
		c.prepared[sql] = s
	}
	return s, err
}

// parse parses a statement. To SQLite $1 is a name, which it looks for among all others; ?1 is a number.
func (c *sqliteConn) parse(sql string, flags sqlite3.PrepareFlag) (*sqlite3.Stmt, error) {
	s, _, err := c.db.PrepareFlags(strings.ReplaceAll(sql, "$", "?"), flags)
	return s, err
}

func (c *sqliteConn) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	c.db.SetInterrupt(ctx)
	s, err := c.prepare(sql)
	if err == nil {
		err = bind(s, args)
	}
	if err != nil {
		return 0, err
	}
	if err := s.Exec(); err != nil {
		return 0, interrupted(ctx, err)
	}
	return c.db.Changes(), nil
}

func (c *sqliteConn) query(ctx context.Context, sql string, each func(r row) error, args ...any) error {
	s, err := c.parse(sql, 0)
	if err != nil {
		return err
	}
	err = c.rows(ctx, s, each, args)
	_ = s.Close() // says again what the last step said
	return err
}

func (c *sqliteConn) lookup(ctx context.Context, sql string, each func(r row) error, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	err = c.rows(ctx, s, each, args)
	_ = s.Reset() // says again what the last step said
	return err
}

// rows calls each for the rows of a statement.
func (c *sqliteConn) rows(ctx context.Context, s *sqlite3.Stmt, each func(r row) error, args []any) error {
	c.db.SetInterrupt(ctx)
	err := bind(s, args)
	for err == nil && s.Step() {
		err = each(sqliteRow{s})
	}
	if err == nil {
		err = s.Err()
	}
	return interrupted(ctx, err)
}

// interrupted returns why the context ended, if that is why a statement failed.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (c *sqliteConn) close() error {
	c.db.SetInterrupt(context.Background())
	for _, s := range c.prepared {
		_ = s.Close() // says again what its last execution said
	}
	return c.db.Close()
}

type sqliteRow struct{ s *sqlite3.Stmt }

func (r sqliteRow) int(i int) int64   { return r.s.ColumnInt64(i) }
func (r sqliteRow) text(i int) string { return r.s.ColumnText(i) }
func (r sqliteRow) null(i int) bool   { return r.s.ColumnType(i) == sqlite3.NULL }
