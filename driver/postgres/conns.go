package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuji-dev/kuji/driver"
)

// How connections are kept.
const (
	dialTimeout = 5 * time.Second // for one host, if the URL does not say connect_timeout
	dialAll     = 30 * time.Second
	maxAge      = 30 * time.Minute // a connection is then replaced, so that a changed name of a host is seen
	maxIdle     = 5 * time.Minute
	deaf        = 10 * time.Second // a peer that acknowledges nothing for so long is gone
)

// conn is a connection, which one goroutine uses at a time.
type conn struct {
	*pgx.Conn
	d       *database
	raw     net.Conn
	born    time.Time
	used    time.Time
	warning string // of the statement under way; "": none
}

// errSealed is the error of a request to cancel a statement.
var errSealed = errors.New("statements are not cancelled")

// connect makes a connection to a server that takes writes.
//
// When a connection breaks, the library sends the server a request to cancel what runs on it, by a
// connection of its own. A commit that waits for the standby would end that wait, and be there without
// the standby. So a connection can dial no more once it is made.
func (d *database) connect(ctx context.Context) (*conn, error) {
	c := &conn{d: d, born: time.Now()}
	config := d.config.Copy()
	var sealed atomic.Bool
	dialer := net.Dialer{
		Timeout:         cmp.Or(config.ConnectTimeout, dialTimeout),
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5},
		Control:         giveUpAfter(deaf),
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if sealed.Load() {
			return nil, errSealed
		}
		return dialer.DialContext(ctx, network, address)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" || strings.HasPrefix(n.Code, "01") {
			c.warning = cmp.Or(c.warning, n.Message)
		}
	}
	var err error
	if c.Conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	sealed.Store(true)
	// The dialer does not know it: the library may dial once more, to cancel what it asked another host.
	c.raw = c.PgConn().Conn()
	if tls, ok := c.raw.(interface{ NetConn() net.Conn }); ok {
		c.raw = tls.NetConn() // whose end is not announced, which could wait
	}
	err = d.promise.look(ctx, c)
	if c.forgetful(err) {
		err = d.promise.look(ctx, c)
	}
	if err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

// forgetful reports whether an error says that a pooler stands in between which does not keep prepared
// statements for a connection. Then none are used any more.
func (c *conn) forgetful(err error) bool {
	code := codeOf(err)
	if code != codeNoStatement && code != codeSameStatement {
		return false
	}
	if !c.d.plain.Swap(true) {
		c.d.o.Logger.Warn("PostgreSQL: a pooler does not keep prepared statements: none are used any more", "error", err)
	}
	return true
}

// abort closes a connection at once, even while it is in use. The server is not told.
func (c *conn) abort() { c.raw.Close() }

// exec runs a statement with arguments, or several without.
func (c *conn) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	c.warning = ""
	tag, err := c.Exec(ctx, c.d.sql(sql), c.args(args)...)
	return tag.RowsAffected(), err
}

// query runs a query, whose error may come with its rows.
func (c *conn) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.warning = ""
	return c.Query(ctx, c.d.sql(sql), c.args(args)...)
}

// row runs a query for one row. Without a row, the error is pgx.ErrNoRows.
func (c *conn) row(ctx context.Context, sql string, args ...any) pgx.Row {
	c.warning = ""
	return c.QueryRow(ctx, c.d.sql(sql), c.args(args)...)
}

// args puts how a statement is sent before its arguments, if that is not as the URL says.
func (c *conn) args(args []any) []any {
	if !c.d.plain.Load() {
		return args
	}
	return append([]any{pgx.QueryExecModeExec}, args...)
}

// warned returns an error if the statement that ended last had a warning.
func (c *conn) warned() error {
	if c.warning == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", errWarned, c.warning)
}

