// Package jetstream keeps realms in NATS JetStream, replicated or not. Package embedded, below it,
// runs the servers in this process; others are reached by URL.
//
// A realm has two streams. One is its log: an entry is a message, and a cursor is its sequence. The
// other has its files, in chunks. One more has the cluster's board.
//
// Safety depends on the stream's leader alone. An append carries the sequence that it expects to be
// the last. A read yields what a replica has applied, which a majority has. Nothing depends on the
// state that a server reports of a stream: a replica without a leader reports an old one. The
// client library never repeats an append, and keeps none for later.
//
// This package does not know what entries and files mean. Only the binary (internal/cluster and
// internal/cli) and tests import it, so programs that embed Kuji do not compile it.
package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// Options say where JetStream is and how realms are kept there.
type Options struct {
	// URLs are the servers to connect to, such as "nats://10.0.0.1:4222".
	URLs []string
	// Credentials and RootCA are PEM files: this client's, and trusted ones. "": none, and the system's.
	Credentials, RootCA string
	// Connect are more options of the connection, such as a server in this process.
	Connect []nats.Option
	// Cluster is the name of the realms' cluster in a JetStream. It has the form of a realm's name.
	Cluster string
	// Replicas is how many servers hold each realm: 1, 3 or 5; 0: 3. It is fixed when a realm is created.
	Replicas int
	// Timeout is how long an append waits before it is unknown, and can be sent again. 0: 1 s.
	Timeout time.Duration
	// Patience is how long calls other than appends and reads of the log are tried. 0: 15 s.
	Patience time.Duration
	// Logger gets what happens to the connection. Nil: nobody does.
	Logger *slog.Logger
}

