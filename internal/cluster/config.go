// Package cluster is a node of a cluster: it joins the others, follows and leads realms, and passes requests
// on. It also has what operators do to a cluster: read its log, restore it, drain and remove nodes, and
// make a new cluster from one node's directory.
//
// Package election decides who leads, and package driver/jetstream keeps the board that says so. This package
// adds goroutines, timers and connections. No rule of the game may enter, and nothing that reads or writes a
// terminal.
package cluster

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji/driver"
)

// DefaultPort is where a node listens for the others. Requests that are passed on arrive at the next port.
const DefaultPort = 6222

// Config says which cluster is meant, and which node of it this process is.
type Config struct {
	Name   string          // of the cluster
	Node   string          // of this node; "": this process is none
	Peers  map[string]Peer // all nodes, by name
	Listen Peer            // where this node listens for the others; zero: where they find it
	Keys   Keys
	Store  Store // what keeps the log
	Waits  Waits
	// Address is where other nodes find this one, as HOST or HOST:PORT. Empty, as is usual: as Peers says, or
	// the address from which this machine reaches the store.
	Address string
}

// RefusedError says that the state of a cluster or of a directory does not allow something.
type RefusedError struct{ Message string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Peer is where a node is.
type Peer struct {
	Host string
	Port int // of the log; requests go to the next one
}

// Log returns the address of a node's NATS server.
func (p Peer) Log() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// Requests returns the address for what other nodes send.
func (p Peer) Requests() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port+1)) }

// ParsePeers reads the nodes of a cluster, each as NAME=HOST[:PORT].
func ParsePeers(nodes []string) (map[string]Peer, error) {
	all := map[string]Peer{}
	for _, one := range nodes {
		name, address, ok := strings.Cut(one, "=")
		if !ok || driver.CheckRealm(name) != nil || address == "" {
			return nil, fmt.Errorf("%q: expected NAME=HOST[:PORT], the name of 1 to 64 of a-z, 0-9, '-' and '_'", one)
		}
		p, err := ParsePeer(address)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", one, err)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("node %s is there twice", name)
		}
		all[name] = p
	}
	if n := len(all); n != 1 && n != 3 && n != 5 {
		return nil, fmt.Errorf("%d nodes: expected 1, 3 or 5", n)
	}
	return all, nil
}

// ParsePeer reads an address HOST[:PORT].
func ParsePeer(address string) (Peer, error) {
	p := Peer{strings.Trim(address, "[]"), DefaultPort}
	if host, port, err := net.SplitHostPort(address); err == nil {
		p.Host = host
		if p.Port, err = strconv.Atoi(port); err != nil || p.Port < 1 || p.Port > 65534 || host == "" {
			return p, fmt.Errorf("address %q: expected a host and a port from 1 to 65534", address)
		}
	}
	if strings.Contains(p.Host, ":") && net.ParseIP(p.Host) == nil {
		return p, fmt.Errorf("address %q: expected HOST or HOST:PORT", address)
	}
	return p, nil
}

// Names returns the names of the nodes, in order.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Peers)) }

// Own returns where this node listens for the others.
func (c *Config) Own() Peer { return cmp.Or(c.Listen, c.Peers[c.Node]) }

// External reports whether the log is not kept by servers within the nodes.
func (c *Config) External() bool { return !c.Store.within() }

// settleAddress returns where other nodes find this one, which listens at an address.
func (c *Config) settleAddress(listens net.Addr) string {
	if p, ok := c.Peers[c.Node]; ok {
		return p.Requests()
	}
	host, port, err := net.SplitHostPort(listens.String())
	if err != nil {
		return listens.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = facing(c.Store.places())
	}
	if c.Address != "" {
		if h, p, err := net.SplitHostPort(c.Address); err == nil {
			host, port = h, p
		} else {
			host = strings.Trim(c.Address, "[]")
		}
	}
	return net.JoinHostPort(host, port)
}

// Seals returns the key that seals the seeds of this cluster's epochs, and those that may have before.
func (c *Config) Seals() (key [32]byte, old [][32]byte) { return c.Keys.Seals(c.Name) }

// nameOf returns a name for a node that has none: the machine's, and the port at which it listens.
func nameOf(listens net.Addr) string {
	host, _ := os.Hostname() // without one, the port is the name
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, host)
	_, port, _ := net.SplitHostPort(listens.String())
	return strings.TrimLeft(name[:min(len(name), driver.MaxRealmName-len(port)-1)]+"-"+port, "-")
}

// tls returns what both sides of a connection between nodes use. The others find this node at an address; "":
// this process is none.
func (c *Config) tls(address string) (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(address)
	return c.Keys.tls(c.Name, host)
}

// replicas returns how many servers keep each realm: all nodes, or as many as the store says.
func (c *Config) replicas() int {
	if c.External() {
		return c.Store.NATS.Replicas
	}
	return len(c.Peers)
}

// Dir is where a node keeps its part of a cluster, in a data directory.
func Dir(data string) string { return filepath.Join(data, "cluster") }