// pool has the connections. It gives the one used last.
type pool struct {
	limit   int
	dial    func(context.Context) (*conn, error)
	plain   atomic.Bool   // no prepared statements: a pooler has lost one
	appends chan struct{} // those that may wait for a standby

	// life ends with close. wg has all goroutines.
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	all     map[*conn]struct{}
	idle    []*conn // the one used last is the last one
	dialing int
	waiting []chan grant
}

// grant is what one who waits for a connection gets.
type grant struct {
	c   *conn
	err error
}

func newPool(limit int, dial func(context.Context) (*conn, error)) *pool {
	p := &pool{limit: limit, dial: dial, all: map[*conn]struct{}{}, appends: make(chan struct{}, limit*3/4)}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// close closes all connections, even those in use, and waits for the goroutines.
func (p *pool) close() {
	p.end()
	p.mu.Lock()
	for c := range p.all {
		c.abort()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// run starts a goroutine that close waits for. It returns false after close.
func (p *pool) run(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return false
	}
	p.wg.Go(f)
	return true
}

// acquire returns a connection. A new one is dialed apart from ctx: it is also of use for the next.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	if p.life.Err() != nil {
		p.mu.Unlock()
		return nil, driver.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	mine := make(chan grant, 1)
	p.waiting = append(p.waiting, mine)
	p.more()
	p.mu.Unlock()

	select {
	case g := <-mine:
		return g.c, g.err
	case <-ctx.Done():
	case <-p.life.Done():
	}
	p.mu.Lock()
	for i, w := range p.waiting {
		if w == mine {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	select {
	case g := <-mine: // it came meanwhile
		return g.c, g.err
	default:
	}
	if p.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	return nil, fmt.Errorf("no connection: %w", ctx.Err())
}

// more dials if someone waits for whom nobody dials. The caller holds mu.
func (p *pool) more() {
	if p.dialing >= len(p.waiting) || len(p.all)+p.dialing >= p.limit || p.life.Err() != nil {
		return
	}
	p.dialing++
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.life, dialAll)
		defer cancel()
		c, err := p.dial(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dialing--
		if err != nil { // all who wait learn it, and ask again when they please
			for _, w := range p.waiting {
				w <- grant{err: err}
			}
			p.waiting = nil
			return
		}
		p.all[c] = struct{}{}
		if p.life.Err() != nil {
			c.abort()
		}
		p.give(c)
	})
}

// give hands a connection to the next who waits. The caller holds mu.
func (p *pool) give(c *conn) {
	c.used = time.Now()
	if len(p.waiting) > 0 {
		p.waiting[0] <- grant{c: c}
		p.waiting = p.waiting[1:]
		return
	}
	p.idle = append(p.idle, c)
}

// release gives a connection back after a call that ended in err.
func (p *pool) release(c *conn, err error) {
	code := codeOf(err)
	old := c.forgetful(err) || time.Since(c.born) > maxAge
	lost := c.IsClosed() && !errors.Is(err, context.Canceled)                    // who asked may have gone
	moved := lost || code == codeReadOnly || len(code) == 5 && code[:3] == "57P" // others are likely lost as well
	p.mu.Lock()
	defer p.mu.Unlock()
	if moved || old || c.IsClosed() || c.PgConn().TxStatus() != 'I' {
		p.drop(c)
		if moved {
			p.dropIdle(0)
		}
		p.more()
		return
	}
	p.give(c)
}

// drop closes a connection that nobody uses. The caller holds mu.
func (p *pool) drop(c *conn) {
	delete(p.all, c)
	if p.life.Err() != nil {
		c.abort()
		return
	}
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if c.IsClosed() {
			return
		}
		_ = c.Close(ctx) // nothing is under way
		c.abort()
	})
}

// dropIdle closes connections that nobody has used for some time. The caller holds mu.
func (p *pool) dropIdle(unused time.Duration) {
	kept := p.idle[:0]
	for _, c := range p.idle {
		if time.Since(c.used) < unused {
			kept = append(kept, c)
			continue
		}
		p.drop(c)
	}
	clear(p.idle[len(kept):])
	p.idle = kept
}
