package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// home is what a node's directory says of itself, in node.json. It has the votes of one node of one cluster:
// under another name it would vote twice, or take what one cluster agreed on to another.
type home struct {
	Cluster string            `json:"cluster"`
	Node    string            `json:"node"`
	Peers   map[string]string `json:"peers"`           // all nodes, and where each listened when this one last started
	Store   string            `json:"store,omitempty"` // what keeps the log; "": the nodes do
	Left    string            `json:"left,omitempty"`  // the cluster that was made of this directory: no node starts here any more
}

func homeFile(data string) string { return filepath.Join(Dir(data), "node.json") }

// readHome reads what a node's directory says of itself. If it says nothing, the error is a RefusedError.
func readHome(data string) (*home, error) {
	text, err := os.ReadFile(homeFile(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refused("%s: an older build made this node's directory, and nothing in it says which node that is: start \"kuji serve\" there once, and stop it", data)
	}
	var h home
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", homeFile(data), err)
	}
	return &h, nil
}

// write writes what a directory says of itself. A crash leaves the old file or the new one.
func (h *home) write(data string) error {
	text, err := json.MarshalIndent(h, "", "  ")
	if err := errors.Join(err, os.MkdirAll(Dir(data), 0o700)); err != nil {
		return err
	}
	return vfs.ReplaceFile(vfs.OS(), filepath.ToSlash(homeFile(data)), ".new", append(text, '\n'))
}

// settle makes a directory this node's. It refuses one that belongs to another node.
func (c *Config) settle(data string) error {
	h, err := readHome(data)
	if _, none := errors.AsType[*RefusedError](err); err != nil && !none {
		return err
	}
	now := home{Cluster: c.Name, Node: c.Node, Store: c.Store.kind(), Peers: map[string]string{}}
	for name, p := range c.Peers {
		now.Peers[name] = p.Log()
	}
	if now.Store != "" { // any node may have it: it has no votes, only memories
		now.Node, now.Peers = "", map[string]string{}
	}
	switch other := otherCluster(data, c.Name); {
	case h == nil && other != "":
		return refused("--data %s is of cluster %s, not of %s: expected an empty directory", data, other, c.Name)
	case h == nil:
	case h.Left != "":
		return refused("--data %s: cluster %s was made of what node %s of cluster %s had kept here. What is here is old: expected another directory", data, h.Left, h.Node, h.Cluster)
	case h.Store != now.Store && h.Cluster == c.Name:
		return refused("--data %s: the log of cluster %s was kept by %s, not by %s: expected another directory", data, h.Cluster, keeper(h.Store), keeper(now.Store))
	case h.Store != "" && h.Cluster != c.Name:
		return refused("--data %s belongs to a node of cluster %s, not of %s: expected another directory", data, h.Cluster, c.Name)
	case h.Cluster != c.Name || h.Node != now.Node:
		return refused("--data %s belongs to node %s of cluster %s, not to node %s of cluster %s: expected the directory of that node, or an empty one", data, h.Node, h.Cluster, c.Node, c.Name)
	case reflect.DeepEqual(*h, now):
		return nil
	}
	return now.write(data)
}

// keeper says what keeps a log.
func keeper(store string) string { return cmp.Or(store, "its nodes") }

// otherCluster returns another cluster with streams in a directory, or "". Older builds wrote no node.json.
func otherCluster(data, cluster string) string {
	streams, err := embedded.Streams(Dir(data))
	if err != nil || len(streams) == 0 || slices.ContainsFunc(streams, func(name string) bool { return jetstream.ClusterOf(name) == cluster }) {
		return ""
	}
	return jetstream.ClusterOf(streams[0])
}

// copyDir is where a copy of a node's directory is while somebody reads it.
func copyDir(data string) string { return filepath.Join(data, "cluster-copy") }

// IsNode reports whether a data directory is that of a cluster's node.
func IsNode(data string) bool {
	s, err := os.Stat(Dir(data))
	return err == nil && s.IsDir()
}
