package cluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A directory is of one node of one cluster. What an older build left says of which cluster at least.
func TestHome(t *testing.T) {
	data := t.TempDir()
	f := Config{Name: "shop", Node: "n1", Peers: map[string]Peer{"n1": {"127.0.0.1", 6222}}}
	if IsNode(data) {
		t.Error("an empty directory is a node's")
	}
	for range 2 {
		if err := f.settle(data); err != nil {
			t.Fatal(err)
		}
	}
	h, err := readHome(data)
	if err != nil || h.Node != "n1" || h.Peers["n1"] != "127.0.0.1:6222" || !IsNode(data) {
		t.Fatalf("%+v, %v", h, err)
	}
	f.Peers["n2"] = Peer{"127.0.0.2", 6222}
	if err := f.settle(data); err != nil {
		t.Errorf("another list of nodes: %v", err)
	}
	for _, other := range []Config{{Name: "shop-2", Node: "n1"}, {Name: "shop", Node: "n2"}} {
		if err := other.settle(data); !isRefused(err) {
			t.Errorf("node %s of %s: %v", other.Node, other.Name, err)
		}
	}
	h.Left = "shop-2"
	if err := h.write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.settle(data); !isRefused(err) {
		t.Errorf("a directory that was left: %v", err)
	}

	old := t.TempDir()
	if err := os.MkdirAll(filepath.Join(Dir(old), "jetstream", "$G", "streams", "KUJI_old_shop_LOG_default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.settle(old); !isRefused(err) {
		t.Errorf("streams of another cluster: %v", err)
	}
	if _, err := OpenCopy(t.Context(), old); !isRefused(err) {
		t.Errorf("nothing says whose directory it is: %v", err)
	}
	f.Name = "old_shop"
	if err := f.settle(old); err != nil {
		t.Errorf("streams of this cluster: %v", err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}

// TestKnock: a cluster that has a node left must not become two.
func TestKnock(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	h := &home{Cluster: "shop", Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:1", "n2": Peer{"127.0.0.1", port - 1}.Log()}}
	if _, err := knock(t.Context(), h); !isRefused(err) {
		t.Errorf("node n2 accepts connections: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if lost, err := knock(t.Context(), h); err != nil || len(lost) != 1 || lost[0].Node != "n2" {
		t.Errorf("node n2 is gone: %v, %v", lost, err)
	}
}
