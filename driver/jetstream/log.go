package jetstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// sumHeader is the header with a message's CRC32C, in 8 hexadecimal digits.
const sumHeader = "Kuji-Crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(data []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)) }

// summed returns a message with its checksum.
func summed(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{sumHeader: []string{sum(data)}}}
}

// log is a realm's log. It implements [driver.Log].
type log struct {
	*handle
	subject string // of its messages
	msgs    jetstream.Stream
	durable atomic.Uint64 // the last cursor that is known to be on a majority
}

func (l *log) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	// The same append has the same id, so that a second attempt gets the cursor of the first.
	id := fmt.Sprintf("%d-%x", after, sha256.Sum256(entry))
	at, err := l.publish(ctx, entry, jetstream.WithExpectLastSequence(uint64(after)), jetstream.WithMsgID(id))
	if codeOf(err) == codeWrongLast {
		at, err = l.refused(ctx, after, entry, err)
	}
	if err != nil {
		return 0, fmt.Errorf("append after %d: %w", after, err)
	}
	return at, nil
}

func (l *log) Begin(ctx context.Context, entry []byte) (driver.Cursor, error) {
	at, err := l.publish(ctx, entry)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	return at, nil
}

// publish sends an entry once. Its error is the server's wrong-last-sequence, or has ErrUnknown in
// it, or says why the log cannot be written.
func (l *log) publish(ctx context.Context, entry []byte, o ...jetstream.PublishOpt) (driver.Cursor, error) {
	if err := l.mayWrite(); err != nil {
		return 0, err
	}
	if len(entry) > l.maxEntry {
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(entry), l.maxEntry)
	}
	ctx, cancel := l.ask(ctx, l.o.Timeout) // the answer comes from the same leader or never,
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	defer context.AfterFunc(l.of(connection).life, cancel)() // and on the same connection

	msg := summed(l.subject, entry)
	// The library may not repeat it: nobody could tell which attempt an answer is for.
	ack, err := l.js.PublishMsg(ctx, msg, append(o, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(l.logStream(l.name)))...)
	if err == nil {
		l.acknowledged(ack.Sequence)
		return driver.Cursor(ack.Sequence), nil
	}
	err = known(err)
	if code := codeOf(err); code == codeWrongLast || code == jetstream.JSErrCodeStreamMessageExceedsMaximum || errors.Is(err, driver.ErrFull) {
		return 0, err
	}
	if l.open() != nil {
		return 0, fmt.Errorf("%w: %w", driver.ErrClosed, driver.ErrUnknown)
	}
	// There is no leader or no connection: it is too soon to ask again.
	pause(ctx, 20*time.Millisecond)
	return 0, fmt.Errorf("%w: %w", driver.ErrUnknown, err)
}

// refused says what became of an append after another last sequence. That also counts entries on
// their way, which a change of the leader can lose. Only an entry that is there proves something.
func (l *log) refused(ctx context.Context, after driver.Cursor, entry []byte, refusal error) (driver.Cursor, error) {
	ctx, cancel := l.ask(ctx, l.o.Timeout)
	defer cancel()
	next := after + 1
	found, err := l.msgs.GetMsg(ctx, uint64(next)) // from the leader, which has what it applied
	switch {
	case err == nil && bytes.Equal(found.Data, entry):
		l.acknowledged(uint64(next))
		return next, nil // by an earlier attempt
	case err == nil:
		return 0, fmt.Errorf("%w: %w", driver.ErrDeposed, refusal)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		info, infoErr := l.msgs.Info(ctx)
		if infoErr == nil && info.State.FirstSeq > uint64(next) { // true even if the state is old
			return 0, fmt.Errorf("entries were trimmed there: %w: %w", driver.ErrDeposed, refusal)
		}
	}
	if err := l.open(); err != nil {
		return 0, err
	}
	pause(ctx, 5*time.Millisecond) // entries on their way arrive or get lost
	return 0, fmt.Errorf("%w: %w", driver.ErrUnknown, refusal)
}

// ask returns a context for one request to the log's leader, which may take as long as limit.
func (l *log) ask(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return l.under(ctx, l.logStream(l.name), limit)
}

// acknowledged notes that a majority has an entry.
func (l *log) acknowledged(seq uint64) {
	for {
		old := l.durable.Load()
		if seq <= old || l.durable.CompareAndSwap(old, seq) {
			return
		}
	}
}

// state returns the log's state, which may be old.
func (l *log) state(ctx context.Context) (state jetstream.StreamState, err error) {
	err = l.try(ctx, l.life, func(ctx context.Context) error {
		ctx, cancel := l.ask(ctx, attempt)
		defer cancel()
		info, err := l.msgs.Info(ctx)
		if err == nil {
			state = info.State
		}
		return err
	})
	return state, err
}

func (l *log) Last(ctx context.Context) (driver.Cursor, error) {
	state, err := l.state(ctx)
	return driver.Cursor(state.LastSeq), err
}

func (l *log) First(ctx context.Context) (driver.Cursor, error) {
	state, err := l.state(ctx)
	return driver.Cursor(max(1, state.FirstSeq)), err
}

// Sync implements [driver.Log]. What was acknowledged is durable already.
func (l *log) Sync(ctx context.Context) error { return cmp.Or(l.open(), ctx.Err()) }

func (l *log) Durable() driver.Cursor { return driver.Cursor(l.durable.Load()) }

func (l *log) MaxEntry() int { return l.maxEntry }

func (l *log) Trim(ctx context.Context, before driver.Cursor) error {
	return l.write(ctx, func(ctx context.Context) error {
		info, err := l.msgs.Info(ctx)
		if err != nil {
			return err
		}
		// A purge beyond the end would skip cursors. An end that is old only keeps more.
		keep := min(uint64(before), info.State.LastSeq+1)
		if keep <= info.State.FirstSeq {
			return nil
		}
		return l.msgs.Purge(ctx, jetstream.WithPurgeSequence(keep))
	})
}
