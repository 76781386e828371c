package history

import (
	"context"
	"errors"
	"sync"

	"github.com/kuji-dev/kuji"
)

// pool is the connections of reads.
type pool struct {
	db    database
	reads chan conn // idle ones; nil ones are not open yet
	once  *sync.Once
}

func newPool(db database) pool {
	p := pool{db, make(chan conn, maxReads), &sync.Once{}}
	p.give(maxReads)
	return p
}

// give gives back places for connections.
func (p *pool) give(n int) {
	for range n {
		p.reads <- nil
	}
}

// take takes all places, once they are idle, and closes their connections.
func (p *pool) take(ctx context.Context) (err error) {
	for n := range maxReads {
		select {
		case c := <-p.reads:
			if c != nil {
				err = errors.Join(err, c.close())
			}
		case <-ctx.Done():
			p.give(n)
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

func (p *pool) close() (err error) {
	p.once.Do(func() {
		err = p.take(context.Background())
		close(p.reads)
	})
	return err
}

// reading calls f with a connection in a transaction that sees one snapshot. f must only read. It is
// called again if a connection from before is lost: the database may have been away.
func (p *pool) reading(ctx context.Context, f func(c conn) error) (err error) {
	var c conn
	select {
	case some, ok := <-p.reads:
		if !ok {
			return &kuji.Error{Code: kuji.CodeClosed, Message: "the history is closed"}
		}
		c = some
	case <-ctx.Done():
		return failed("reading", ctx.Err())
	}
	defer func() { p.reads <- c }()
	before := c != nil
	c, err = p.readWith(ctx, c, f)
	if before && kuji.CodeOf(err) == kuji.CodeFailed && ctx.Err() == nil {
		c, err = p.readWith(ctx, nil, f)
	}
	return err
}

// readWith calls f with a connection, a new one if it is nil. It returns the connection if it can be
// used again.
func (p *pool) readWith(ctx context.Context, c conn, f func(c conn) error) (again conn, err error) {
	if c == nil {
		if c, err = p.db.open(ctx, false); err != nil {
			return nil, failed("opening", err)
		}
	}
	if _, err = c.exec(ctx, p.db.words().read); err == nil {
		err = f(c)
	}
	if err == nil {
		_, err = c.exec(ctx, "COMMIT")
	}
	if err != nil { // in what state it is, nobody knows
		_ = c.close()
		return nil, failed("reading", err)
	}
	return c, nil
}
