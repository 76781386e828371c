package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji"
)

// postgres is a schema in a PostgreSQL database.
type postgres struct {
	config *pgx.ConnConfig
	name   string // of the schema
}

// maxSchema is the longest name of a schema, in bytes. PostgreSQL cuts longer ones off.
const maxSchema = 63

// connectTime is how long a connection may take to open, unless the URL says otherwise.
const connectTime = 10 * time.Second

func newPostgres(url, realm string) (database, error) {
	name := "kuji_" + realm
	if len(name) > maxSchema {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "realm", Message: fmt.Sprintf("%q is too long for a history in PostgreSQL: want at most %d bytes", realm, maxSchema-len("kuji_"))}
	}
	config, err := pgx.ParseConfig(url)
	if err != nil { // it says the URL without the password
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "history", Message: "not the URL of a PostgreSQL database", Err: err}
	}
	if config.ConnectTimeout == 0 { // a network that loses everything would hold a reader for minutes
		config.ConnectTimeout = connectTime
	}
	config.RuntimeParams["search_path"] = pgx.Identifier{name}.Sanitize()
	return &postgres{config, name}, nil
}

func (p *postgres) words() dialect {
	return dialect{integer: "BIGINT", name: `TEXT COLLATE "C"`, read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		view: "CREATE OR REPLACE VIEW", each: "json_array_elements(CAST(${1} AS json)->'${2}')", doc: "CAST(${1} AS json)",
		first: []string{"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{p.name}.Sanitize()}}
}

func (p *postgres) exists(ctx context.Context) (bool, error) {
	c, err := p.open(ctx, false)
	if err != nil {
		return false, err
	}
	n, err := c.exec(ctx, "SELECT 1 FROM pg_namespace WHERE nspname = $1", p.name)
	return n > 0, errors.Join(err, c.close())
}

// replace does nothing: making the tables again is all that a client can do.
func (p *postgres) replace(bool) error { return nil }

func (p *postgres) open(ctx context.Context, _ bool) (conn, error) {
	c, err := pgx.ConnectConfig(ctx, p.config.Copy())
	if err != nil {
		return nil, err
	}
	return postgresConn{c}, nil
}

type postgresConn struct{ c *pgx.Conn }

func (c postgresConn) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := c.c.Exec(ctx, sql, args...) // keeps it prepared
	return tag.RowsAffected(), err
}

func (c postgresConn) query(ctx context.Context, sql string, each func(r row) error, args ...any) error {
	rows, err := c.c.Query(ctx, sql, args...) // keeps it prepared, too
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err == nil {
			err = each(values)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c postgresConn) close() error { return c.c.Close(context.Background()) }
