//go:build unix

package cli

import (
	"slices"
	"time"

	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/step"
)

// theStore and theOthers stand in place of a node's name: what keeps the log, and all other nodes.
const theStore, theOthers = "store", "others"

// connectStore puts proxies between each node and the servers that keep the log, and one between each node and
// the others, which find it at the address of that one. url makes the URL of the servers from addresses.
func (c *chaos) connectStore(url func(addresses []string) string, servers ...string) {
	c.t.Helper()
	c.store = map[string]string{}
	for _, name := range c.flags.Names() {
		var addresses []string
		var w wire
		for _, target := range servers {
			p := c.passTo(target)
			w, addresses = append(w, p), append(addresses, p.Addr())
		}
		in := c.passTo(c.flags.Peers[name].Requests())
		c.wires[[2]string{name, theStore}], c.wires[[2]string{theOthers, name}] = w, wire{in}
		c.store[name] = url(addresses)
		// Clients ask another node before this one gives up.
		c.more[name] = []string{"--peer-address", in.Addr(), "--leader-wait", "15s"}
	}
}

// toStore returns a node's way to what keeps the log, and toNode that of the others to the node.
func (c *chaos) toStore(name string) wire { return c.wires[[2]string{name, theStore}] }
func (c *chaos) toNode(name string) wire  { return c.wires[[2]string{theOthers, name}] }

// holds holds what passes, both ways or those that are given.
func (w wire) holds(ways ...proxy.Way) {
	if len(ways) == 0 {
		ways = []proxy.Way{proxy.ToServer, proxy.ToClient}
	}
	w.each(func(p *proxy.Proxy) {
		for _, way := range ways {
			p.Hold(way)
		}
	})
}

// refuses cuts all connections, and lets no new ones come up.
func (w wire) refuses() { w.each(func(p *proxy.Proxy) { p.Refuse(true); p.Cut() }) }

// oneOf returns one of them by chance.
func oneOf[T any](c *chaos, all ...T) T { return all[c.rng.IntN(len(all))] }

// storeFaults are what goes wrong between nodes and servers that keep the log for them.
var storeFaults = []fault{
	{name: "cut-off-leader", strike: func(c *chaos) { // from everybody
		leader, _ := c.some()
		c.toStore(leader).holds()
		c.toNode(leader).holds()
		c.flows()
	}},
	{name: "store-held", strike: func(c *chaos) {
		leader, _ := c.some()
		c.toStore(leader).holds()
		c.flows()
	}},
	{name: "store-refused", strike: func(c *chaos) {
		leader, followers := c.some()
		c.toStore(oneOf(c, leader, followers[0])).refuses()
		c.flows()
		c.lasts()
	}},
	{name: "store-gone", strike: func(c *chaos) { // for all
		for _, name := range c.flags.Names() {
			if c.rng.IntN(2) == 0 {
				c.toStore(name).refuses()
			} else {
				c.toStore(name).holds()
			}
		}
		c.lasts()
	}},
	{name: "store-deaf", strike: func(c *chaos) {
		leader, _ := c.some()
		c.toStore(leader).holds(proxy.ToServer)
		c.lasts()
	}},
	{name: "store-mute", strike: func(c *chaos) {
		leader, _ := c.some()
		c.toStore(leader).holds(proxy.ToClient)
		c.lasts()
	}},
	{name: "store-cut", strike: func(c *chaos) { // again and again, in the middle of what passes
		leader, _ := c.some()
		cut := oneOf(c, []string{leader}, c.flags.Names())
		for range 20 {
			step.Pause(c.ctx, time.Duration(c.rng.Int64N(int64(300*time.Millisecond))))
			for _, name := range cut {
				c.toStore(name).each((*proxy.Proxy).Cut)
			}
		}
	}},
	{name: "nodes-apart", strike: func(c *chaos) { // they still see what keeps the log
		held := c.rng.IntN(2) == 0
		for _, name := range c.flags.Names() {
			if held {
				c.toNode(name).holds()
			} else {
				c.toNode(name).refuses()
			}
		}
		c.lasts()
	}},
}

// external returns the faults of a cluster whose log others keep, with those of what keeps it.
func external(own []fault) []fault { return slices.Concat(commonFaults, storeFaults, own) }
