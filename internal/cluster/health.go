package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// healthJSON is what a node says of its disk and of Raft, to those who ask for it. It takes longer than the rest
// of nodeJSON, which nodes ask each other for once a second.
type healthJSON struct {
	Stored  uint64   `json:"stored_bytes"`
	Most    uint64   `json:"most_bytes"`           // that it may store
	Free    uint64   `json:"free_bytes,omitempty"` // on its disk; absent: the system does not say
	Meta    string   `json:"meta_leader,omitempty"`
	Groups  int      `json:"groups"`  // of Raft, in which the node takes part
	Leads   int      `json:"leads"`   // of these
	Waiting uint64   `json:"waiting"` // entries that were agreed on and that the node has not carried out, at most
	Ill     []string `json:"ill,omitempty"`
	Behind  []string `json:"behind,omitempty"` // copies on other nodes of what this one leads
}

// healthPath is where a node says its health too.
const healthPath = nodePath + "?health=1"

// maxIll bounds how many things that are wrong a node names.
const maxIll = 20

// healthOf says how a node's part of the log is. It is nil if the log is kept elsewhere.
func healthOf(n *node) (*healthJSON, error) {
	if n.nats == nil {
		return nil, nil
	}
	h, err := n.nats.Health()
	if err != nil {
		return nil, err
	}
	out := &healthJSON{Stored: h.Stored, Most: h.Most, Meta: h.Meta, Groups: h.Groups, Leads: h.Leads, Waiting: h.Waiting, Ill: few(h.Ill), Behind: few(h.Behind)}
	out.Free, _ = freeSpace(n.dir)
	return out, nil
}

// few returns the first of many texts, and how many there are.
func few(all []string) []string {
	if len(all) <= maxIll {
		return all
	}
	return append(slices.Clone(all[:maxIll]), fmt.Sprintf("and %d more", len(all)-maxIll))
}

// setClocks compares the clocks of nodes that were asked, with the one in the middle.
func setClocks(nodes []nodeJSON) {
	var all []time.Duration
	for i := range nodes {
		if nodes[i].Time != 0 {
			all = append(all, nodes[i].apart)
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	middle := all[(len(all)-1)/2]
	for i := range nodes {
		if n := &nodes[i]; n.Time != 0 {
			ms := (n.apart - middle).Milliseconds()
			n.ClockMS = &ms
		}
	}
}

// printHealth prints how nodes' parts of the log are, and what is wrong.
func printHealth(w io.Writer, nodes []nodeJSON) {
	fprintf(w, "NODE\tSTORED\tMAY STORE\tDISK FREE\tRAFT GROUPS\tRAFT LEADS\tWAITING\tCLOCK\tVERSION\n")
	for i := range nodes {
		n := &nodes[i]
		clock, version := "-", n.Version
		if n.ClockMS != nil {
			clock = fmt.Sprintf("%+.1f s", float64(*n.ClockMS)/1000)
		}
		if version == "" {
			version = "-"
		}
		if n.Health == nil {
			fprintf(w, "%s\t-\t-\t-\t-\t-\t-\t%s\t%s\n", n.Node, clock, version)
			continue
		}
		h, free := n.Health, "-"
		if h.Free > 0 {
			free = gigabytes(h.Free)
		}
		fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", n.Node, gigabytes(h.Stored), gigabytes(h.Most), free, h.Groups, h.Leads, h.Waiting, clock, version)
	}
	var more []string
	versions := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		if n.Version != "" {
			versions[n.Version] = true
		}
		if n.Health != nil {
			for _, text := range append(slices.Clone(n.Health.Ill), n.Health.Behind...) {
				more = append(more, sprintf("node %s: %s", n.Node, text))
			}
		}
	}
	if len(versions) > 1 {
		more = append(more, "the nodes run different versions: that is for an upgrade only")
	}
	if len(more) > 0 {
		fprintf(w, "\n%s\n", markup(strings.Join(more, "\n")))
	}
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }
