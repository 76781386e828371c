package jetstream

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// codeNoPeers is what a server answers if too few servers are there for a stream's replicas.
const codeNoPeers jetstream.ErrorCode = 10005

// someReplicas is how many replicas a stream has at least where there are enough servers.
const someReplicas = 3

// Widen gives each stream of the cluster as many replicas as Options says, if it has fewer and there are servers
// for them. So a cluster that grows keeps the log and the files of a realm on the same nodes: on all of them.
// It returns how many streams it has changed.
func Widen(ctx context.Context, d *Driver) (changed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	list := d.js.ListStreams(ctx, jetstream.WithStreamListSubject(d.subjects()+">"))
	for info := range list.Info() {
		c := info.Config
		copied := len(c.Subjects) == 1 && strings.HasPrefix(c.Subjects[0], d.copySubject(""))
		if c.Replicas >= d.o.Replicas || copied {
			continue
		}
		c.Replicas = d.o.Replicas
		switch _, err := d.js.UpdateStream(ctx, c); {
		case codeOf(err) == codeNoPeers:
			return changed, nil // later
		case err != nil:
			return changed, fmt.Errorf("stream %s: %d replicas: %w", c.Name, c.Replicas, err)
		}
		changed++
	}
	return changed, list.Err()
}

// Narrow gives each stream of the cluster so many replicas, if it has more. The servers that are to keep it must be
// the only ones.
func Narrow(ctx context.Context, d *Driver, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	list := d.js.ListStreams(ctx, jetstream.WithStreamListSubject(d.subjects()+">"))
	for info := range list.Info() {
		c := info.Config
		if c.Replicas <= replicas {
			continue
		}
		c.Replicas = replicas
		if _, err := d.js.UpdateStream(ctx, c); err != nil {
			return fmt.Errorf("stream %s: %d replicas: %w", c.Name, c.Replicas, err)
		}
	}
	return list.Err()
}
