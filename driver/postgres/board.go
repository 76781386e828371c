package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/driver"
)

// errFaster says that another node has updated the board since it was read.
var errFaster = errors.New("another node was faster")

// Update implements [driver.Board]. An update whose outcome is not known is not tried again. The next one
// then writes even what is there already, which may be there without the standby.
func (d *Driver) Update(ctx context.Context, change func(old []byte) (data []byte, err error)) error {
	for {
		err := d.update(ctx, change)
		if !errors.Is(err, errFaster) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the board: %w: %w", driver.ErrUnavailable, err)
		}
	}
}

func (d *Driver) update(ctx context.Context, change func(old []byte) (data []byte, err error)) error {
	var version int64
	var old []byte
	err := d.do(ctx, d.life, "the board", func(ctx context.Context, c *conn) error {
		return c.row(ctx, `SELECT version, data FROM $.board`).Scan(&version, &old)
	})
	if err != nil {
		return err
	}
	if len(old) == 0 {
		old = nil
	}
	was := string(old)
	data, err := change(old)
	if err = cmp.Or(err, driver.CheckBoard(data)); err != nil {
		return err
	}
	if string(data) == was && !d.doubt.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	err = d.board.enter(ctx)
	if err == nil {
		d.doubt.Store(true)
		next := append(make([]byte, 0, len(data)), data...) // the caller may use its own again
		err = d.fly(d.board, func(ctx context.Context, c *conn) (driver.Cursor, error) {
			rows, err := c.exec(ctx, `UPDATE $.board SET version = version + 1, data = $2::bytea WHERE version = $1::bigint`, version, next)
			if err == nil && rows == 0 {
				err = errFaster
			}
			return 0, cmp.Or(err, c.warned())
		}, func(*flight) {}).wait(ctx)
	}
	if err == nil {
		d.doubt.Store(false)
	}
	if err == nil || errors.Is(err, errFaster) {
		return err
	}
	if d.life.Err() != nil {
		return fmt.Errorf("the board: %w", driver.ErrClosed)
	}
	return fmt.Errorf("the board: %w", known(err))
}