func (o *Options) check() error {
	if err := driver.CheckRealm(o.Cluster); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	o.Replicas = cmp.Or(o.Replicas, 3)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.Patience = cmp.Or(o.Patience, 15*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5 {
		return fmt.Errorf("%d replicas: want 1, 3 or 5", o.Replicas)
	}
	if o.Timeout < 0 || o.Patience < 0 {
		return fmt.Errorf("timeout %v and patience %v: want more than 0", o.Timeout, o.Patience)
	}
	return nil
}

// Driver keeps realms in JetStream. See [driver.Shared].
type Driver struct {
	names
	o        Options
	conn     *nats.Conn
	js       jetstream.JetStream
	maxEntry int

	// life ends with Close.
	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	board jetstream.Stream // nil until the board is first used

	reigns
}

// connection is the name in reigns of the connection to a server. After it, no answer comes.
const connection = ""

var _ driver.Shared = (*Driver)(nil)

const (
	overhead = 1024     // bytes: the most that a message has besides the entry
	minEntry = 64 << 10 // bytes: the least that a driver's largest entry may have
)

// Connect connects to a JetStream. The context bounds how long that may take.
func Connect(ctx context.Context, o Options) (*Driver, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d := &Driver{names: names(o.Cluster), o: o}
	d.life, d.end = context.WithCancel(context.Background())
	d.reigns = reigns{ends: d.life, byStream: map[string]*reign{}}
	options := []nats.Option{
		nats.Name("kuji " + o.Cluster),
		nats.ReconnectBufSize(-1), // nothing is kept for later
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Logger.Info("NATS", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if d.life.Err() == nil { // this end did not close it
				o.Logger.Warn("NATS: connection lost", "error", err)
			}
			d.elected(connection)
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { o.Logger.Info("NATS: connected again", "to", c.ConnectedUrlRedacted()) }),
	}
	if o.Credentials != "" {
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	if o.RootCA != "" {
		options = append(options, nats.RootCAs(o.RootCA))
	}
	err := d.connect(ctx, append(options, o.Connect...))
	if err != nil {
		d.end()
		d.conn.Close()
		return nil, err
	}
	return d, nil
}

func (d *Driver) connect(ctx context.Context, options []nats.Option) error {
	err := persist(ctx, d.o.Patience, func(context.Context) (err error) {
		d.conn, err = nats.Connect(strings.Join(d.o.URLs, ","), options...)
		return err
	})
	if err != nil {
		var hosts []string // the URLs without passwords and tokens
		for _, url := range d.o.URLs {
			hosts = append(hosts, url[strings.LastIndexByte(url, '@')+1:])
		}
		return fmt.Errorf("connect to %q: %w", hosts, err)
	}
	d.maxEntry = int(min(d.conn.MaxPayload()-overhead, 1<<30))
	if d.maxEntry < minEntry {
		return fmt.Errorf("the server's max_payload is %d bytes: want at least %d", d.conn.MaxPayload(), minEntry+overhead)
	}
	if d.js, err = jetstream.New(d.conn); err != nil {
		return err
	}
	return d.watch(d.conn, d.streams())
}

// Close implements [driver.Driver].
func (d *Driver) Close() error {
	if d.life.Err() != nil {
		return driver.ErrClosed
	}
	d.end()
	d.conn.Close()
	return nil
}

// Realms implements [driver.Driver].
func (d *Driver) Realms(ctx context.Context) (names []string, err error) {
	err = d.do(ctx, "list the realms", func(ctx context.Context) error {
		names = nil
		list := d.js.StreamNames(ctx, jetstream.WithStreamListSubject(d.logSubject("*")))
		for stream := range list.Name() {
			if name, ok := strings.CutPrefix(stream, d.logStream("")); ok {
				names = append(names, name)
			}
		}
		return list.Err()
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// do is try for the driver itself. Its error says what it did.
func (d *Driver) do(ctx context.Context, what string, op func(context.Context) error) error {
	if err := d.try(ctx, d.life, op); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// try calls op, which may be called twice, until it succeeds or fails for good. If ctx or Patience
// ends first, the error has ErrUnavailable in it. When life ends, it is ErrClosed.
func (d *Driver) try(ctx, life context.Context, op func(context.Context) error) error {
	if life.Err() != nil {
		return driver.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	err := persist(ctx, d.o.Patience, op)
	if err != nil && life.Err() != nil {
		return driver.ErrClosed
	}
	return known(err)
}

// attempt bounds one attempt of a call: a server that stops leading may not answer.
const attempt = 2 * time.Second

// persist is try without a driver's life: the connection is not there yet.
func persist(ctx context.Context, patience time.Duration, op func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		once, cancel := context.WithTimeout(ctx, attempt)
		err := op(once)
		cancel()
		if err == nil || final(err) {
			return err
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
		}
	}
}

// pause waits, but not after ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Error codes in a server's answers.
const (
	codeWrongLast         jetstream.ErrorCode = 10071 // the last sequence is another one, with what is in flight
	codeWrongLastConstant jetstream.ErrorCode = 10164 // the same, for a sequence by subject
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeNoSequence        jetstream.ErrorCode = 10043 // no message has it
)

// full has the error codes of a server without room.
var full = map[jetstream.ErrorCode]bool{
	10002: true, // the account's limit
	10023: true, // the server's limit
	10028: true, // memory
	10047: true, // storage
	10122: true, // a stream's limit
}

// codeOf returns the error code of a server's answer, or 0 if err is no answer.
func codeOf(err error) jetstream.ErrorCode {
	if answer, ok := errors.AsType[*jetstream.APIError](err); ok {
		return answer.ErrorCode
	}
	return 0
}

// final reports whether the same call would fail again with this error.
func final(err error) bool {
	_, corrupt := errors.AsType[*driver.CorruptError](err)
	return corrupt || full[codeOf(err)] || slices.ContainsFunc([]error{
		driver.ErrNotExist, driver.ErrExist, driver.ErrLocked, driver.ErrFull, driver.ErrClosed, errConfig,
		jetstream.ErrStreamNotFound, jetstream.ErrMsgNotFound, nats.ErrConnectionClosed, nats.ErrAuthorization, nats.ErrMaxPayload,
	}, func(e error) bool { return errors.Is(err, e) })
}

// known adds driver.ErrFull to a server's error if it means that.
func known(err error) error {
	answer, ok := errors.AsType[*jetstream.APIError](err)
	if ok && (full[answer.ErrorCode] || answer.ErrorCode == codeStoreFailed && strings.Contains(answer.Description, "maximum")) {
		return fmt.Errorf("%w: %w", driver.ErrFull, err)
	}
	return err
}
