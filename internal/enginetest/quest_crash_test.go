package enginetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// questRequests move counters of every form and claim quests, alone, in groups, and by themselves. All of them
// succeed, and what they give depends on no chance.
func questRequests() (all []kuji.Request) {
	add := func(make func(id string) kuji.Request) { all = append(all, make(fmt.Sprint("q", len(all)))) }
	for _, player := range []string{"ann", "bob"} {
		add(func(id string) kuji.Request {
			return kuji.Grant{ID: id, Player: player, Items: []kuji.Stack{{Item: "ore", Quantity: 9}, {Item: "licence", Quantity: 1}, {Item: "gem", Quantity: 2}}}
		})
		for _, key := range []string{"a", "b", "a", "c"} {
			add(func(id string) kuji.Request { return kuji.Progress{ID: id, Player: player, Event: "boss", Key: key} })
		}
		add(func(id string) kuji.Request { return kuji.Progress{ID: id, Player: player, Event: "wins", N: 4} })
		add(func(id string) kuji.Request {
			return kuji.Atomic{ID: id, Members: []kuji.Request{
				kuji.Draw{Player: player, Pool: "sell-ore", Count: 3}, kuji.Claim{Player: player, Quest: "salesman"},
				kuji.Progress{Player: player, Event: "wins"}, kuji.Progress{Player: player, Event: "damage", N: 600},
			}}
		})
		add(func(id string) kuji.Request { return kuji.Claim{ID: id, Player: player, Quest: "hunter"} })
		add(func(id string) kuji.Request { return kuji.Draw{ID: id, Player: player, Pool: "daily"} })
		add(func(id string) kuji.Request {
			return kuji.Consume{ID: id, Player: player, Items: []kuji.Stack{{Item: "ore", Quantity: 2}}}
		})
		add(func(id string) kuji.Request {
			return kuji.SetCounter{ID: id, Player: player, Counter: "best", Value: 50, Note: kuji.Note{Reason: "ticket"}}
		})
	}
	return all
}

// standing is all that quests and counters have made of a realm.
func standing(t *testing.T, r *kuji.Realm) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, player := range []string{"ann", "bob"} {
		v, err := r.Player(t.Context(), player)
		if err != nil {
			t.Fatal(err)
		}
		all[player] = []any{v.Items, v.Counters, v.Quests}
	}
	return all
}

