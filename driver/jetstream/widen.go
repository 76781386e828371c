package jetstream

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// codeNoPeers is what a server answers if too few servers are there for a stream's replicas.
const codeNoPeers jetstream.ErrorCode = 10005

// someReplicas is how many replicas a stream has at least where there are enough servers.
const someReplicas = 3

// Widen gives each stream of the cluster the replicas that Options asks for, as far as there are servers. So
// a growing cluster keeps a realm's log and files on the same nodes: all of them. It returns how many streams
// it changed.
func Widen(ctx context.Context, d *Driver) (changed int, err error) {
	changed, err = d.replicate(ctx, d.o.Replicas, func(c jetstream.StreamConfig) bool {
		return c.Replicas < d.o.Replicas && !d.isCopy(c)
	})
	if codeOf(err) == codeNoPeers {
		err = nil // later
	}
	return changed, err
}

// Narrow gives each stream of the cluster so many replicas, if it has more. The servers that are to keep
// it must be the only ones.
func Narrow(ctx context.Context, d *Driver, replicas int) error {
	_, err := d.replicate(ctx, replicas, func(c jetstream.StreamConfig) bool { return c.Replicas > replicas })
	return err
}

// replicate gives each stream that is meant so many replicas.
func (d *Driver) replicate(ctx context.Context, replicas int, meant func(c jetstream.StreamConfig) bool) (changed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	list := d.js.ListStreams(ctx, jetstream.WithStreamListSubject(d.subjects()+">"))
	for info := range list.Info() {
		c := info.Config
		if !meant(c) {
			continue
		}
		c.Replicas = replicas
		if _, err := d.js.UpdateStream(ctx, c); err != nil {
			return changed, fmt.Errorf("stream %s: %d replicas: %w", c.Name, replicas, err)
		}
		changed++
	}
	return changed, list.Err()
}
