package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// board is a [driver.Board] on a log of its own, which may be any [driver.Log] whose entries can be
// as large as a board and recordHead: one that cannot refuse an entry will do.
//
// An entry of the log is a record:
//
//	| 8 bytes                           | 16 bytes     | the rest    |
//	| cursor of the record that it      | id of the    | the board's |
//	| follows, big endian; 0: the first | update       | content     |
//
// The rule: a record counts if the record that it follows is the last one that counted. All others
// are void. As all read one log, all agree on which count. So an update is a compare-and-swap,
// whatever the log does:
//
//   - Of two records that follow the same one, the first counts, and the other one's update begins again.
//   - A copy of a record, or one that comes late, is void.
//   - A node that has read too little writes a void record, and reads on.
//   - After ErrUnknown, the same bytes are sent again until there is another answer. Then the node reads
//     on until a record follows the one that its own follows. The id tells whether that is its own: others
//     may have written the same content.
//
// Trimming keeps the last records that counted. Who begins to read where the log was trimmed does not
// know whether the first record that is left counts. It waits for one that follows another which is left:
// writers only follow records that count, so both count.
//
// To look without a change costs no entry. It sees what the node itself has seen or written, but beyond
// that, it may be as old as the log's Last.
type board struct {
	log   driver.Log
	steps step.Runner

	mu   sync.Mutex // held for moments: an update works on a copy
	seen standing
}

// standing is what a node knows of a board.
type standing struct {
	read    driver.Cursor   // the last entry that was read
	from    driver.Cursor   // the first entry that could be read; 0: the log's first
	last    record          // that counted
	counted []driver.Cursor // of the last records that counted, up to boardKeeps; the newest is last's
}

// record is an update.
type record struct {
	follows driver.Cursor
	id      [16]byte
	content []byte
}

// recordHead is the size of a record without content.
const recordHead = 8 + 16

// boardKeeps is how many records that counted are kept. Two would do. A node that falls behind by more
// updates than this cannot tell whether a record of its own counted.
const boardKeeps = 16

func (r *record) bytes() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, recordHead+len(r.content)), uint64(r.follows))
	return append(append(b, r.id[:]...), r.content...)
}

// at returns the cursor of the last record that counted, or 0 if none is known.
func (s *standing) at() driver.Cursor {
	if len(s.counted) == 0 {
		return 0
	}
	return s.counted[len(s.counted)-1]
}

// known reports whether what was read tells which record was the last one that counted.
func (s *standing) known() bool { return s.from == 0 || len(s.counted) > 0 }

// take takes the next entry of the log.
func (s *standing) take(e driver.Entry) error {
	if len(e.Data) < recordHead {
		return &driver.CorruptError{Place: fmt.Sprintf("the board's log, entry at %d", e.Cursor), At: e.Cursor,
			Err: fmt.Errorf("a record of %d bytes: want at least %d", len(e.Data), recordHead)}
	}
	if !s.known() && s.read < s.from {
		s.from = e.Cursor
	}
	s.read = e.Cursor
	r := record{follows: driver.Cursor(binary.BigEndian.Uint64(e.Data)), content: e.Data[recordHead:]}
	copy(r.id[:], e.Data[8:])
	if s.known() && r.follows != s.at() || !s.known() && r.follows < s.from {
		return nil // void, or nobody knows
	}
	s.last = r
	// A copy, as other copies of s share what is there.
	s.counted = append(s.counted[max(0, len(s.counted)+1-boardKeeps):len(s.counted):len(s.counted)], e.Cursor)
	return nil
}

// Update implements [driver.Board].
func (b *board) Update(ctx context.Context, change func(old []byte) (data []byte, err error)) error {
	s := b.recall()
	for {
		if err := b.look(ctx, &s, 0); err != nil {
			return fmt.Errorf("read the board: %w", err)
		}
		data, err := change(bytes.Clone(s.last.content))
		if err = cmp.Or(err, driver.CheckBoard(data)); err != nil {
			return err
		}
		if bytes.Equal(data, s.last.content) {
			return nil
		}
		done, err := b.write(ctx, &s, data)
		if err != nil {
			return fmt.Errorf("write the board: %w", err)
		}
		if done {
			return nil
		}
	}
}

// write appends a record until it or another one follows the last that counted, and reports which.
func (b *board) write(ctx context.Context, s *standing, data []byte) (done bool, err error) {
	r := record{follows: s.at(), content: data}
	step.Entropy(b.steps, r.id[:])
	from, entry := s.from, r.bytes()
	for pause := time.Millisecond; s.from == from && s.at() == r.follows; {
		_, err := b.log.Append(ctx, s.read, entry)
		switch {
		case err == nil: // it is there, but perhaps not its first copy, which is the one that counts
			err = b.read(ctx, s, func() bool { return s.at() != r.follows })
		case errors.Is(err, driver.ErrDeposed): // something else is there
			err = b.look(ctx, s, 1)
		case errors.Is(err, driver.ErrUnknown) && ctx.Err() == nil:
			step.Sleep(b.steps, pause)
			pause, err = min(2*pause, 200*time.Millisecond), nil
		}
		if err != nil {
			return false, err
		}
	}
	if s.from != from {
		return false, fmt.Errorf("%w: what came of it was trimmed", driver.ErrUnknown)
	}
	if s.last.id != r.id {
		return false, nil
	}
	if len(s.counted) == boardKeeps {
		_ = b.log.Trim(ctx, s.counted[0]) // else the next one does it
	}
	return true, nil
}

// look reads to where the log ends, and at least n entries. It ends early at a record that counts if n is not 0.
func (b *board) look(ctx context.Context, s *standing, n int) error {
	last, err := b.log.Last(ctx)
	if err != nil {
		return err
	}
	before, at := s.read, s.at()
	return b.read(ctx, s, func() bool {
		if n > 0 && s.at() != at {
			return true
		}
		return s.known() && s.read >= last && (n == 0 || s.read > before)
	})
}

// read reads on until it is enough.
func (b *board) read(ctx context.Context, s *standing, enough func() bool) error {
	defer b.remember(s)
	for !enough() {
		for e, err := range b.log.Read(ctx, s.read, 0) {
			if gone, ok := errors.AsType[*driver.TrimmedError](err); ok {
				*s = standing{read: gone.First - 1, from: gone.First}
				break
			}
			if err == nil {
				err = s.take(e)
			}
			if err != nil {
				return err
			}
			if enough() {
				return nil
			}
		}
	}
	return nil
}

// recall returns the most that the node knows.
func (b *board) recall() standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

// remember is called when an update has read on.
func (b *board) remember(s *standing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.known() && s.read > b.seen.read {
		b.seen = *s
	}
}
