package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/server"
)

// site is what a demo draws from, and what it crashes: one server, or a cluster.
type site interface {
	// start starts it, and returns where clients find it.
	start(ctx context.Context, d *demo) ([]string, error)
	// crash kills the process that answers with SIGKILL, and returns what became of that when requests
	// are answered again.
	crash(ctx context.Context, d *demo) (said string, err error)
	// stop stops it in order.
	stop() error
	// verify checks what it left behind.
	verify(ctx context.Context, d *demo, seen func(realm string, rec kuji.Record)) (verifyJSON, error)
	// kill ends what still runs.
	kill()
}

// alone is a server on a data directory of its own.
type alone struct{ server *child }

func (s *alone) run(ctx context.Context, d *demo, address string) (err error) {
	s.server, err = startChild(ctx, filepath.Join(d.dir, "server.log"), nil, "--data", d.data, "--listen", address)
	return err
}

func (s *alone) start(ctx context.Context, d *demo) ([]string, error) {
	if err := s.run(ctx, d, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	d.say("server %d serves %s", s.server.ready.PID, s.server.ready.URL)
	return []string{s.server.ready.URL}, nil
}

func (s *alone) crash(ctx context.Context, d *demo) (string, error) {
	address, pid, killed := s.server.ready.Address, s.server.ready.PID, time.Now()
	s.server.kill()
	d.report.AcknowledgedAtKill = d.traffic.draws.Load()
	if err := s.run(ctx, d, address); err != nil {
		s.server = nil
		return "", restartFailed(ctx, err)
	}
	d.report.Downtime = seconds(time.Since(killed))
	return fmt.Sprintf("killed server %d with SIGKILL after %d acknowledged draws; server %d is ready %.2f s later",
		pid, d.report.AcknowledgedAtKill, s.server.ready.PID, d.report.Downtime), nil
}

func (s *alone) stop() error { return s.server.stop(stopTimeout) }

func (s *alone) verify(ctx context.Context, d *demo, seen func(string, kuji.Record)) (verifyJSON, error) {
	return inDirectory(d.data).verify(ctx, nil, nil, seen)
}

func (s *alone) kill() {
	if s.server != nil {
		s.server.kill()
	}
}

// stopTimeout is how long a demo's server may take to stop in order.
const stopTimeout = 30 * time.Second

// threeNodes is a cluster of three processes on this machine.
type threeNodes struct {
	f     clusterFlags
	peers *cluster.Client
	nodes map[string]*child // those that run
	at    map[string]string // addresses for clients
}

func (s *threeNodes) start(ctx context.Context, d *demo) ([]string, error) {
	s.nodes = map[string]*child{}
	s.f = clusterFlags{keyFile: filepath.Join(d.dir, "cluster.key")}
	s.f.Name = "demo"
	if err := writeClusterKey(s.f.keyFile); err != nil {
		return nil, err
	}
	ports, err := freePairs(6, pairsFrom)
	if err != nil {
		return nil, err
	}
	s.at = map[string]string{}
	for i, port := range ports[:3] {
		s.at[fmt.Sprintf("n%d", i+1)] = fmt.Sprintf("127.0.0.1:%d", ports[3+i])
		s.f.peers = append(s.f.peers, fmt.Sprintf("n%d=127.0.0.1:%d", i+1, port))
	}
	if s.peers, err = d.clusterClient(&s.f); err != nil {
		return nil, err
	}
	var urls []string
	for _, name := range s.f.Names() {
		if err := s.run(ctx, d, name); err != nil {
			return nil, err
		}
		urls = append(urls, s.nodes[name].ready.URL)
		d.say("node %s, process %d, serves %s", name, s.nodes[name].ready.PID, s.nodes[name].ready.URL)
	}
	began := time.Now()
	leader, err := s.leader(ctx, server.DefaultRealm)
	if err != nil {
		return nil, err
	}
	d.say("the nodes found each other in %.2f s, and node %s leads the first realm; clients draw at all three", time.Since(began).Seconds(), leader)
	return urls, nil
}

func (s *threeNodes) run(ctx context.Context, d *demo, name string) error {
	c, err := startChild(ctx, filepath.Join(d.dir, name+".log"), nil, "--data", s.data(d, name), "--listen", s.at[name],
		"--cluster", s.f.Name, "--node", name, "--peers", strings.Join(s.f.peers, ","), "--cluster-key", s.f.keyFile)
	if err == nil {
		s.nodes[name] = c
	}
	return err
}

func (s *threeNodes) data(d *demo, name string) string { return filepath.Join(d.data, name) }

// leader waits until a node leads a realm, and returns its name.
func (s *threeNodes) leader(ctx context.Context, realm string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

func (s *threeNodes) crash(ctx context.Context, d *demo) (string, error) {
	realm := d.attractions[0].realm
	old, err := s.leader(ctx, realm)
	if err != nil {
		return "", restartFailed(ctx, err)
	}
	led := s.peers.Ask(ctx, old).Leads
	d.spared = map[string]bool{}
	for _, at := range d.attractions {
		d.spared[at.realm] = !slices.Contains(led, at.realm)
	}
	killed := time.Now()
	s.nodes[old].kill()
	delete(s.nodes, old)
	d.report.AcknowledgedAtKill = d.traffic.draws.Load()
	leader, err := s.leader(ctx, realm)
	if err != nil {
		return "", restartFailed(ctx, err)
	}
	d.report.Downtime = seconds(time.Since(killed))
	if err := s.run(ctx, d, old); err != nil {
		return "", restartFailed(ctx, err)
	}
	return fmt.Sprintf("killed node %s, which led realm %s, with SIGKILL after %d acknowledged draws; node %s led it %.2f s later, and node %s is back",
		old, realm, d.report.AcknowledgedAtKill, leader, d.report.Downtime, old), nil
}

// stop stops all nodes at once, so that none has to take over.
func (s *threeNodes) stop() (err error) {
	errs := make(chan error, len(s.nodes))
	for _, c := range s.nodes {
		go func() { errs <- c.stop(stopTimeout) }()
	}
	for range s.nodes {
		err = errors.Join(err, <-errs)
	}
	return err
}

// verify reads the log as the nodes have stored it together.
func (s *threeNodes) verify(ctx context.Context, d *demo, seen func(string, kuji.Record)) (out verifyJSON, err error) {
	at := map[string]string{}
	for _, name := range s.f.Names() {
		at[name] = s.data(d, name)
	}
	var damage []error
	out.OK = true
	err = s.f.Offline(ctx, at, func(dr *jetstream.Driver) error {
		realms, err := dr.Realms(ctx)
		key, old := s.f.Seals()
		for _, name := range realms {
			report, err := kuji.VerifyDriver(dr, key, name, nil, func(rec kuji.Record) { seen(name, rec) }, old...)
			var wrong *kuji.VerifyError
			if errors.As(err, &wrong) {
				damage = append(damage, err)
			} else if err != nil {
				return err
			}
			out.Realms = append(out.Realms, newVerifyRealmJSON(report, wrong))
		}
		return err
	})
	if err == nil && len(damage) > 0 {
		out.OK, err = false, damageError{errors.Join(damage...)}
	}
	return out, err
}

func (s *threeNodes) kill() {
	var all sync.WaitGroup
	for _, c := range s.nodes {
		all.Go(c.kill)
	}
	all.Wait()
}

// Ports of nodes on this machine are these, which are below those that kernels choose for clients: no
// client has one when a node comes back. Tests have as many behind them.
const (
	pairsFrom = 10_000
	pairPorts = 10_000
)

// freePairs returns n ports of loopback such that each and the next one were free a moment ago. They
// are among the pairPorts that begin with from.
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
