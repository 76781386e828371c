package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// tenure is what a lease's message has.
type tenure struct {
	Node string        `json:"node"` // "": nobody
	TTL  time.Duration `json:"ttl"`  // in nanoseconds
}

// observed is the newest message of a lease that this handle has seen, and when it saw it first. A
// lease ends when its message has not changed for its time to live, by the observer's own clock. So
// no two clocks are compared, and the server's timers take no part.
type observed struct {
	mu     sync.Mutex
	seq    uint64 // 0: none
	tenure tenure
	since  time.Time
}

// saw notes what the lease's stream has, and returns who holds the lease and for how long.
func (o *observed) saw(seq uint64, t tenure) (holder string, left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if seq > o.seq || (seq != o.seq && seq == 0) {
		o.seq, o.tenure, o.since = seq, t, now
	}
	left = o.tenure.TTL - now.Sub(o.since)
	if o.tenure.Node == "" || left <= 0 {
		return "", 0
	}
	return o.tenure.Node, left
}

// look asks the stream's leader for the lease.
func (r *realm) look(ctx context.Context) (seq uint64, holder string, left time.Duration, err error) {
	ctx, settled := r.under(ctx, r.leaseStream())
	defer settled()
	msg, err := r.leases.GetLastMsgForSubject(ctx, r.leaseSubject(r.name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		holder, left = r.seen.saw(0, tenure{})
		return 0, holder, left, nil
	}
	if err != nil {
		return 0, "", 0, err
	}
	var t tenure
	if err := json.Unmarshal(msg.Data, &t); err != nil {
		t = tenure{} // somebody else wrote it: nobody holds the lease
	}
	holder, left = r.seen.saw(msg.Sequence, t)
	return msg.Sequence, holder, left, nil
}

// Holder implements [driver.Lease].
func (r *realm) Holder(ctx context.Context) (holder string, left time.Duration, err error) {
	err = r.read(ctx, func(ctx context.Context) (err error) {
		_, holder, left, err = r.look(ctx)
		return err
	})
	return holder, left, err
}

// Hold implements [driver.Lease].
func (r *realm) Hold(ctx context.Context, node string, ttl time.Duration) (holder string, left time.Duration, err error) {
	if err := driver.CheckNode(node); err != nil {
		return "", 0, err
	}
	if ttl <= 0 {
		return "", 0, fmt.Errorf("time to live %v: want more than 0", ttl)
	}
	err = r.write(ctx, func(ctx context.Context) error {
		seq, who, rest, err := r.look(ctx)
		if err != nil {
			return err
		}
		holder, left = who, rest
		if who != "" && who != node {
			return nil
		}
		seq, err = r.assign(ctx, seq, tenure{Node: node, TTL: ttl})
		if err == nil {
			holder, left = r.seen.saw(seq, tenure{Node: node, TTL: ttl})
		}
		return err // if somebody was faster, the next attempt sees who
	})
	return holder, left, err
}

// Release implements [driver.Lease].
func (r *realm) Release(ctx context.Context, node string) error {
	return r.write(ctx, func(ctx context.Context) error {
		seq, holder, _, err := r.look(ctx)
		if err != nil || holder != node {
			return err
		}
		seq, err = r.assign(ctx, seq, tenure{})
		if err == nil {
			r.seen.saw(seq, tenure{})
		}
		return err
	})
}

// assign writes the lease if its last message is still the one at seq.
func (r *realm) assign(ctx context.Context, seq uint64, t tenure) (uint64, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	ctx, settled := r.under(ctx, r.leaseStream())
	defer settled()
	ack, err := r.js.Publish(ctx, r.leaseSubject(r.name), data,
		jetstream.WithExpectLastSequencePerSubject(seq), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
