package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/demo"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/server"
)

// alone is a server on a data directory of its own.
type alone struct {
	*app
	dir    string // of the whole run
	server *child
}

func (s *alone) data() string { return filepath.Join(s.dir, "data") }

func (s *alone) run(ctx context.Context, address string) (err error) {
	s.server, err = startChild(ctx, filepath.Join(s.dir, "server.log"), nil, "--data", s.data(), "--listen", address)
	return err
}

// Start implements [demo.Site], as the methods below.
func (s *alone) Start(ctx context.Context) ([]string, error) {
	if err := s.run(ctx, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.say("server %d serves %s", s.server.ready.PID, s.server.ready.URL)
	return []string{s.server.ready.URL}, nil
}

func (s *alone) Crash(ctx context.Context, _ []string, killed func() int64) (demo.Crash, error) {
	address, pid, at := s.server.ready.Address, s.server.ready.PID, time.Now()
	s.server.kill()
	draws := killed()
	if err := s.run(ctx, address); err != nil {
		s.server = nil
		return demo.Crash{}, err
	}
	down := time.Since(at)
	return demo.Crash{Downtime: down, Said: fmt.Sprintf("killed server %d with SIGKILL after %d acknowledged draws; server %d is ready %.2f s later",
		pid, draws, s.server.ready.PID, down.Seconds())}, nil
}

func (s *alone) Stop() error { return s.server.stop(stopTimeout) }

func (s *alone) Verify(ctx context.Context, seen func(string, kuji.Record)) (demo.Left, error) {
	out, err := inDirectory(s.data()).verify(ctx, nil, nil, seen)
	return leftOf(out, s.data(), err)
}

func (s *alone) kill() {
	if s.server != nil {
		s.server.kill()
	}
}

// leftOf sums up what a site left in its files.
func leftOf(v verifyJSON, data string, err error) (left demo.Left, _ error) {
	for _, r := range v.Realms {
		left.Batches += r.Batches
		left.LogBytes += r.LogBytes
		for _, e := range r.Epochs {
			if e.Revealed && e.Undecided == "" {
				left.Decided += e.Events
			}
		}
	}
	var walked error
	left.Bytes, walked = sizeOf(data)
	return left, errors.Join(err, walked)
}

// sizeOf adds up the files below a directory.
func sizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	return total, err
}

// demoPatience is how long a cluster may take to find a leader.
const demoPatience = 30 * time.Second

// stopTimeout is how long a demo's server may take to stop in order.
const stopTimeout = 30 * time.Second

// threeNodes is a cluster of three processes on this machine.
type threeNodes struct {
	*app
	dir   string // of the whole run
	f     clusterFlags
	peers *cluster.Client
	nodes map[string]*child // those that run
	at    map[string]string // addresses for clients
	store string            // what keeps the log; "": the nodes do
	kept  *database         // of the store
}

// Start implements [demo.Site], as the methods below.
func (s *threeNodes) Start(ctx context.Context) ([]string, error) {
	s.nodes = map[string]*child{}
	s.f = clusterFlags{keyFile: filepath.Join(s.dir, "cluster.key")}
	s.f.Name = "demo"
	if err := writeClusterKey(s.f.keyFile); err != nil {
		return nil, err
	}
	ports, err := freePairs(7, pairsFrom)
	if err != nil {
		return nil, err
	}
	s.at = map[string]string{}
	for i, port := range ports[:3] {
		s.at[fmt.Sprintf("n%d", i+1)] = fmt.Sprintf("127.0.0.1:%d", ports[3+i])
		s.f.peers = append(s.f.peers, fmt.Sprintf("n%d=127.0.0.1:%d", i+1, port))
	}
	if s.peers, err = s.clusterClient(ctx, &s.f); err != nil {
		return nil, err
	}
	if s.store != "" {
		if s.kept, err = startDatabase(ctx, filepath.Join(s.dir, "database"), ports[6]); err != nil {
			return nil, err
		}
		s.say("PostgreSQL %s, process %d, keeps the log", s.kept.version(ctx), s.kept.cmd.Process.Pid)
	}
	var urls []string
	for _, name := range s.f.Names() {
		if err := s.run(ctx, name); err != nil {
			return nil, err
		}
		urls = append(urls, s.nodes[name].ready.URL)
		s.say("node %s, process %d, serves %s", name, s.nodes[name].ready.PID, s.nodes[name].ready.URL)
	}
	began := time.Now()
	leader, err := s.leader(ctx, server.DefaultRealm)
	if err != nil {
		return nil, err
	}
	s.say("the nodes found each other in %.2f s, and node %s leads the first realm; clients draw at all three", time.Since(began).Seconds(), leader)
	return urls, nil
}

