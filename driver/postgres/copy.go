package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// A copy under way is a realm that says so. Nobody finds or opens it, except for offline verification.

// copied returns the number of a copy, and whether its log has entries. Without a copy, the number is 0.
func (d *database) copied(ctx context.Context, c *conn, name string) (id int32, begun bool, err error) {
	var copying bool
	err = c.row(ctx, `SELECT id, copying, EXISTS (SELECT 1 FROM $.entries WHERE realm = id AND data IS NOT NULL) FROM $.realms WHERE name = $1::text`, name).
		Scan(&id, &copying, &begun)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, nil
	case err == nil && !copying:
		return 0, false, driver.ErrExist
	}
	return id, begun, err
}

// CopyBegun implements [driver.Copier].
func (d *Driver) CopyBegun(ctx context.Context, name string) (begun bool, err error) {
	if err := driver.CheckRealm(name); err != nil {
		return false, err
	}
	err = d.do(ctx, d.life, fmt.Sprintf("realm %q", name), func(ctx context.Context, c *conn) (err error) {
		_, begun, err = d.copied(ctx, c, name)
		return err
	})
	return begun, err
}

// CopyFiles implements [driver.Copier].
func (d *Driver) CopyFiles(ctx context.Context, name string, first driver.Cursor) (driver.Files, error) {
	return d.OpenCopy(ctx, name, first)
}

// OpenCopy implements [driver.Copier].
func (d *Driver) OpenCopy(ctx context.Context, name string, first driver.Cursor) (driver.Copy, error) {
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	before := int64(max(first, 1) - 1)
	r := d.realm(name, false, true)
	return r.opened(d.do(ctx, d.life, fmt.Sprintf("copy to realm %q", name), func(ctx context.Context, c *conn) error {
		return pgx.BeginFunc(ctx, c.Conn, func(pgx.Tx) error {
			_, err := c.exec(ctx, `INSERT INTO $.realms (name, copying) VALUES ($1::text, true) ON CONFLICT DO NOTHING`, name)
			if err != nil {
				return err
			}
			var begun bool
			if r.id, begun, err = d.copied(ctx, c, name); err != nil || begun {
				return err
			}
			// A copy of another backup, whose log has no entries yet and begins elsewhere, gives way.
			rows, err := c.exec(ctx, `DELETE FROM $.entries WHERE realm = $1::int AND cursor <> $2::bigint`, r.id, before)
			if err == nil && rows > 0 {
				_, err = c.exec(ctx, `DELETE FROM $.chunks WHERE file IN (SELECT id FROM $.files WHERE realm = $1::int)`, r.id)
				if err == nil {
					_, err = c.exec(ctx, `DELETE FROM $.files WHERE realm = $1::int`, r.id)
				}
			}
			if err == nil {
				_, err = c.exec(ctx, `INSERT INTO $.entries (realm, cursor, sum) VALUES ($1::int, $2::bigint, 0) ON CONFLICT DO NOTHING`, r.id, before)
			}
			return err
		})
	}))
}

// FinishCopy makes a copy a realm, which is then found like any other.
func (d *Driver) FinishCopy(ctx context.Context, name string) error {
	if err := driver.CheckRealm(name); err != nil {
		return err
	}
	return d.do(ctx, d.life, fmt.Sprintf("realm %q", name), func(ctx context.Context, c *conn) error {
		// One that is finished is written again: an earlier attempt may not have waited for the standby.
		rows, err := c.exec(ctx, `UPDATE $.realms SET copying = false WHERE name = $1::text`, name)
		if err == nil && rows == 0 {
			err = driver.ErrNotExist
		}
		if err == nil {
			err = c.warned()
		}
		return err
	})
}