// TestQuestsThroughCrashes: however often the power is cut, at every write, with a snapshot in between: who asks
// again until there is an answer has every counter moved once, and every tier claimed once.
func TestQuestsThroughCrashes(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	options := func(disk *vfs.Mem) worldOptions {
		return worldOptions{FS: disk, SegmentSize: 8 << 10, TrimLog: true, Now: now.Now}
	}
	reqs := questRequests()
	session := func(disk *vfs.Mem, snapshots bool) (e *kuji.Engine, r *kuji.Realm, err error) { // until the power is cut
		if e, err = openWorld("data", options(disk)); err != nil {
			return nil, nil, err
		}
		if r, err = e.Realm("test"); err != nil {
			return e, nil, err
		}
		if _, err = r.Apply(t.Context(), parse(t, questCatalog)); err != nil {
			return e, r, err
		}
		for i, req := range reqs {
			res, err := r.Do(t.Context(), req)
			if err != nil {
				return e, r, err
			}
			if res.Status != kuji.OK {
				t.Fatalf("%+v: %v", req, res)
			}
			if snapshots && i%8 == 5 {
				if _, err := r.Snapshot(t.Context()); err != nil {
					return e, r, err
				}
			}
		}
		return e, r, nil
	}
	dry := vfs.NewMem()
	e, r, err := session(dry, true)
	if err != nil {
		t.Fatal(err)
	}
	want := standing(t, r)
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
			if err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
			if got := standing(t, r); !reflect.DeepEqual(got, want) {
				t.Fatalf("power cut before step %d: %+v, want %+v", step, got, want)
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

// TestQuestsFollowed: a follower has the counters and claims of its leader. When it leads, it goes on with them,
// gives the first answers again, and the verifier decides all of it again.
func TestQuestsFollowed(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	s := drivertest.NewShared(drivertest.SharedOptions{})
	options := kuji.Options{Now: now.Now}
	_, leader := openAt(t, s, 1, options)
	if _, err := leader.Apply(t.Context(), parse(t, questCatalog)); err != nil {
		t.Fatal(err)
	}
	options.Follow = true
	e, follower := openAt(t, s, 2, options)
	reqs := questRequests()
	var first []kuji.Result
	for i, req := range reqs {
		first = append(first, do(t, leader, req))
		if i == len(reqs)/2 {
			snapshot(t, leader)
		}
	}
	sameState(t, follower, leader)
	want := standing(t, leader)
	if err := follower.Replica().Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standing(t, follower); !reflect.DeepEqual(got, want) {
		t.Errorf("the follower has %+v, want %+v", got, want)
	}
	for i, req := range reqs {
		again := do(t, follower, req)
		if !again.Replayed || !reflect.DeepEqual(again.Claims(), first[i].Claims()) || fmt.Sprint(again.Members) != fmt.Sprint(first[i].Members) {
			t.Errorf("%+v again: %+v, was %+v", req, again, first[i])
		}
	}
	if res := do(t, follower, kuji.Claim{Player: "ann", Quest: "salesman"}); res.Status != kuji.AlreadyClaimed {
		t.Errorf("a claim after the takeover: %v", res)
	}
	now.Add(7 * 24 * time.Hour)
	if res := do(t, follower, kuji.Claim{Player: "ann", Quest: "salesman"}); res.Status != kuji.NotReached {
		t.Errorf("a claim in the next week: %v", res)
	}
	do(t, follower, kuji.Draw{Player: "ann", Pool: "sell-ore", Count: 3})
	if res := do(t, follower, kuji.Claim{Player: "ann", Quest: "salesman"}); res.Status != kuji.OK || len(res.Claims()) != 1 {
		t.Errorf("a claim in the next week: %v", res)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	claimed := map[string]int{}
	rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}, Seen: func(rec kuji.Record) {
		for _, r := range append([]kuji.Record{rec}, rec.Members...) {
			for _, c := range r.Claims {
				claimed[fmt.Sprint(c.Quest, c.Tier)]++
			}
		}
	}})
	if err != nil || len(rep.Epochs) != 2 {
		t.Errorf("%+v: %v", rep, err)
	}
	if want := map[string]int{"salesman1": 3, "hunter1": 2, "hunter2": 2, "winner1": 2, "after1": 2, "giant1": 1}; !reflect.DeepEqual(claimed, want) {
		t.Errorf("the log has these claims: %v, want %v", claimed, want)
	}
}

// TestClaimsOfSubmit: Submit tells what was claimed, and a transfer tells whose quests it has reached.
func TestClaimsOfSubmit(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, `
kuji: 1
items: {gold: {}, pass: {}}
counters: {wins: {}}
quests:
  once: {reward: {items: {gold: 5}}}
  pass: {claim: automatic, when: {holds: {pass: 1}}, reward: {items: {gold: 7}}}
  none: {claim: automatic, needs: {wins: 1}, when: {lacks: [pass]}, reward: {items: {gold: 9}}}
`)
	submit := func(req kuji.Request) kuji.Result {
		t.Helper()
		told := make(chan kuji.Result, 1)
		r.Submit(req, func(res kuji.Result, err error) {
			if err != nil || res.Status != kuji.OK {
				t.Errorf("%+v: %v, %v", req, res, err)
			}
			told <- res
		})
		return <-told
	}
	gold := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "gold", Quantity: n}} }
	pass := []kuji.Stack{{Item: "pass", Quantity: 1}}
	for _, step := range []struct {
		req  kuji.Request
		want []kuji.Claimed
	}{
		{kuji.Claim{ID: "1", Player: "ann", Quest: "once"}, []kuji.Claimed{{Quest: "once", Tier: 1, Items: gold(5)}}},
		{kuji.Grant{ID: "2", Player: "ann", Items: pass}, []kuji.Claimed{{Quest: "pass", Tier: 1, Items: gold(7)}}},
		{kuji.Progress{ID: "3", Player: "ann", Event: "wins"}, nil},
		{kuji.Transfer{ID: "4", From: "ann", To: "bob", Items: pass},
			[]kuji.Claimed{{Quest: "none", Tier: 1, Player: "ann", Items: gold(9)}, {Quest: "pass", Tier: 1, Player: "bob", Items: gold(7)}}},
	} {
		for _, res := range []kuji.Result{submit(step.req), submit(step.req), do(t, r, step.req)} {
			if !reflect.DeepEqual(res.Claims(), step.want) {
				t.Errorf("%+v claims %+v, want %+v", step.req, res.Claims(), step.want)
			}
		}
	}
}
