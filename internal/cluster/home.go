package cli

import (
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
)

// home is what a node's directory says of itself, in the file node.json. A directory belongs to one node of
// one cluster for ever: the votes that it has given stand in it. With other names it would vote twice, or
// bring what one cluster agreed on into another.
type home struct {
	Cluster string            `json:"cluster"`
	Node    string            `json:"node"`
	Peers   map[string]string `json:"peers"`          // every node of the cluster as of the last start, and where it listened
	Left    string            `json:"left,omitempty"` // the cluster that was made of what is here: no node starts here any more
}

func homeFile(data string) string { return filepath.Join(clusterDir(data), "node.json") }

// readHome reads what a node's directory says of itself; nil if it does not say anything.
func readHome(data string) (*home, error) {
	text, err := os.ReadFile(homeFile(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
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

// write writes what a directory says of itself. A crash leaves what was there before or all of this.
func (h *home) write(data string) (err error) {
	if err := os.MkdirAll(clusterDir(data), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(clusterDir(data), ".node-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when all went well
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), homeFile(data))
}

// settle makes a directory this node's, or refuses it because it is another one's.
func (f *clusterFlags) settle(data string) error {
	h, err := readHome(data)
	if err != nil {
		return err
	}
	now := home{Cluster: f.name, Node: f.node, Peers: map[string]string{}}
	for name, p := range f.hosts {
		now.Peers[name] = p.log()
	}
	switch other := otherCluster(data, f.name); {
	case h == nil && other != "":
		return refusedError{fmt.Sprintf("--data %s is of cluster %s, not of %s: expected an empty directory", data, other, f.name)}
	case h == nil:
	case h.Left != "":
		return refusedError{fmt.Sprintf("--data %s: cluster %s was made of what node %s of cluster %s had kept here. What is here is old: expected another directory", data, h.Left, h.Node, h.Cluster)}
	case h.Cluster != f.name || h.Node != f.node:
		return refusedError{fmt.Sprintf("--data %s belongs to node %s of cluster %s, not to node %s of cluster %s: expected the directory of that node, or an empty one", data, h.Node, h.Cluster, f.node, f.name)}
	case reflect.DeepEqual(*h, now):
		return nil
	}
	return now.write(data)
}

// otherCluster returns of which other cluster a directory has streams, if of any. Builds before node.json left
// nothing else that says so.
func otherCluster(data, cluster string) string {
	streams, err := embedded.Streams(clusterDir(data))
	if err != nil || len(streams) == 0 || slices.ContainsFunc(streams, func(name string) bool { return jetstream.ClusterOf(name) == cluster }) {
		return ""
	}
	return jetstream.ClusterOf(streams[0])
}

// copyDir is where the copy of a node's directory is while somebody reads it.
func copyDir(data string) string { return filepath.Join(data, "cluster-copy") }

// isNode reports whether a data directory is that of a cluster's node.
func isNode(data string) bool {
	s, err := os.Stat(clusterDir(data))
	return err == nil && s.IsDir()
}

// othersOf returns the other nodes of the cluster, ascending, and where they listened.
func (h *home) others() (names []string, at map[string]peer, err error) {
	at = map[string]peer{}
	for name, address := range h.Peers {
		if name == h.Node {
			continue
		}
		if at[name], err = parseAddress(address); err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", name, err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, at, nil
}
