//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/internal/cluster"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// forceNew loses two disks of a cluster that has stopped, and makes a new cluster of the third one: not while
// another node is there, and not before somebody has confirmed what is in it. The new cluster gives the same
// answers, and proves every epoch. The old directories belong to no node of it.
func (c *trio) forceNew(ctx context.Context, t *testing.T, had map[string]*kujiv1.Result) {
	t.Helper()
	n := designTrio(t)
	n.flags.Name, n.flags.keyFile = "shop-2", c.flags.keyFile
	n.meet()
	of := func(name string) string { return filepath.Join(c.dir, name) }
	force := func(more ...string) (out cluster.Forced, said string, code int) {
		said, code = c.kuji(ctx, slices.Concat([]string{"cluster", "force-new", "--json", "--from", of("n3")}, n.as("n3"), more)...)
		_ = json.NewDecoder(strings.NewReader(said)).Decode(&out) // an error's text
		return out, said, code
	}

	c.start("n1") // it has no majority, but it is there
	_, said, code := force()
	if code != int(exitRefused) || !strings.Contains(said, "node n1 at") {
		t.Errorf("another node runs: exit %d: %s", code, said)
	}
	if said, code := c.kuji(ctx, "verify", "--data", of("n1")); code != int(exitRefused) || !strings.Contains(said, "node n1 runs") {
		t.Errorf("verify a node that runs: exit %d: %s", code, said)
	}
	c.stopAll()

	var reads sync.WaitGroup
	reads.Go(func() {
		if said, code := c.kuji(ctx, "verify", "--strict", "--data", of("n1"), "--cluster-key", c.flags.keyFile); code != 0 || !strings.Contains(said, "what node n1 of cluster shop has kept") {
			t.Errorf("verify what a node has kept: exit %d: %s", code, said)
		}
	})
	reads.Go(func() {
		backup := filepath.Join(c.dir, "backup-of-n2")
		if said, code := c.kuji(ctx, "backup", "--data", of("n2"), "--to", backup); code != 0 || !strings.Contains(said, "state ") {
			t.Errorf("back up what a node has kept: exit %d: %s", code, said)
		}
	})
	found, said, code := force()
	reads.Wait()
	if code != int(exitRefused) || found.Confirm == "" || len(found.Lost) != 2 || len(found.Realms) != 1 || found.Realms[0].LastTime == "" {
		t.Fatalf("force-new, not confirmed: exit %d: %s", code, said)
	}
	there := maps.Clone(had)
	maps.DeleteFunc(there, func(_ string, r *kujiv1.Result) bool { return r.GetReceipt().GetPosition() > found.Realms[0].Position })
	if len(there) == 0 {
		t.Fatalf("position %d of %d answers", found.Realms[0].Position, len(had))
	}
	if _, said, code := force("--cluster", "shop"); code != int(exitRefused) || !strings.Contains(said, "the old cluster's name") {
		t.Errorf("the name of the old cluster: exit %d: %s", code, said)
	}

	end := n.keep(ctx, "n1", "n2")
	done, said, code := force("--confirm", found.Confirm)
	if code != 0 || done.Confirm != "" {
		t.Fatalf("force-new, confirmed: exit %d: %s", code, said)
	}
	end()
	for _, old := range []struct{ name, cluster, says string }{
		{"n1", "shop-2", "belongs to node n1 of cluster shop"},
		{"n3", "shop-2", "cluster shop-2 was made of what node n3"},
		{"n3", "shop", "cluster shop-2 was made of what node n3"},
	} {
		args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, n.as(old.name), []string{"--cluster", old.cluster, "--data", of(old.name)})
		if said, code := c.kuji(ctx, args...); code != int(exitRefused) || !strings.Contains(said, old.says) {
			t.Errorf("node %s comes back to cluster %s with its old directory: exit %d: %s", old.name, old.cluster, code, said)
		}
	}
	n.serves(ctx, there)
}
