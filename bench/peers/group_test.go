package peers

import (
	"errors"
	"sync"
)

// grouper is a log that takes several records at once.
type grouper interface {
	appender
	appendAll(recs [][]byte) error
}

// inGroups is the contestant that a caller makes of a log by handing it as
// many records at once as there are.
func inGroups[L grouper](name string, open func(dir string, fsync bool) (L, error)) contestant {
	return contestant{
		name: name,
		buffered: func(dir string) (appender, error) {
			l, err := open(dir, false)
			return &batched{grouper: l}, err
		},
		durable: func(dir string) (appender, error) {
			l, err := open(dir, true)
			return &grouped{grouper: l}, err
		},
	}
}

// grouped gives a log without a group commit of its own one that is as good as
// it gets from outside: while one group is being made durable, the next fills.
type grouped struct {
	grouper
	mu     sync.Mutex // guards filled
	order  sync.Mutex // held while a group is committed
	filled *group
}

type group struct {
	recs [][]byte
	err  error
	done chan struct{}
}

// Append is durable on return.
func (g *grouped) Append(rec []byte) error {
	g.mu.Lock()
	if g.filled == nil {
		g.filled = &group{done: make(chan struct{})}
	}
	b := g.filled
	b.recs = append(b.recs, rec)
	first := len(b.recs) == 1
	g.mu.Unlock()
	if !first {
		<-b.done
		return b.err
	}
	g.order.Lock()
	g.mu.Lock()
	g.filled = nil
	g.mu.Unlock()
	b.err = g.appendAll(b.recs)
	g.order.Unlock()
	close(b.done)
	return b.err
}

// batched collects records, as a caller that has 64 KiB of them would, and
// hands them over at once.
type batched struct {
	grouper
	mu    sync.Mutex
	recs  [][]byte
	bytes []byte
}

func (b *batched) Append(rec []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bytes)+len(rec) > cap(b.bytes) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	from := len(b.bytes)
	b.bytes = append(b.bytes, rec...)
	b.recs = append(b.recs, b.bytes[from:])
	return nil
}

func (b *batched) flush() error {
	if b.bytes == nil {
		b.bytes = make([]byte, 0, floorBuffer)
	}
	if len(b.recs) == 0 {
		return nil
	}
	err := b.appendAll(b.recs)
	b.recs, b.bytes = b.recs[:0], b.bytes[:0]
	return err
}

// Flush hands over what was collected.
func (b *batched) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

func (b *batched) Sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.flush(), b.grouper.Sync())
}

func (b *batched) Close() error { return errors.Join(b.flush(), b.grouper.Close()) }
