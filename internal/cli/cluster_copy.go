package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/verify"
)

// What one node of a cluster has kept is read without the others from a copy of its directory: see package
// embedded. The copy stands within the data directory while that takes.

// copyPatience bounds how long the copy's server needs once the copy is there. Its elections take up to 9 s.
const copyPatience = 2 * time.Minute

// nodeCopy is what one node has kept.
type nodeCopy struct {
	home    *home
	realms  []string // of which everything is here, as far as the node had it
	missing []string // realms of the cluster that were on other nodes only
	driver  *jetstream.Driver
	server  *embedded.Rescued
}

// openCopy reads a node's directory. The node must not run. Other nodes may: what is read is then old.
func openCopy(ctx context.Context, data string) (_ *nodeCopy, err error) {
	h, err := readHome(data)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, noHome(data)
	}
	server, err := embedded.Rescue(ctx, embedded.RescueOptions{
		Dir: clusterDir(data), Copy: copyDir(data), Cluster: h.Cluster, Node: h.Node, Alone: len(h.Peers) == 1, Logger: slog.New(slog.DiscardHandler),
	})
	if errors.Is(err, embedded.ErrInUse) {
		return nil, &kuji.Error{Code: kuji.CodeLocked, Field: "data", Message: fmt.Sprintf("node %s runs in %s: stop it, or use --cluster", h.Node, data), Err: err}
	}
	if err != nil {
		return nil, err
	}
	c := &nodeCopy{home: h, server: server}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func noHome(data string) error {
	return refusedError{fmt.Sprintf("%s: an older build made this node's directory, and nothing in it says which node that is: start \"kuji serve\" there once, and stop it", data)}
}

func (c *nodeCopy) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	o := jetstream.Options{Cluster: c.home.Cluster}
	o.Connect = append(o.Connect, c.server.Connect())
	if c.driver, err = jetstream.Connect(ctx, o); err != nil {
		return err
	}
	realms, err := c.driver.Realms(ctx)
	for _, realm := range realms {
		has := func(stream string) bool { return slices.Contains(c.server.Streams, stream) }
		if slices.ContainsFunc(jetstream.Streams(c.home.Cluster, realm), func(s string) bool { return !has(s) }) {
			c.missing = append(c.missing, realm)
		} else {
			c.realms = append(c.realms, realm)
		}
	}
	return err
}

func (c *nodeCopy) close() (err error) {
	if c.driver != nil {
		err = c.driver.Close()
	}
	return errors.Join(err, c.server.Close())
}

// check returns an error if a realm is not here.
func (c *nodeCopy) check(realm string) error {
	if slices.Contains(c.realms, realm) {
		return nil
	}
	message := fmt.Sprintf("there is no realm %q in what node %s of cluster %s has kept", realm, c.home.Node, c.home.Cluster)
	return &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: message}
}

// audit returns the copy as what is verified. Without the cluster's key, what it sealed cannot be proven.
func (c *nodeCopy) audit(data string, keys clusterKeys) *auditSource {
	key, old := keys.seals(c.home.Cluster)
	return &auditSource{
		data: data, node: c.home.Node, nodeOf: c.home.Cluster, missing: c.missing,
		realms: func(context.Context) (names, strays []string, err error) { return c.realms, nil, nil },
		realm: func(name string, through *verify.Anchor, seen func(kuji.Record)) (verify.Report, error) {
			if err := c.check(name); err != nil {
				return verify.Report{}, err
			}
			return verify.Driver(c.driver, name, verify.Options{Through: through, Seen: seen, Keys: append(slices.Clone(old), key)})
		},
	}
}

// backup returns the source of a realm's backup.
func (c *nodeCopy) backup(realm string) (backup.Source, func() error, error) {
	if err := c.check(realm); err != nil {
		return nil, nil, err
	}
	return backup.Driver(c.driver, realm)
}
