package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// A cluster that has lost most of its disks for good has no leader, so nobody can read the disks
// that are left. Rescue copies one of them, and makes the copy a cluster of one:
//
//	copy       the directory: the original stays as it is
//	start      the copy, on this machine alone, next to a server that stores nothing:
//	           a node waits until it sees another one
//	rescue     one vote is enough, for the list of streams
//	remove     all others from that list, and so from each stream
//	read       everything that the node has received counts, even if no majority had it
//
// Only the server reads the copy's files: nothing here depends on their format.

// ErrInUse is in the error of a directory in which a node runs.
var ErrInUse = vfs.ErrLocked

// patience bounds the start of a server that does not wait for others.
const patience = 30 * time.Second

// Rescued is a server on a copy of a node's directory, for reading. It is the only node of its cluster.
type Rescued struct {
	*Server
	// Streams has the streams in the directory, ascending. The server shows others as empty.
	Streams []string

	companion *server.Server
	copied    string
	lock      io.Closer // of the directory
}

// RescueOptions say whose directory is read.
type RescueOptions struct {
	Dir           string // of a node that does not run
	Copy          string // where the copy goes. What is there is removed
	Cluster, Node string // whose directory it is
	Alone         bool   // the cluster has no other node
	Logger        *slog.Logger
}

// Rescue copies a node's directory until Close, and runs a server on it. Most nodes must be lost.
func Rescue(ctx context.Context, from RescueOptions) (_ *Rescued, err error) {
	lock, err := vfs.OS().Lock(filepath.ToSlash(from.Dir))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", from.Node, err)
	}
	r := &Rescued{copied: from.Copy, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := errors.Join(os.RemoveAll(from.Copy), copyTree(ctx, from.Dir, from.Copy)); err != nil {
		return nil, fmt.Errorf("copy %s: %w", from.Dir, err)
	}
	if r.Streams, err = Streams(from.Copy); err != nil {
		return nil, err
	}
	o := Options{Dir: from.Copy, Cluster: from.Cluster, Node: from.Node, Secret: rand.Text(), MaxStore: 1 << 60, Logger: from.Logger}
	if from.Alone {
		r.Server, err = Start(o)
		return r, err
	}
	o.Listen = "127.0.0.1:0"
	if err := r.startCompanion(o); err != nil {
		return nil, err
	}
	o.Peers = map[string]string{companion: r.companion.ClusterAddr().String()}
	if r.Server, err = Start(o); err != nil {
		return nil, err
	}
	return r, r.takeOver(ctx)
}

// companion is the name of the server next to the copy. No node has a capital in its name.
const companion = "Companion"

func (r *Rescued) startCompanion(o Options) error {
	o.Node = companion
	if err := o.check(); err != nil {
		return err
	}
	opts, err := o.options()
	if err != nil {
		return err
	}
	opts.JetStream, opts.StoreDir = false, ""
	opts.CustomClientAuthentication = door(func(server.ClientAuthentication) bool { return false })
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	r.companion = s
	s.SetLoggerV2(&logger{slog: o.Logger}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(patience) {
		return errors.New("the server next to the copy does not start")
	}
	return nil
}

// takeOver makes the server the only member of its cluster.
func (r *Rescued) takeOver(ctx context.Context) error {
	var last error
	for _, step := range []func() (done bool, err error){
		func() (bool, error) {
			err := r.operate(ctx, server.JSApiMetaRescue, server.JSApiMetaRescueRequest{QuorumNeeded: 1})
			return err == nil, err
		},
		func() (bool, error) { return r.NATS().JetStreamIsLeader() && r.began(), nil },
		func() (bool, error) {
			others, err := r.members()
			if err != nil || len(others) == 0 {
				return err == nil, err
			}
			return false, r.remove(ctx, others[0].Peer)
		},
		func() (bool, error) { // before it leads each group and has applied everything, its answers are old
			return !slices.ContainsFunc(r.raft(), func(g server.RaftzGroup) bool {
				return g.State != server.Leader.String() || g.Applied < g.PIndex
			}), nil
		},
	} {
		err := poll(ctx, func() (done bool, _ error) { done, last = step(); return done, nil })
		if err != nil {
			return errors.Join(fmt.Errorf("the copy of node %s does not become a cluster of one: %w", r.NATS().Name(), err), last)
		}
	}
	return nil
}

// began reports whether the server takes part in the groups of all its streams that are still listed.
func (r *Rescued) began() bool {
	listed := 1 // the group that keeps the list
	for _, name := range r.Streams {
		if r.NATS().JetStreamIsStreamAssigned(server.DEFAULT_GLOBAL_ACCOUNT, name) {
			listed++
		}
	}
	return len(r.raft()) >= listed
}

// Close stops the server and removes the copy.
func (r *Rescued) Close() error {
	var errs []error
	if r.Server != nil {
		errs = append(errs, r.Server.Close())
	}
	if r.companion != nil {
		r.companion.Shutdown()
		r.companion.WaitForShutdown()
	}
	return errors.Join(append(errs, os.RemoveAll(r.copied), r.lock.Close())...)
}

// Streams returns the streams that a node's directory has a part of, ascending.
func Streams(dir string) (names []string, err error) {
	entries, err := os.ReadDir(stored(dir).streamsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, nil
}

// stoppable is a file system that opens files until ctx ends.
type stoppable struct {
	fs.FS
	ctx context.Context
}

// Open implements [fs.FS].
func (s stoppable) Open(name string) (fs.File, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	return s.FS.Open(name)
}

// copyTree copies directories and files. Where the file system can, a file's copy shares its blocks.
func copyTree(ctx context.Context, from, to string) error {
	return errors.Join(os.Mkdir(to, 0o700), os.CopyFS(to, stoppable{os.DirFS(from), ctx}))
}
