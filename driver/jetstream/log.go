package jetstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// sumHeader has a message's CRC32C, as 8 hexadecimal digits.
const sumHeader = "Kuji-Crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(data []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)) }

// Append implements [driver.Log].
func (r *realm) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	// The same append has the same id, so that a second attempt is told where the first one stands.
	hash := sha256.Sum256(entry)
	at, err := r.publish(ctx, entry,
		jetstream.WithExpectLastSequence(uint64(after)), jetstream.WithMsgID(fmt.Sprintf("%d-%x", after, hash)))
	if codeOf(err) == codeWrongLast {
		return r.behind(ctx, after, entry, err)
	}
	if err != nil {
		return 0, fmt.Errorf("append behind %d: %w", after, err)
	}
	return at, nil
}

// Begin implements [driver.Log].
func (r *realm) Begin(ctx context.Context, entry []byte) (driver.Cursor, error) {
	at, err := r.publish(ctx, entry)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	return at, nil
}

// publish sends an entry once. Its error is the server's wrong-last-sequence, one with ErrUnknown, or
// one of a log that cannot be written.
func (r *realm) publish(ctx context.Context, entry []byte, o ...jetstream.PublishOpt) (driver.Cursor, error) {
	switch {
	case r.life.Err() != nil:
		return 0, driver.ErrClosed
	case r.readOnly:
		return 0, errReadOnly
	case len(entry) > r.maxEntry:
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(entry), r.maxEntry)
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	defer context.AfterFunc(r.link.Load().life, cancel)() // an answer comes on the same connection or never
	ctx, settled := r.under(ctx, r.logStream(r.name))     // and from the same leader
	defer settled()

	msg := &nats.Msg{Subject: r.subject, Data: entry, Header: nats.Header{sumHeader: []string{sum(entry)}}}
	// The library's own repeats would end in answers that nobody can tell apart.
	ack, err := r.js.PublishMsg(ctx, msg, append(o, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(r.logStream(r.name)))...)
	if err == nil {
		r.acknowledged(ack.Sequence)
		return driver.Cursor(ack.Sequence), nil
	}
	switch code := codeOf(err); {
	case code == codeWrongLast, errors.Is(known(err), driver.ErrFull), code == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return 0, known(err)
	}
	if r.life.Err() != nil {
		return 0, fmt.Errorf("%w: %w", driver.ErrClosed, driver.ErrUnknown)
	}
	// There is no leader, or no connection: whoever asks again at once asks in vain.
	pause(ctx, 20*time.Millisecond)
	return 0, fmt.Errorf("%w: %w", driver.ErrUnknown, err)
}

// behind tells what an append came to that found other entries behind after, by the server's count.
// The count has in it what is on its way and may get lost when the leader changes. Only an entry
// that is there proves something.
func (r *realm) behind(ctx context.Context, after driver.Cursor, entry []byte, refusal error) (driver.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	ctx, settled := r.under(ctx, r.logStream(r.name))
	defer settled()
	next := after + 1
	found, err := r.log.GetMsg(ctx, uint64(next)) // from the leader, which has what it applied
	switch {
	case err == nil && bytes.Equal(found.Data, entry):
		r.acknowledged(uint64(next))
		return next, nil // of an earlier attempt
	case err == nil:
		return 0, fmt.Errorf("append behind %d: %w: %w", after, driver.ErrDeposed, refusal)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		info, infoErr := r.log.Info(ctx)
		if infoErr == nil && info.State.FirstSeq > uint64(next) { // never runs ahead
			return 0, fmt.Errorf("append behind %d, where entries were trimmed: %w: %w", after, driver.ErrDeposed, refusal)
		}
	}
	if r.life.Err() != nil {
		return 0, driver.ErrClosed
	}
	pause(ctx, 5*time.Millisecond) // what is on its way arrives or gets lost
	return 0, fmt.Errorf("append behind %d: %w: %w", after, driver.ErrUnknown, refusal)
}

// acknowledged notes that a majority has an entry.
func (r *realm) acknowledged(seq uint64) {
	for {
		old := r.durable.Load()
		if seq <= old || r.durable.CompareAndSwap(old, seq) {
			return
		}
	}
}

// state returns the log's state, which may be old.
func (r *realm) state(ctx context.Context) (state jetstream.StreamState, err error) {
	err = r.read(ctx, func(ctx context.Context) error {
		ctx, settled := r.under(ctx, r.logStream(r.name))
		defer settled()
		info, err := r.log.Info(ctx)
		if err == nil {
			state = info.State
		}
		return err
	})
	return state, err
}

// Last implements [driver.Log].
func (r *realm) Last(ctx context.Context) (driver.Cursor, error) {
	state, err := r.state(ctx)
	return driver.Cursor(state.LastSeq), err
}

// First implements [driver.Log].
func (r *realm) First(ctx context.Context) (driver.Cursor, error) {
	state, err := r.state(ctx)
	return driver.Cursor(max(1, state.FirstSeq)), err
}

// Sync implements [driver.Log]. What was acknowledged is durable already.
func (r *realm) Sync(ctx context.Context) error {
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	return ctx.Err()
}

// Durable implements [driver.Log].
func (r *realm) Durable() driver.Cursor { return driver.Cursor(r.durable.Load()) }

// MaxEntry implements [driver.Log].
func (r *realm) MaxEntry() int { return r.maxEntry }

// Trim implements [driver.Log].
func (r *realm) Trim(ctx context.Context, before driver.Cursor) error {
	return r.write(ctx, func(ctx context.Context) error {
		info, err := r.log.Info(ctx)
		if err != nil {
			return err
		}
		// Beyond the end, the server would skip cursors. An old end only keeps more.
		keep := min(uint64(before), info.State.LastSeq+1)
		if keep <= info.State.FirstSeq {
			return nil
		}
		return r.log.Purge(ctx, jetstream.WithPurgeSequence(keep))
	})
}
