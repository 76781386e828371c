package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// realm is a realm that is open. It implements [driver.Realm] and [driver.Copy].
type realm struct {
	*handle
	log
	files
}

// handle is what a realm's log and files share.
type handle struct {
	*Driver
	name     string
	id       int32
	readOnly bool
	apart    bool    // no marks: a copy under way, or for verification
	course   *course // of its own if apart

	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

var _ driver.Copy = (*realm)(nil)

// Open implements [driver.Driver].
func (d *Driver) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(name); err != nil {
		return nil, err
	}
	r := d.realm(name, o.ReadOnly || o.Check, o.Check)
	return r.opened(d.do(ctx, d.life, fmt.Sprintf("open realm %q", name), func(ctx context.Context, c *conn) error {
		return r.find(ctx, c, o)
	}))
}

// realm returns a realm that is not found yet.
func (d *Driver) realm(name string, readOnly, apart bool) *realm {
	h := &handle{Driver: d, name: name, readOnly: readOnly, apart: apart}
	if apart {
		h.course = newCourse(name)
	} else {
		h.course = d.courses.of(name)
	}
	h.life, h.end = context.WithCancel(d.life)
	return &realm{handle: h, log: log{h}, files: files{handle: h}}
}

// opened returns the realm, or closes it after an error.
func (r *realm) opened(err error) (driver.Copy, error) {
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// find finds the realm, or creates a missing one. A realm that is not there although a mark is known was
// lost.
func (r *realm) find(ctx context.Context, c *conn, o driver.Options) error {
	var copying bool
	err := c.row(ctx, `SELECT id, copying FROM $.realms WHERE name = $1::text`, r.name).Scan(&r.id, &copying)
	missing := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !missing {
		return err
	}
	if copying && !o.Check {
		return fmt.Errorf("it is being restored: %w", driver.ErrLocked)
	}
	if !r.apart {
		if err := r.course.prepare(); err != nil {
			return err
		}
		if err := r.log.recall(ctx, c); err != nil {
			return err
		}
	}
	if missing && (o.MustExist || r.readOnly) {
		return driver.ErrNotExist
	}
	if missing {
		if r.id, err = r.ensure(ctx, c, r.name); err != nil {
			return err
		}
		r.course.mu.Lock()
		r.course.id = r.id
		r.course.mu.Unlock()
	}
	if _, _, err := r.bounds(ctx, c); err != nil || r.readOnly {
		return err
	}
	return r.sweep(ctx, c)
}

// ensure returns a realm's number. It creates a missing one with an empty log.
func (d *database) ensure(ctx context.Context, c *conn, name string) (id int32, err error) {
	_, err = c.exec(ctx, `WITH made AS (INSERT INTO $.realms (name, copying) VALUES ($1::text, false) ON CONFLICT DO NOTHING RETURNING id)
		INSERT INTO $.entries (realm, cursor, sum) SELECT id, 0, 0 FROM made`, name)
	if err == nil {
		err = c.row(ctx, `SELECT id FROM $.realms WHERE name = $1::text`, name).Scan(&id)
	}
	return id, err
}

// Close implements [driver.Realm]. An append under way ends by itself.
func (h *handle) Close() error {
	err := h.open()
	h.end()
	return err
}

// Drop implements [driver.Copy].
func (h *handle) Drop() error { return h.Close() }

// open returns ErrClosed after Close.
func (h *handle) open() error {
	if h.life.Err() != nil {
		return driver.ErrClosed
	}
	return nil
}

// mayWrite returns why nothing may be written, or nil.
func (h *handle) mayWrite() error {
	if h.readOnly {
		return errReadOnly
	}
	return h.open()
}

// errReadOnly is the error of a write to a realm that is open for reading.
var errReadOnly = errors.New("the realm is open for reading only")

// write is do for what changes the realm.
func (h *handle) write(ctx context.Context, what string, op func(context.Context, *conn) error) error {
	if err := h.mayWrite(); err != nil {
		return err
	}
	return h.do(ctx, h.life, what, op)
}
