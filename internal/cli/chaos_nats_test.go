//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/step"
)

// natsServer is a program that is a NATS server, with the options that are its argument.
const natsServer = "nats-server-of-kuji"

// mainNATS is main of such a program. It ends with its input.
func mainNATS() {
	var o embedded.Options
	err := json.Unmarshal([]byte(os.Args[1]), &o)
	var s *embedded.Server
	if err == nil {
		s, err = embedded.Start(o)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		told <- syscall.SIGTERM
	}()
	<-told
	if err := s.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// natsStore is a log in three NATS servers, each a process.
type natsStore struct {
	options map[string]embedded.Options
	running map[string]*nodeProcess
}

func (s *natsStore) open(c *chaos) {
	c.t.Helper()
	const secret = "the servers' own secret"
	addresses, err := proxy.Addresses(6)
	if err != nil {
		c.t.Fatal(err)
	}
	s.options, s.running = map[string]embedded.Options{}, map[string]*nodeProcess{}
	peers := map[string]string{}
	for i, name := range []string{"s1", "s2", "s3"} {
		peers[name] = addresses[2*i]
		s.options[name] = embedded.Options{
			Dir: filepath.Join(c.dir, name), Cluster: "nats", Node: name, Listen: addresses[2*i], Clients: addresses[2*i+1], Peers: peers, Secret: secret,
		}
	}
	c.t.Cleanup(func() {
		for name := range s.running {
			s.end(name, syscall.SIGKILL)
		}
	})
	var servers []string
	for _, name := range s.names() {
		s.start(c, name)
		servers = append(servers, s.options[name].Clients)
	}
	c.secret = url.PathEscape(secret)
	c.connectStore(func(addresses []string) string {
		return fmt.Sprintf("nats://kuji:%s@%s", c.secret, strings.Join(addresses, ","))
	}, servers...)
}

func (*natsStore) names() []string { return []string{"s1", "s2", "s3"} }

// start starts a server, and returns when it runs.
func (s *natsStore) start(c *chaos, name string) {
	c.t.Helper()
	path, err := exec.LookPath(natsServer)
	if err != nil {
		c.t.Fatal(err)
	}
	o, err := json.Marshal(s.options[name])
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(path, string(o))
	stdin, err := cmd.StdinPipe() // which ends with this process
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	p := &nodeProcess{Process: cmd.Process, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = stdin.Close()
		close(p.ended)
	}()
	if err != nil || line != "ready\n" {
		c.t.Fatalf("NATS server %s: %s %v %v", name, line, err, p.wait())
	}
	s.running[name] = p
}

// end ends a server by a signal.
func (s *natsStore) end(name string, how os.Signal) {
	p := s.running[name]
	_ = p.Signal(how) // fails only when it has ended already
	_ = p.wait()
	delete(s.running, name)
}

// some returns servers by chance.
func (s *natsStore) some(c *chaos, n int) []string {
	names := s.names()
	c.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:n]
}

// down ends servers, and starts them again after during.
func (s *natsStore) down(c *chaos, n int, during func()) {
	c.t.Helper()
	names, how := s.some(c, n), oneOf(c, os.Signal(syscall.SIGTERM), os.Signal(syscall.SIGKILL))
	for _, name := range names {
		s.end(name, how)
	}
	during()
	for _, name := range names {
		s.start(c, name)
	}
}

// pause stops servers, which go on after a while.
func (s *natsStore) pause(c *chaos, n int) {
	c.t.Helper()
	names := s.some(c, n)
	for _, how := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, name := range names {
			if err := s.running[name].Signal(how); err != nil {
				c.t.Fatal(err)
			}
		}
		if how == syscall.SIGSTOP {
			c.lasts()
		}
	}
}

func (s *natsStore) kept(c *chaos) []keptLog {
	var servers []string
	for _, o := range s.options {
		servers = append(servers, o.Clients)
	}
	return []keptLog{{"the servers", c.openStore(c.ctx, fmt.Sprintf("nats://kuji:%s@%s", c.secret, strings.Join(servers, ",")))}}
}

func (s *natsStore) faults() []fault {
	return external([]fault{
		{name: "server-down", strike: func(c *chaos) { s.down(c, 1, c.flows) }},
		{name: "servers-rolling", strike: func(c *chaos) {
			for _, name := range s.some(c, 3) {
				s.end(name, syscall.SIGKILL)
				s.start(c, name)
			}
		}},
		{name: "majority-down", strike: func(c *chaos) { s.down(c, 2, c.lasts) }},
		{name: "servers-down", strike: func(c *chaos) { s.down(c, 3, func() {}) }},
		{name: "everything-down", strike: func(c *chaos) {
			s.down(c, 3, func() {
				for _, name := range c.flags.Names() {
					c.kill(name)
				}
			})
			for _, name := range c.flags.Names() {
				c.start(name)
			}
		}},
		{name: "server-and-leader-down", strike: func(c *chaos) {
			leader, _ := c.some()
			c.kill(leader)
			s.down(c, 1, c.flows)
			c.start(leader)
		}},
		{name: "server-paused", strike: func(c *chaos) { s.pause(c, 1) }},
		{name: "majority-paused", strike: func(c *chaos) { s.pause(c, 2) }},
		{name: "one-server-held", strike: func(c *chaos) { // each node reaches two of them
			for _, name := range c.flags.Names() {
				w := c.toStore(name)
				wire{w[c.rng.IntN(len(w))]}.holds()
			}
			step.Pause(c.ctx, time.Second)
			c.flows()
		}},
	})
}
