package server_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const rankCatalog = `
kuji: 1
items: {coin: {}}
pools: {a: {entries: [{id: e, weight: 1}]}}
counters:
  points: {per: day, ranked: {rewards: [{to: 1, reward: {items: {coin: 100}}}, {to: 3, reward: {items: {coin: 10}}}]}}
  all: {of: {progress: points}, ranked: true}
  wins: {}
`

// rankRealm is a realm whose players have 30, 20, 20, 10 and 5 points.
func rankRealm(t *testing.T, f *fixture, name string) *kuji.Realm {
	t.Helper()
	r := applyTo(t, f, name, rankCatalog)
	for _, p := range []struct {
		player string
		n      uint64
	}{{"dan", 10}, {"bob", 20}, {"cat", 20}, {"eve", 5}, {"ann", 30}} {
		if _, err := r.Do(t.Context(), kuji.Progress{Player: p.player, Event: "points", N: p.n}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestRanks: a standing is read from a rank on and around a player, while it runs and after it ended, by each
// protocol. What it cannot be asked for is named as the request names it.
func TestRanks(t *testing.T) {
	ahead := atomic.Int64{}
	now := func() time.Time { return time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).Add(time.Duration(ahead.Load())) }
	f := startWith(t, kuji.Options{Sync: kuji.SyncNone, Now: now}, server.Options{})
	all := []*kujiv1.Rank{{Rank: 1, Player: "ann", Value: 30}, {Rank: 2, Player: "bob", Value: 20}, {Rank: 3, Player: "cat", Value: 20},
		{Rank: 4, Player: "dan", Value: 10}, {Rank: 5, Player: "eve", Value: 5}}
	midnight := time.Date(2027, 1, 16, 0, 0, 0, 0, time.UTC).UnixMilli()
	rankRealm(t, f, "ranks")
	check := func(c *client, req *kujiv1.ListRanksRequest, of uint64, ends int64, want []*kujiv1.Rank) {
		t.Helper()
		req.Realm = "ranks"
		got, err := c.reward.ListRanks(t.Context(), req)
		if err != nil {
			t.Errorf("%s: %v: %v", c.name, req, err)
			return
		}
		if d := cmp.Diff(want, got.GetRanks(), protocmp.Transform()); d != "" || got.GetRankCount() != of || got.GetEndsUnixMs() != ends || got.GetPosition() == 0 {
			t.Errorf("%s: %v gives %v; ranks - wanted, + got:\n%s", c.name, req, got, d)
		}
	}
	both := clients(t, f.url)
	for i := range both {
		c := &both[i]
		check(c, &kujiv1.ListRanksRequest{Counter: "points"}, 5, midnight, all)
		check(c, &kujiv1.ListRanksRequest{Counter: "all", RankFrom: 2, RankLimit: 2}, 5, 0, all[1:3])
		check(c, &kujiv1.ListRanksRequest{Counter: "points", RankFrom: 6}, 5, midnight, nil)
		check(c, &kujiv1.ListRanksRequest{Counter: "points", Around: "dan", RankLimit: 3}, 5, midnight, all[2:])
		check(c, &kujiv1.ListRanksRequest{Counter: "points", Ended: true}, 0, 0, nil)
		for _, wrong := range []struct {
			req   *kujiv1.ListRanksRequest
			code  connect.Code
			field string
		}{
			{&kujiv1.ListRanksRequest{Counter: "none"}, connect.CodeNotFound, "counter"},
			{&kujiv1.ListRanksRequest{Counter: "wins"}, connect.CodeInvalidArgument, "counter"},
			{&kujiv1.ListRanksRequest{Counter: "points", Around: "zoe"}, connect.CodeNotFound, "around"},
			{&kujiv1.ListRanksRequest{Counter: "points", Around: "ann", RankFrom: 2}, connect.CodeInvalidArgument, "rank_from"},
			{&kujiv1.ListRanksRequest{Counter: "points", RankLimit: 1001}, connect.CodeInvalidArgument, "rank_limit"},
		} {
			wrong.req.Realm = "ranks"
			_, err := c.reward.ListRanks(t.Context(), wrong.req)
			if connect.CodeOf(err) != wrong.code {
				t.Errorf("%s: %v: %v, want %s", c.name, wrong.req, err, wrong.code)
				continue
			}
			if v := detail(t, err).GetViolations(); len(v) != 1 || v[0].GetField() != wrong.field {
				t.Errorf("%s: %v: %v, want field %s", c.name, wrong.req, v, wrong.field)
			}
		}
	}
	ahead.Store(int64(24 * time.Hour))
	c := &both[0]
	if _, err := c.reward.Progress(t.Context(), &kujiv1.ProgressRequest{Realm: "ranks", Player: "eve", Event: "points", N: 50}); err != nil {
		t.Fatal(err)
	}
	for i := range both {
		c := &both[i]
		check(c, &kujiv1.ListRanksRequest{Counter: "points", Ended: true}, 5, 0, all)
		check(c, &kujiv1.ListRanksRequest{Counter: "points"}, 1, midnight+int64(24*time.Hour/time.Millisecond), []*kujiv1.Rank{{Rank: 1, Player: "eve", Value: 50}})
		check(c, &kujiv1.ListRanksRequest{Counter: "all"}, 5, 0, append([]*kujiv1.Rank{{Rank: 1, Player: "eve", Value: 55}},
			&kujiv1.Rank{Rank: 2, Player: "ann", Value: 30}, &kujiv1.Rank{Rank: 3, Player: "bob", Value: 20}, &kujiv1.Rank{Rank: 4, Player: "cat", Value: 20}, &kujiv1.Rank{Rank: 5, Player: "dan", Value: 10}))
		for player, coins := range map[string]uint64{"ann": 100, "bob": 10, "cat": 10, "dan": 0, "eve": 0} {
			got, err := c.reward.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Realm: "ranks", Player: player})
			if err != nil {
				t.Fatal(err)
			}
			if have := quantityOf(got.GetPlayer().GetItems(), "coin"); have != coins {
				t.Errorf("%s: %s has %d coins for the rank, want %d", c.name, player, have, coins)
			}
		}
	}
}

