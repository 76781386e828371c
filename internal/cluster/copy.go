package cluster

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

// copyPatience bounds how long the copy's server may take to answer. Its elections take up to 9 s.
const copyPatience = 2 * time.Minute

// Copy is a copy, in the data directory until Close, of a node's directory, to be read without other nodes.
type Copy struct {
	Cluster, Node string
	Realms        []string // that the node kept, as far as it had received them
	Missing       []string // that only other nodes kept
	driver        *jetstream.Driver
	server        *embedded.Rescued
}

// OpenCopy copies a stopped node's directory and starts a server on it. If others run, the copy is old.
func OpenCopy(ctx context.Context, data string) (_ *Copy, err error) {
	h, err := readHome(data)
	if err == nil && h.Store != "" {
		err = refused("%s is of a node of cluster %s, which keeps no part of the log: expected --store", data, h.Cluster)
	}
	if err != nil {
		return nil, err
	}
	server, err := embedded.Rescue(ctx, embedded.RescueOptions{
		Dir: Dir(data), Copy: copyDir(data), Cluster: h.Cluster, Node: h.Node, Alone: len(h.Peers) == 1, Logger: slog.New(slog.DiscardHandler),
	})
	if errors.Is(err, embedded.ErrInUse) {
		return nil, &kuji.Error{Code: kuji.CodeLocked, Field: "data", Message: fmt.Sprintf("node %s runs in %s: stop it, or use --cluster", h.Node, data), Err: err}
	}
	if err != nil {
		return nil, err
	}
	c := &Copy{Cluster: h.Cluster, Node: h.Node, server: server}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Copy) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	o := jetstream.Options{Cluster: c.Cluster}
	o.Connect = append(o.Connect, c.server.Connect())
	if c.driver, err = jetstream.Connect(ctx, o); err != nil {
		return err
	}
	realms, err := c.driver.Realms(ctx)
	for _, realm := range realms {
		has := func(stream string) bool { return slices.Contains(c.server.Streams, stream) }
		if slices.ContainsFunc(jetstream.Streams(c.Cluster, realm), func(s string) bool { return !has(s) }) {
			c.Missing = append(c.Missing, realm)
		} else {
			c.Realms = append(c.Realms, realm)
		}
	}
	return err
}

// Close ends the copy's server, and removes the copy.
func (c *Copy) Close() (err error) {
	if c.driver != nil {
		err = c.driver.Close()
	}
	return errors.Join(err, c.server.Close())
}

// check returns an error if the node did not keep a realm.
func (c *Copy) check(realm string) error {
	if slices.Contains(c.Realms, realm) {
		return nil
	}
	message := fmt.Sprintf("there is no realm %q in what node %s of cluster %s has kept", realm, c.Node, c.Cluster)
	return &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: message}
}

// Verify verifies a realm, as [verify.Driver] does. Only the cluster's key proves what it has sealed.
func (c *Copy) Verify(keys Keys, realm string, through *verify.Anchor, seen func(kuji.Record)) (verify.Report, error) {
	if err := c.check(realm); err != nil {
		return verify.Report{}, err
	}
	key, old := keys.Seals(c.Cluster)
	return verify.Driver(c.driver, realm, verify.Options{Through: through, Seen: seen, Keys: append(slices.Clone(old), key)})
}

// Backup returns the source of a realm's backup.
func (c *Copy) Backup(realm string) (backup.Source, func() error, error) {
	if err := c.check(realm); err != nil {
		return nil, nil, err
	}
	return backup.Driver(c.driver, realm)
}
