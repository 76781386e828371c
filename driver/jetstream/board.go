package jetstream

import (
	"cmp"
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// board is the board's name in the stream of leases. No realm can have it.
const board = "_board"

// Update implements [driver.Board].
func (d *Driver) Update(ctx context.Context, change func(old []byte) (data []byte, err error)) error {
	var failed error // of change: that ends the update
	err := d.do(ctx, "the board", func(ctx context.Context) error {
		s, err := d.openBoard(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := d.under(ctx, d.boardStream(), attempt)
		defer cancel()
		var seq uint64
		var old []byte
		msg, err := s.GetLastMsgForSubject(ctx, d.leaseSubject(board))
		if err == nil {
			seq, old = msg.Sequence, msg.Data
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		data, err := change(old)
		if err = cmp.Or(err, driver.CheckBoard(data)); err != nil {
			failed = err
			return nil
		}
		if string(data) == string(old) {
			return nil
		}
		_, err = d.js.Publish(ctx, d.leaseSubject(board), data, jetstream.WithExpectLastSequencePerSubject(seq), jetstream.WithRetryAttempts(0))
		return err
	})
	return cmp.Or(err, failed)
}

// openBoard returns the board's stream. It is on disk: streams in memory are lost with their
// server, so servers that restart one after another could lose it, or leave it without a leader.
func (d *Driver) openBoard(ctx context.Context) (jetstream.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.board != nil {
		return d.board, nil
	}
	c := d.config(d.boardStream(), d.leaseSubject("*"))
	c.MaxMsgsPerSubject = 1
	s, err := d.create(ctx, c)
	if err == nil {
		d.board = s
	}
	return s, err
}
