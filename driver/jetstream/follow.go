package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// How a reader asks for messages.
const (
	heartbeat = 2 * time.Second        // a consumer that is silent for two of them is replaced
	expiry    = 10 * time.Second       // of one request for messages
	inactive  = 30 * time.Second       // the server drops a consumer that nobody asks for so long
	buffered  = 4 << 20                // bytes that one request gets, but at least two messages
	soon      = 200 * time.Millisecond // a reader without a message looks for one after this time,
	idle      = 10 * time.Second       // then after twice the time, up to this
)

// A reader asks for more messages when it has fewer than refill. The client library makes room for
// bufferedMessages beforehand. The limit of bytes is for one request: a reader that stops reading
// holds at most buffered bytes and refill messages.
const bufferedMessages, refill = 1024, 32

// follower reads a log in order. It does not trust consumers: each entry must have the next sequence.
type follower struct {
	*log
	after    uint64 // sequence of the entry that was yielded last
	messages jetstream.MessagesContext
	consumer string
	failed   int // consumers in a row that gave nothing
	holes    int // consumers in a row that left the next entry out
	silent   int // waits in a row without a message
}

// maxHoles is how many consumers, perhaps of other replicas, miss an entry before it counts as lost.
const maxHoles = 12

func (l *log) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		f := &follower{log: l, after: uint64(after)}
		defer f.stop()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.life, cancel)()
		for through == 0 || f.after < uint64(through) {
			entry, err := f.next(ctx)
			if err = cmp.Or(l.open(), err); err != nil {
				yield(driver.Entry{}, err)
				return
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// next returns the entry with the next sequence.
func (f *follower) next(ctx context.Context) (driver.Entry, error) {
	for ctx.Err() == nil {
		entry, found, err := f.step(ctx)
		if found || err != nil {
			return entry, err
		}
	}
	return driver.Entry{}, ctx.Err()
}

// step takes the consumer's next message. It creates a missing consumer, and checks a silent one.
func (f *follower) step(ctx context.Context) (entry driver.Entry, found bool, err error) {
	if f.messages == nil {
		return entry, false, f.start(ctx)
	}
	msg, err := f.wait(ctx)
	if err != nil {
		f.o.Logger.Info("NATS: consumer lost", "stream", f.logStream(f.name), "error", err)
		f.recover(ctx)
		return entry, false, nil
	}
	if msg == nil {
		return entry, false, f.look(ctx)
	}
	meta, err := msg.Metadata()
	switch {
	case err != nil || meta.Sequence.Stream <= f.after:
		return entry, false, err
	case meta.Sequence.Stream == f.after+1:
		return f.entry(msg.Headers().Get(sumHeader), msg.Data())
	}
	if entry, found, err = f.fill(ctx); !found && err == nil {
		f.recover(ctx)
	}
	return entry, found, err
}

// wait returns the consumer's next message, or nil if it is time to look.
func (f *follower) wait(ctx context.Context) (jetstream.Msg, error) {
	once, cancel := context.WithTimeout(ctx, min(soon<<f.silent, idle))
	defer cancel()
	msg, err := f.messages.Next(jetstream.NextContext(once))
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		f.silent = min(f.silent+1, 6)
		return nil, nil
	}
	f.silent = 0
	return msg, err
}

// entry returns the next entry if its checksum is right.
func (f *follower) entry(want string, data []byte) (driver.Entry, bool, error) {
	if got := sum(data); got != want {
		return driver.Entry{}, false, f.corrupt("checksum %s, want %q as its header has it", got, want)
	}
	f.after++
	f.failed, f.holes = 0, 0
	f.acknowledged(f.after)
	return driver.Entry{Cursor: driver.Cursor(f.after), Data: data}, true, nil
}

// corrupt returns the error of a damaged next entry.
func (f *follower) corrupt(format string, args ...any) error {
	return &driver.CorruptError{
		Place: fmt.Sprintf("stream %s, message %d", f.logStream(f.name), f.after+1),
		At:    driver.Cursor(f.after + 1),
		Err:   fmt.Errorf(format, args...),
	}
}

// start creates a consumer that begins with the next entry, unless that was trimmed.
func (f *follower) start(ctx context.Context) error {
	err := f.begin(ctx)
	if _, trimmed := errors.AsType[*driver.TrimmedError](err); err == nil || trimmed || final(err) {
		return err
	}
	f.o.Logger.Info("NATS: no consumer", "stream", f.logStream(f.name), "error", err)
	f.recover(ctx)
	return nil
}

func (f *follower) begin(ctx context.Context) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	consumer, err := f.msgs.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.after + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		Replicas:          1,
		MemoryStorage:     true,
		InactiveThreshold: inactive,
		MaxWaiting:        8,
	})
	if err != nil {
		return err
	}
	f.consumer = consumer.CachedInfo().Name
	f.messages, err = consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(bufferedMessages, max(buffered, 2*(f.maxEntry+overhead))),
		jetstream.PullThresholdMessages(refill),
		jetstream.PullExpiry(expiry),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true))
	return err
}

// stop drops the consumer. If the request is lost, the server drops it later.
func (f *follower) stop() {
	if f.messages != nil {
		f.messages.Stop()
		f.messages = nil
	}
	if f.consumer != "" {
		f.conn.PublishRequest("$JS.API.CONSUMER.DELETE."+f.logStream(f.name)+"."+f.consumer, f.conn.NewInbox(), nil)
		f.consumer = ""
	}
}

// recover drops a consumer that failed, and waits a moment before the next one.
func (f *follower) recover(ctx context.Context) {
	f.stop()
	f.failed++
	pause(ctx, min(time.Duration(f.failed)*20*time.Millisecond, 500*time.Millisecond))
}

// inspect returns the log's state, which may be old, or nil if nobody answers. Its error is final:
// a TrimmedError if the next entry was trimmed.
func (f *follower) inspect(ctx context.Context) (*jetstream.StreamState, error) {
	info, err := f.msgs.Info(ctx)
	switch {
	case err != nil && final(err):
		return nil, err
	case err != nil:
		return nil, nil
	case info.State.FirstSeq > f.after+1:
		return nil, &driver.TrimmedError{First: driver.Cursor(info.State.FirstSeq)}
	}
	return &info.State, nil
}

// look replaces a consumer that is silent although the next entry exists: requests get lost while
// the route to its server is not known. If the state is old, a later look sees more.
func (f *follower) look(ctx context.Context) error {
	once, cancel := f.ask(ctx, attempt)
	defer cancel()
	state, err := f.inspect(once)
	if state != nil && f.messages != nil && state.LastSeq > f.after {
		f.o.Logger.Warn("NATS: a consumer did not deliver a message", "stream", f.logStream(f.name), "message", f.after+1)
		f.recover(ctx)
	}
	return err
}

// fill asks the leader for an entry that a consumer left out: trimmed, or unreadable on its replica.
func (f *follower) fill(ctx context.Context) (entry driver.Entry, found bool, err error) {
	ctx, cancel := f.ask(ctx, attempt)
	defer cancel()
	msg, missing := f.msgs.GetMsg(ctx, f.after+1)
	if missing == nil {
		return f.entry(msg.Header.Get(sumHeader), msg.Data)
	}
	state, err := f.inspect(ctx)
	if state != nil && errors.Is(missing, jetstream.ErrMsgNotFound) && state.LastSeq > f.after+1 {
		f.holes++
	}
	if err == nil && f.holes >= maxHoles {
		err = f.corrupt("no replica that was asked can read it, but later entries are there")
	}
	return entry, false, err
}
