//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/pgtest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestLossIsNeverServed: a database fails over to a standby that lacks acknowledged draws. One of three nodes
// remembers them, and the two others are new. Nobody leads the realm until an operator accepts the loss.
// Then what was there before is answered as it was, and the verifier proves it.
func TestLossIsNeverServed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes and two databases")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	primary := pgtest.Start(t, pgtest.Options{TCP: true})
	standby := pgtest.Standby(t, primary, "late", pgtest.Options{TCP: true})
	c := designTrio(t)
	store := primary.URL(primary.Address(), standby.Address())
	c.store = map[string]string{}
	for _, name := range c.flags.Names() {
		c.store[name] = store
		c.start(name)
	}
	leader := c.settled(ctx)
	if _, err := c.client(leader).admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	draw := func(id string) *kujiv1.Result {
		t.Helper()
		r, err := c.draw(ctx, id, len(id))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := map[string]uint64{}
	for i := range 10 {
		id := fmt.Sprint("before-", i)
		before[id] = draw(id).GetReceipt().GetPosition()
	}
	for _, err := range []error{standby.CatchUp(ctx), standby.Pause(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	newest := uint64(0)
	for i := range 10 {
		newest = draw(fmt.Sprint("lost-", i)).GetReceipt().GetPosition()
	}
	for c.peers.Ask(ctx, "n3").Positions[server.DefaultRealm] < newest { // it may follow
		moment()
	}
	for _, name := range c.flags.Names() {
		_ = c.running[name].Kill()
		_ = c.running[name].wait()
		delete(c.running, name)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n1", "n2"} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{standby.Resume(), standby.Promote(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c.start("n3")
	c.start("n1")
	c.start("n2")
	known := func() (all []string) {
		for _, name := range c.flags.Names() {
			s := c.peers.Ask(ctx, name)
			if slices.Contains(s.Leads, server.DefaultRealm) {
				t.Fatalf("node %s leads a realm that has lost acknowledged draws", name)
			}
			if len(s.Losses) > 0 {
				all = append(all, name)
			}
		}
		return all
	}
	for len(known()) < 3 {
		if ctx.Err() != nil {
			t.Fatalf("only %v know of the loss", known())
		}
		moment()
	}
	said, code := c.kuji(ctx, "cluster", "status", "--cluster", "shop", "--cluster-key", c.flags.keyFile, "--store", store)
	if code == 0 || !strings.Contains(said, "Realm default has lost entries, as node n3 knows") {
		t.Errorf("cluster status: exit %d: %s", code, said)
	}
	short, cut := context.WithTimeout(ctx, 3*time.Second)
	defer cut()
	if p, err := c.client("n3").rewards.GetPlayer(short, &kujiv1.GetPlayerRequest{Player: "ann"}); err == nil {
		t.Errorf("a player is served from a log that was cut: %v", p)
	}
	accept := func(word string) (lossJSON, string, int) {
		args := []string{"cluster", "accept-loss", "default", "--json", "--cluster", "shop", "--cluster-key", c.flags.keyFile, "--store", store}
		if word != "" {
			args = append(args, "--confirm", word)
		}
		said, code := c.kuji(ctx, args...)
		var loss lossJSON
		_ = json.NewDecoder(strings.NewReader(said)).Decode(&loss) // the error after it is another object
		return loss, said, code
	}
	loss, said, code := accept("")
	if code != 3 || loss.Known != loss.Last+10 || loss.Confirm == "" {
		t.Fatalf("accept-loss: exit %d, %+v: %s", code, loss, said)
	}
	if _, said, code := accept("wrong"); code != 3 || !strings.Contains(said, "what is lost is something else") {
		t.Errorf("accept-loss with another word: exit %d: %s", code, said)
	}
	known()
	if _, said, code := accept(loss.Confirm); code != 0 {
		t.Fatalf("accept-loss: exit %d: %s", code, said)
	}
	c.settled(ctx)
	for id, position := range before {
		if now := draw(id).GetReceipt().GetPosition(); now != position {
			t.Errorf("draw %s was answered at %d, and now at %d", id, position, now)
		}
	}
	for i := range 10 {
		draw(fmt.Sprint("after-", i))
	}
	if said, code := c.kuji(ctx, "verify", "--strict", "--cluster", "shop", "--cluster-key", c.flags.keyFile, "--store", store); code != 0 {
		t.Errorf("verify: exit %d: %s", code, said)
	}
	c.stopAll()
	c.start("n3") // with a mark of before
	for !slices.Contains(c.peers.Ask(ctx, "n3").Leads, server.DefaultRealm) {
		if ctx.Err() != nil {
			t.Fatal("a node that has accepted a loss does not lead later")
		}
		moment()
	}
	c.stopAll()
}