func (s *threeNodes) run(ctx context.Context, name string) error {
	args := []string{"--data", s.data(name), "--listen", s.at[name], "--cluster", s.f.Name, "--node", name, "--cluster-key", s.f.keyFile}
	var env []string
	if s.kept == nil {
		args = append(args, "--peers", strings.Join(s.f.peers, ","))
	} else { // where everybody can see arguments, nobody sees the password
		args, env = append(args, "--peer-listen", s.f.Peers[name].Requests()), append(env, "KUJI_STORE="+s.kept.url)
	}
	c, err := startChild(ctx, filepath.Join(s.dir, name+".log"), env, args...)
	if err == nil {
		s.nodes[name] = c
	}
	return err
}

func (s *threeNodes) data(name string) string { return filepath.Join(s.dir, "data", name) }

// leader waits until a node leads a realm, and returns its name.
func (s *threeNodes) leader(ctx context.Context, realm string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for {
		for name := range s.nodes {
			if slices.Contains(s.peers.Ask(ctx, name).Leads, realm) {
				return name, nil
			}
		}
		if step.Pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return "", fmt.Errorf("no node leads: %w", ctx.Err())
		}
	}
}

func (s *threeNodes) Crash(ctx context.Context, realms []string, killed func() int64) (out demo.Crash, err error) {
	old, err := s.leader(ctx, realms[0])
	if err != nil {
		return out, err
	}
	led := s.peers.Ask(ctx, old).Leads
	out.Spared = slices.DeleteFunc(slices.Clone(realms), func(realm string) bool { return slices.Contains(led, realm) })
	at := time.Now()
	s.nodes[old].kill()
	delete(s.nodes, old)
	draws := killed()
	leader, err := s.leader(ctx, realms[0])
	if err != nil {
		return out, err
	}
	out.Downtime = time.Since(at)
	if err := s.run(ctx, old); err != nil {
		return out, err
	}
	out.Said = fmt.Sprintf("killed node %s, which led realm %s, with SIGKILL after %d acknowledged draws; node %s led it %.2f s later, and node %s is back",
		old, realms[0], draws, leader, out.Downtime.Seconds(), old)
	return out, nil
}

// Stop stops all nodes at once, so that none has to take over.
func (s *threeNodes) Stop() (err error) {
	errs := make(chan error, len(s.nodes))
	for _, c := range s.nodes {
		go func() { errs <- c.stop(stopTimeout) }()
	}
	for range s.nodes {
		err = errors.Join(err, <-errs)
	}
	return err
}

// Verify checks every realm of the nodes, which do not run.
func (s *threeNodes) Verify(ctx context.Context, seen func(string, kuji.Record)) (demo.Left, error) {
	conf, at, data := s.f.Config, map[string]string{}, filepath.Join(s.dir, "data")
	if s.kept == nil {
		for _, name := range s.f.Names() {
			at[name] = s.data(name)
		}
	} else {
		var err error
		if conf.Store, _, err = cluster.ParseStore(s.kept.url); err != nil {
			return demo.Left{}, err
		}
		data = s.kept.dir
	}
	var out verifyJSON
	err := conf.Offline(ctx, at, func(d cluster.Log) (err error) {
		out, err = inCluster(ctx, &conf, d).verify(ctx, nil, nil, seen)
		return err
	})
	if s.kept != nil { // nobody writes any more
		err = errors.Join(err, s.kept.stop())
	}
	return leftOf(out, data, err)
}

func (s *threeNodes) kill() {
	var all sync.WaitGroup
	for _, c := range s.nodes {
		all.Go(c.kill)
	}
	all.Wait()
	if s.kept != nil {
		s.kept.kill()
	}
}

// Ports of nodes are below those that kernels choose for clients, who could take one of a stopped node.
const (
	pairsFrom = 10_000
	pairPorts = 10_000
)

// freePairs returns n ports of loopback from the pairPorts after from; each and the next were free just now.
func freePairs(n, from int) (ports []int, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // nobody has connected
		}
	}()
	take := func(port int) bool {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			held = append(held, l)
		}
		return err == nil
	}
	for range 100 * n {
		if port := from + 2*rand.IntN(pairPorts/2); take(port) && take(port+1) {
			ports = append(ports, port)
		}
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("%d pairs of ports of 127.0.0.1 are wanted, and only %d are free", n, len(ports))
}
