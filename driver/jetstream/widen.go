package jetstream

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// codeNoPeers is the error code if there are too few servers for a stream's replicas.
const codeNoPeers jetstream.ErrorCode = 10005

// someReplicas is the least number of replicas that create falls back to.
const someReplicas = 3

// Widen gives each stream of the cluster the replicas that Options asks for, if there are enough
// servers: in a growing cluster, all nodes then have everything. It returns how many it changed.
func Widen(ctx context.Context, d *Driver) (changed int, err error) {
	changed, err = d.replicate(ctx, d.o.Replicas, func(c jetstream.StreamConfig) bool {
		return c.Replicas < d.o.Replicas && !d.isCopy(c)
	})
	if codeOf(err) == codeNoPeers {
		err = nil // later
	}
	return changed, err
}

// Narrow reduces the cluster's streams to so many replicas, on the servers that are left.
func Narrow(ctx context.Context, d *Driver, replicas int) error {
	_, err := d.replicate(ctx, replicas, func(c jetstream.StreamConfig) bool { return c.Replicas > replicas })
	return err
}

// replicate gives so many replicas to each stream that meant selects.
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
