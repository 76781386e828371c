package enginetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const identityCatalog = `
kuji: 1
items: {coin: {kind: currency}, box: {}}
pools: {p: {price: {coin: 1}, limits: [{per: day, draws: 5}], entries: [{id: a, weight: 1, reward: {items: {box: 1}}}]}}
rounds: {gamble: {stake: {item: coin, count: {min: 1, max: 50}}, entrants: {min: 2, max: 4}, winner: {gets: everything}}}
`

func coins(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "coin", Quantity: n}} }

// throughCrashes asks for requests that all succeed, cuts the power before each write, asks again, and calls check with
// what the realm has become. The verifier decides it all again.
func throughCrashes(t *testing.T, yaml string, reqs []kuji.Request, check func(r *kuji.Realm) error) {
	t.Helper()
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, yaml)); err != nil {
			return e, r, err
		}
		for i, req := range reqs {
			res, err := r.Do(t.Context(), req)
			if err != nil {
				return e, r, err
			}
			if res.Status != kuji.OK && res.Status != kuji.Forgotten {
				t.Fatalf("%+v: %v", req, res)
			}
			if snapshots && i%4 == 3 {
				if _, err := r.Snapshot(t.Context()); err != nil {
					return e, r, err
				}
			}
		}
		return e, r, nil
	}
	dry := vfs.NewMem()
	e, r, err := session(dry, true)
	if err == nil {
		err = check(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, steps := dry.Ops()
	stride := int64(1)
	if testing.Short() {
		stride = 7
	}
	for step := int64(0); step < steps; step += stride {
		disk := vfs.NewMem()
		disk.CutPowerAfter(step)
		if e, _, err := session(disk, true); e != nil && err != nil {
			_ = e.Close()
		}
		for crashed := range disk.CrashSamples(1, uint64(step), false) {
			e, r, err := session(crashed, false)
			if err == nil {
				err = check(r)
			}
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
}

// TestLinksThroughCrashes: however often the power is cut, each name is linked once, and leads to its player.
func TestLinksThroughCrashes(t *testing.T) {
	reqs := []kuji.Request{
		kuji.Grant{ID: "1", Player: "ann", Items: coins(40)},
		kuji.LinkCode{ID: "2", Player: "ann", Code: "K7QM-3XPD"},
		kuji.Link{ID: "3", Player: "twitch:1", Code: "k7qm3xpd"},
		kuji.Draw{ID: "4", Player: "twitch:1", Pool: "p"},
		kuji.Link{ID: "5", Player: "discord:1", To: "twitch:1"},
		kuji.Grant{ID: "6", Player: "discord:1", Items: coins(5)},
		kuji.Unlink{ID: "7", Player: "twitch:1"},
		kuji.Grant{ID: "8", Player: "twitch:1", Items: coins(1)},
		kuji.Block{ID: "9", Player: "discord:1", Note: kuji.Note{Reason: "bots"}},
	}
	throughCrashes(t, identityCatalog, reqs, func(r *kuji.Realm) error {
		v, err := r.Player(t.Context(), "discord:1")
		if err != nil {
			return err
		}
		alone, err := r.Player(t.Context(), "twitch:1")
		got := fmt.Sprintf("%v %v %v %v %v %v", v.ID, v.Items, v.Aliases, v.Blocked, alone.ID, alone.Items)
		if want := "ann [{coin 44} {box 1}] [{discord:1 false}] bots twitch:1 [{coin 1}]"; got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return err
	})
}

// TestAliasesInRequests: a request by another name is the player's, and its repeat has the same answer; a display name in
// another case is nobody's name.
func TestAliasesInRequests(t *testing.T) {
	r := realmAt(t, handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)), identityCatalog)
	do(t, r, kuji.Grant{Player: "ann", Items: coins(9)})
	do(t, r, kuji.Link{Player: "Twitch:One", To: "ann"})
	for i := range 3 {
		if res := do(t, r, kuji.Draw{ID: "d", Player: "Twitch:One", Pool: "p"}); res.Status != kuji.OK || res.Replayed != (i > 0) {
			t.Errorf("repeat %d: %v", i, res)
		}
	}
	if res := do(t, r, kuji.Draw{ID: "d", Player: "ann", Pool: "p"}); !res.Replayed {
		t.Errorf("the player itself: %v", res)
	}
	if _, err := r.Do(t.Context(), kuji.Draw{ID: "d", Player: "twitch:one", Pool: "p"}); kuji.CodeOf(err) != kuji.CodeIDReused {
		t.Errorf("another name: %v", err)
	}
	if n, err := r.Balance(t.Context(), "Twitch:One", "box"); n != 1 || err != nil {
		t.Errorf("%d boxes: %v", n, err)
	}
	if _, err := r.Player(t.Context(), "twitch:one"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("another case: %v", err)
	}
}

// TestMergesThroughCrashes: 40 and 60 are 100 and 0, however often the power is cut and whoever asks again, in the middle
// of a round and of what falls due.
func TestMergesThroughCrashes(t *testing.T) {
	reqs := []kuji.Request{
		kuji.Grant{ID: "1", Player: "ann", Items: coins(40)},
		kuji.Grant{ID: "2", Player: "bob", Items: coins(60)},
		kuji.Link{ID: "3", Player: "twitch:bob", To: "bob"},
		kuji.OpenRound{ID: "4", Player: "twitch:bob", Round: "gamble", Stake: coins(10)},
		kuji.LinkCode{ID: "5", Player: "bob", Code: "K7QM-3XPD"},
	}
	for range 5 {
		reqs = append(reqs, kuji.Merge{ID: "6", Player: "ann", From: "bob"})
	}
	reqs = append(reqs, kuji.CancelRound{ID: "7", Round: "gamble"}, kuji.OpenRound{ID: "4", Player: "twitch:bob", Round: "gamble", Stake: coins(10)})
	throughCrashes(t, identityCatalog, reqs, func(r *kuji.Realm) error {
		got := ""
		for _, name := range []string{"ann", "bob", "twitch:bob"} {
			v, err := r.Player(t.Context(), name)
			if err != nil {
				return err
			}
			got += fmt.Sprintln(v.ID, v.Items, v.Held, v.Aliases)
		}
		if want := strings.Repeat("ann [{coin 100}] [] [{bob true} {twitch:bob false}]\n", 3); got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

// TestForgetsThroughCrashes: who is forgotten is gone, however often the power is cut and whoever asks again. Nobody else
// loses anything.
func TestForgetsThroughCrashes(t *testing.T) {
	reqs := []kuji.Request{
		kuji.Grant{ID: "1", Player: "ann", Items: coins(40)},
		kuji.Grant{ID: "2", Player: "secret-bob", Items: coins(60)},
		kuji.Link{ID: "3", Player: "twitch:secret", To: "secret-bob"},
		kuji.OpenRound{ID: "4", Player: "ann", Round: "gamble", Stake: coins(10)},
		kuji.Join{ID: "5", Player: "twitch:secret", Round: "gamble", Stake: coins(20)},
		kuji.Draw{ID: "6", Player: "secret-bob", Pool: "p"},
		kuji.Transfer{ID: "7", From: "secret-bob", To: "ann", Items: coins(9)},
	}
	for range 3 {
		reqs = append(reqs, kuji.Forget{ID: "8", Player: "twitch:secret"})
	}
	reqs = append(reqs, kuji.Draw{ID: "6", Player: "secret-bob", Pool: "p"}, kuji.Transfer{ID: "7", From: "secret-bob", To: "ann", Items: coins(9)},
		kuji.CancelRound{ID: "9", Round: "gamble"})
	throughCrashes(t, identityCatalog, reqs, func(r *kuji.Realm) error {
		v, err := r.Player(t.Context(), "ann")
		if err != nil {
			return err
		}
		if got := fmt.Sprint(v.Items, v.Held); got != "[{coin 49}] []" {
			return fmt.Errorf("ann has %s", got)
		}
		for _, name := range []string{"secret-bob", "twitch:secret"} {
			if v, err := r.Player(t.Context(), name); kuji.CodeOf(err) != kuji.CodeNotFound {
				return fmt.Errorf("%s has %+v: %w", name, v, err)
			}
		}
		for _, id := range []string{"6", "7", "8"} {
			if l, err := r.Result(t.Context(), id); err != nil || l.Result.Status != kuji.Forgotten || l.Player != "" {
				return fmt.Errorf("request %s: %+v, %w", id, l, err)
			}
		}
		return nil
	})
}

// TestForgottenInFiles: after a Forget both series of snapshots are written again, without the name, and the log is
// trimmed. The feed says who was forgotten.
func TestForgottenInFiles(t *testing.T) {
	dir := t.TempDir()
	e, err := kuji.Open(dir, kuji.Options{SegmentSize: 8 << 10, TrimLog: true, SnapshotEvery: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, identityCatalog)); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Grant{ID: "1", Player: "secret-bob", Items: coins(60)})
	snapshot(t, r)
	fill := func(n int) {
		for i := range n {
			do(t, r, kuji.Grant{Player: fmt.Sprint("p", i), Items: coins(1), Note: kuji.Note{Metadata: strings.Repeat("x", 1000)}})
		}
	}
	fill(3)
	snapshot(t, r)
	at := do(t, r, kuji.Forget{ID: "2", Player: "secret-bob", Note: kuji.Note{Reason: "the player asked"}}).Receipt.Position
	for rec, err := range r.Feed().Events(t.Context(), at) {
		if err != nil || rec.Kind != "forget" || rec.Player != "secret-bob" || len(rec.Changes) != 1 {
			t.Errorf("%+v: %v", rec, err)
		}
		break
	}
	for range 4 {
		fill(10)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || bytes.Contains(data, []byte("secret-bob")) {
			t.Errorf("%s has the name: %v", name, err)
		}
		return nil
	})
	e, err = kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	if res := do(t, r, kuji.Grant{ID: "1", Player: "secret-bob", Items: coins(60)}); res.Status != kuji.Forgotten || !res.Replayed {
		t.Errorf("the request of before: %v", res)
	}
}
