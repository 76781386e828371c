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
	return dialect{integer: "INTEGER", name: "TEXT", clustered: " WITHOUT ROWID", read: "BEGIN",
		view: "CREATE VIEW IF NOT EXISTS", each: "json_each(${1}->'${2}')", doc: "${1}"}
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

// replace moves or removes the file. What was moved first is kept: it has the oldest rows.
func (s sqlite) replace(keep bool) error {
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
			return err
		}
	}
	return nil
}

// damagedSuffix ends the name of a file that was moved away.
const damagedSuffix = ".damaged"

type sqliteConn struct {
	db       *sqlite3.Conn
	prepared map[string]*sqlite3.Stmt // by text
}

// prepare returns a statement with its arguments. SQLite looks for $1 among all names; ?1 is a number.
func (c *sqliteConn) prepare(ctx context.Context, sql string, args []any) (s *sqlite3.Stmt, err error) {
	c.db.SetInterrupt(ctx)
	if s = c.prepared[sql]; s == nil {
		if s, _, err = c.db.PrepareFlags(strings.ReplaceAll(sql, "$", "?"), sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.prepared[sql] = s
	}
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
			return nil, err
		}
	}
	return s, nil
}

func (c *sqliteConn) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	s, err := c.prepare(ctx, sql, args)
	if err == nil {
		err = s.Exec()
	}
	if err != nil {
		return 0, interrupted(ctx, err)
	}
	return c.db.Changes(), nil
}

func (c *sqliteConn) query(ctx context.Context, sql string, each func(r row) error, args ...any) error {
	s, err := c.prepare(ctx, sql, args)
	if err != nil {
		return err
	}
	r := make(row, s.ColumnCount())
	for err == nil && s.Step() {
		for i := range r {
			switch s.ColumnType(i) {
			case sqlite3.NULL:
				r[i] = nil
			case sqlite3.INTEGER:
				r[i] = s.ColumnInt64(i)
			default:
				r[i] = s.ColumnText(i)
			}
		}
		err = each(r)
	}
	if err == nil {
		err = s.Err()
	}
	_ = s.Reset() // says again what the last step said
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
