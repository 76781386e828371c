package history

import (
	"context"
	"errors"
	"sync"

	"github.com/kuji-dev/kuji"
)

// database opens connections.
type database interface {
	open(ctx context.Context, write bool) (conn, error)
	exists(ctx context.Context) (bool, error)
	words() dialect
	// replace moves away or removes what cannot be read, if that can be done from here.
	replace(keep bool) error
}

// conn is a connection that keeps statements prepared. Arguments for $1, $2 … are int64, string or nil.
type conn interface {
	// exec carries out a statement and returns how many rows it changed.
	exec(ctx context.Context, sql string, args ...any) (int64, error)
	// query calls each for every row that a statement returns. The row is valid during the call.
	query(ctx context.Context, sql string, each func(r row) error, args ...any) error
	close() error
}

// row is what a statement returned: int64, string or nil. NULL is 0 or "".
type row []any

func (r row) int(i int) int64   { n, _ := r[i].(int64); return n }
func (r row) text(i int) string { s, _ := r[i].(string); return s }

// maxReads is how many reads a DB carries out at a time.
const maxReads = 4

// pool is the connections of reads.
type pool struct {
	db    database
	reads chan conn // idle ones; nil ones are not open yet
	once  sync.Once
}

func newPool(db database) *pool {
	p := &pool{db: db, reads: make(chan conn, maxReads)}
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

// reading calls f, which only reads, in one snapshot, and again if an old connection is lost.
func (p *pool) reading(ctx context.Context, f func(c conn) error) (err error) {
	var c conn
	var open bool
	select {
	case c, open = <-p.reads:
		if !open {
			return &kuji.Error{Code: kuji.CodeClosed, Message: "the history is closed"}
		}
	case <-ctx.Done():
		return failed("reading", ctx.Err())
	}
	defer func() { p.reads <- c }()
	old := c != nil
	c, err = p.readWith(ctx, c, f)
	if old && kuji.CodeOf(err) == kuji.CodeFailed && ctx.Err() == nil {
		c, err = p.readWith(ctx, nil, f)
	}
	return err
}

// readWith calls f with a connection, a new one if it is nil, and returns it if it can be used again.
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
	if err != nil { // nobody knows the state of the connection
		_ = c.close()
		return nil, failed("reading", err)
	}
	return c, nil
}