func quantityOf(items []*kujiv1.Stack, item string) (n uint64) {
	for _, st := range items {
		if st.GetItem() == item {
			n += st.GetQuantity()
		}
	}
	return n
}

// TestRedisRanks: RANKS reads the same standing.
func TestRedisRanks(t *testing.T) {
	f := newServer(t, server.Options{})
	rankRealm(t, f, "ranks")
	c := dialRaw(t, startRedis(t, f))
	c.ask("HELLO 3")
	c.ask("REALM ranks")
	rank := func(n int64, player string, value int64) dict {
		return dict{"rank": n, "player": player, "value": value}
	}
	play(t, c, redisSteps{
		{"RANKS all FROM 4", dict{"ranks": []any{rank(4, "dan", 10), rank(5, "eve", 5)}, "rank_count": int64(5)}},
		{"ranks all limit 2 around ann", dict{"ranks": []any{rank(1, "ann", 30), rank(2, "bob", 20)}, "rank_count": int64(5)}},
		{"RANKS points ENDED", dict{}},
		{"RANKS none", errors.New("NOTFOUND counter: ")},
		{"RANKS wins", errors.New("INVALID counter: ")},
		{"RANKS all AROUND zoe", errors.New("NOTFOUND around: ")},
		{"RANKS all AROUND ann FROM 2", errors.New("INVALID rank_from: ")},
		{"RANKS all FROM 0", errors.New(`INVALID FROM: "0", want a whole number from 1 `)},
		{"RANKS all LIMIT 1001", errors.New(`INVALID LIMIT: "1001", want a whole number from 1 to 1000`)},
		{"RANKS all ENDED ENDED", errors.New("INVALID ENDED: twice")},
		{"RANKS", errors.New("INVALID 0 arguments, want RANKS counter [AROUND player] [FROM n] [LIMIT n] [ENDED]")},
	})
}
