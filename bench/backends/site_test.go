//go:build unix

package backends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// backend is one of those compared.
type backend struct {
	name    string
	servers int  // of kuji
	voting  bool // they need each other to start
	prepare func(ctx context.Context, s *site) error
}

// backends are those compared.
var backends = []backend{
	{name: "disk", servers: 1, prepare: func(_ context.Context, s *site) error {
		s.add("--sync", "always")
		return nil
	}},
	{name: "nats", servers: 3, voting: true, prepare: prepareNATS},
	{name: "postgres", servers: 2, prepare: func(ctx context.Context, s *site) error { return s.preparePostgres(ctx, false) }},
	{name: "postgres-sync", servers: 2, prepare: func(ctx context.Context, s *site) error { return s.preparePostgres(ctx, true) }},
}

// site is a backend that runs.
type site struct {
	backend
	program   string
	dir       string
	nodes     []*node
	databases []*pgtest.Server // a standby before its primary
}

// newSite starts a backend with directories of its own. extra are flags of all nodes.
func (r *run) newSite(ctx context.Context, b backend, extra ...string) (*site, error) {
	dir, err := os.MkdirTemp(r.o.dir, "kuji-backends-")
	if err != nil {
		return nil, err
	}
	s := &site{backend: b, program: r.program, dir: dir}
	// Servers of PostgreSQL run as another user.
	if err = os.Chmod(dir, 0o755); err == nil {
		err = b.prepare(ctx, s)
	}
	for _, n := range s.nodes {
		n.args = append(n.args, extra...)
	}
	if err == nil {
		err = s.startAll(ctx)
	}
	if err == nil {
		err = pause(ctx, r.o.settle) // nodes that have just come get no realm of others for some time
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", b.name, err), s.close())
	}
	return s, nil
}

// add adds a node with arguments of its own.
func (s *site) add(args ...string) {
	name := fmt.Sprint("n", len(s.nodes)+1)
	args = append(args, "--data", filepath.Join(s.dir, name), "--history", "off", "--listen", fmt.Sprint("127.0.0.1:", ports(1)))
	s.nodes = append(s.nodes, &node{program: s.program, args: args, log: filepath.Join(s.dir, name+".log")})
}

// ports returns a port of loopback such that it and the next ones were free just now. Those that kernels
// choose for clients are higher.
func ports(n int) int {
	for {
		port, free := 10_000+rand.IntN(20_000), true
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+i))
			if free = free && err == nil; err == nil {
				_ = l.Close() // nobody has connected
			}
		}
		if free {
			return port
		}
	}
}

// key makes the key of a cluster.
func (s *site) key() (string, error) {
	file := filepath.Join(s.dir, "cluster.key")
	return file, os.WriteFile(file, []byte(cluster.NewKey()), 0o600)
}

func prepareNATS(_ context.Context, s *site) error {
	key, err := s.key()
	if err != nil {
		return err
	}
	var peers []string
	for i := range s.servers {
		peers = append(peers, fmt.Sprintf("n%d=127.0.0.1:%d", i+1, ports(2)))
	}
	for i := range s.servers {
		s.add("--cluster", "bench", "--cluster-key", key, "--node", fmt.Sprint("n", i+1), "--peers", strings.Join(peers, ","))
	}
	return nil
}

// preparePostgres starts a server of PostgreSQL, with the settings that it comes with and a standby that its
// commits wait for if that is wanted.
func (s *site) preparePostgres(ctx context.Context, standby bool) error {
	key, err := s.key()
	if err != nil {
		return err
	}
	o := pgtest.Options{Dir: s.dir, TCP: true, Fsync: true, Settings: map[string]string{"shared_buffers": "128MB"}}
	primary, err := pgtest.New(ctx, o)
	if err != nil {
		return err
	}
	s.databases = []*pgtest.Server{primary}
	if standby {
		second, err := primary.NewStandby(ctx, "second", o)
		if err != nil {
			return err
		}
		s.databases = []*pgtest.Server{second, primary}
		if err := errors.Join(second.Following(ctx), primary.SetSync(ctx, "second")); err != nil {
			return err
		}
	}
	for i := range s.servers {
		s.add("--store", primary.URL(), "--cluster-key", key, "--node", fmt.Sprint("n", i+1), "--peer-listen", fmt.Sprint("127.0.0.1:", ports(1)))
	}
	return nil
}

// startAll starts all nodes at once: some need each other.
func (s *site) startAll(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range s.nodes {
		all.Go(func() error { return n.start(ctx) })
	}
	return all.Wait()
}

// endAll ends all nodes at once, so that none takes over.
func (s *site) endAll(how syscall.Signal) {
	var all errgroup.Group
	for _, n := range s.nodes {
		all.Go(func() error { n.end(how); return nil })
	}
	_ = all.Wait()
}

func (s *site) close() (err error) {
	s.endAll(syscall.SIGKILL)
	for _, db := range s.databases {
		err = errors.Join(err, db.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// leader returns the node that leads a realm, once there is one.
func (s *site) leader(ctx context.Context, realm string) (*node, error) {
	for len(s.nodes) > 1 {
		for _, n := range s.nodes {
			if n.cmd != nil && n.leads(ctx, realm) {
				return n, nil
			}
		}
		if err := pause(ctx, step); err != nil {
			return nil, fmt.Errorf("nobody leads realm %s: %w", realm, err)
		}
	}
	return s.nodes[0], nil
}

// urls returns where the nodes that run are.
func (s *site) urls() (all []string) {
	for _, n := range s.nodes {
		if n.cmd != nil {
			all = append(all, n.ready.URL)
		}
	}
	return all
}
