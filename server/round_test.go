package server_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const roundCatalog = `
kuji: 1
items: {coin: {kind: currency}, gem: {}, key: {}}
rounds:
  prize: {ticket: {}, winner: {reward: {items: {key: 1}}, rerolls: {most: 1, within: 1h}}}
  lottery: {ticket: {price: {coin: 2}, most: 10}, one: true, winner: {reward: {items: {key: 1}}}}
  crowd: {ticket: {}, winners: {count: 100, reward: {items: {key: 1, gem: 1}}}}
  short: {stake: {item: gem}, open: 1m, winner: {gets: everything}}
  duel: {stake: {item: gem, count: {min: 1, max: 5}, same: true}, winner: {gets: everything}}
`

// roundRealm is a realm of a server with the catalog above, whose players have 100 coins and 10 gems each.
func roundRealm(t testing.TB, f *fixture, name string, players ...string) *kuji.Realm {
	t.Helper()
	r := applyTo(t, f, name, roundCatalog)
	for _, p := range players {
		if _, err := r.Do(t.Context(), kuji.Grant{Player: p, Items: []kuji.Stack{{Item: "coin", Quantity: 100}, {Item: "gem", Quantity: 10}}}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// plain is a message in plain form, without its receipt and times.
func plain(m proto.Message) string {
	switch m := m.(type) {
	case *kujiv1.Result:
		m.Receipt = nil
	case *kujiv1.GetRoundResponse:
		m.GetRound().OpenedUnixMs, m.GetRound().UntilUnixMs = 0, 0
	case *kujiv1.ListRoundsResponse:
		for _, r := range m.GetRounds() {
			r.OpenedUnixMs = 0
		}
	}
	return string(contract.Form{Stacks: true}.AppendJSON(nil, m))
}

// roundClient is a client in a realm, whose calls must not fail.
type roundClient struct {
	t     *testing.T
	c     client
	realm string
}

func (c *roundClient) result(res interface{ GetResult() *kujiv1.Result }, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return plain(res.GetResult())
}

func (c *roundClient) open(id, round, player string, tickets uint64, stake ...*kujiv1.Stack) string {
	c.t.Helper()
	return c.result(c.c.reward.OpenRound(c.t.Context(), &kujiv1.OpenRoundRequest{Realm: c.realm, RequestId: id, Round: round, Player: player, Tickets: tickets, Stake: stake}))
}

func (c *roundClient) join(id, player, round string, number, tickets uint64, stake ...*kujiv1.Stack) string {
	c.t.Helper()
	return c.result(c.c.reward.Join(c.t.Context(), &kujiv1.JoinRequest{Realm: c.realm, RequestId: id, Player: player, Round: round, Number: number, Tickets: tickets, Stake: stake}))
}

func (c *roundClient) settle(id, round string, number uint64) string {
	c.t.Helper()
	return c.result(c.c.reward.Settle(c.t.Context(), &kujiv1.SettleRequest{Realm: c.realm, RequestId: id, Round: round, Number: number, Reason: "it is time"}))
}

func (c *roundClient) reroll(id, round string, number uint64) string {
	c.t.Helper()
	return c.result(c.c.reward.Reroll(c.t.Context(), &kujiv1.RerollRequest{Realm: c.realm, RequestId: id, Round: round, Number: number}))
}

func (c *roundClient) cancel(id, round string, number uint64) string {
	c.t.Helper()
	return c.result(c.c.reward.CancelRound(c.t.Context(), &kujiv1.CancelRoundRequest{Realm: c.realm, RequestId: id, Round: round, Number: number}))
}

func (c *roundClient) get(number uint64) string {
	c.t.Helper()
	got, err := c.c.reward.GetRound(c.t.Context(), &kujiv1.GetRoundRequest{Realm: c.realm, Number: number})
	if err != nil {
		c.t.Fatal(err)
	}
	return plain(got)
}

func (c *roundClient) list() string {
	c.t.Helper()
	got, err := c.c.reward.ListRounds(c.t.Context(), &kujiv1.ListRoundsRequest{Realm: c.realm})
	if err != nil {
		c.t.Fatal(err)
	}
	return plain(got)
}

func (c *roundClient) player(id string) string {
	c.t.Helper()
	got, err := c.c.reward.GetPlayer(c.t.Context(), &kujiv1.GetPlayerRequest{Realm: c.realm, Player: id})
	if err != nil {
		c.t.Fatal(err)
	}
	got.Player.Position = 0
	return plain(got.GetPlayer())
}

// TestRounds plays rounds by each protocol. Each request is sent twice, and happens once.
func TestRounds(t *testing.T) {
	f := start(t, server.Options{})
	gems := func(n uint64) *kujiv1.Stack { return &kujiv1.Stack{Item: "gem", Quantity: n} }
	for i, named := range clients(t, f.url) {
		t.Run(named.name, func(t *testing.T) {
			c := &roundClient{t, named, fmt.Sprint("rounds-", i)}
			roundRealm(t, f, c.realm, "ann", "bob")
			for _, step := range []struct {
				what string
				do   func(id string) string
				want string
			}{
				{"open a duel", func(id string) string { return c.open(id, "duel", "ann", 0, gems(2)) },
					`{"status":"ok","round":{"round":"duel","number":1,"state":"open","entrants":1,"tickets":1}}`},
				{"join with nothing named", func(id string) string { return c.join(id, "bob", "duel", 0, 0) },
					`{"status":"ok","round":{"round":"duel","number":1,"state":"open","entrants":2,"tickets":2}}`},
				{"join again", func(id string) string { return c.join(id, "bob", "duel", 1, 0, gems(2)) }, `{"status":"already_joined"}`},
				{"open a lottery for nobody", func(id string) string { return c.open(id, "lottery", "", 0) },
					`{"status":"ok","round":{"round":"lottery","number":2,"state":"open"}}`},
				{"open it twice", func(id string) string { return c.open(id, "lottery", "", 0) }, `{"status":"already_open"}`},
				{"buy tickets", func(id string) string { return c.join(id, "ann", "lottery", 2, 3) },
					`{"status":"ok","round":{"round":"lottery","number":2,"state":"open","entrants":1,"tickets":3}}`},
				{"cannot pay", func(id string) string { return c.join(id, "zoe", "lottery", 0, 1) },
					`{"status":"insufficient_items","subject":"coin","lacks":[{"item":"coin","need":2}]}`},
				{"what is open", func(string) string { return c.list() },
					`{"rounds":[{"round":"duel","number":1,"state":"open","entrants":2,"tickets":2,"opener":"ann"},` +
						`{"round":"lottery","number":2,"state":"open","entrants":1,"tickets":3}],"round_count":2}`},
				{"who is in it", func(string) string { return c.get(1) },
					`{"round":{"round":"duel","number":1,"state":"open","entrants":2,"tickets":2,"opener":"ann"},` +
						`"entrants":[{"player":"ann","tickets":1,"held":{"gem":2}},{"player":"bob","tickets":1,"held":{"gem":2}}]}`},
				{"what is held", func(string) string { return c.player("ann") },
					`{"id":"ann","items":{"coin":94,"gem":8},"held":{"coin":6,"gem":2}}`},
				{"cancel the lottery", func(id string) string { return c.cancel(id, "lottery", 0) },
					`{"status":"ok","round":{"round":"lottery","number":2,"state":"returned","entrants":1,"tickets":3}}`},
				{"cancel it again", func(id string) string { return c.cancel(id, "lottery", 2) }, `{"status":"round_closed"}`},
				{"cancel none", func(id string) string { return c.cancel(id, "lottery", 0) }, `{"status":"unknown_round"}`},
				{"all is back", func(string) string { return c.player("ann") }, `{"id":"ann","items":{"coin":100,"gem":8},"held":{"gem":2}}`},
				{"a giveaway", func(id string) string { return c.open(id, "prize", "ann", 1) },
					`{"status":"ok","round":{"round":"prize","number":3,"state":"open","entrants":1,"tickets":1}}`},
				{"draw its winner", func(id string) string { return c.settle(id, "prize", 3) },
					`{"status":"ok","claims":[{"player":"ann","items":{"key":1},"place":1}],` +
						`"round":{"round":"prize","number":3,"state":"settled","entrants":1,"tickets":1,"winners":[{"player":"ann"}]}}`},
				{"draw another one", func(id string) string { return c.reroll(id, "prize", 3) }, `{"status":"nobody_left"}`},
				{"settle what is settled", func(id string) string { return c.settle(id, "prize", 3) }, `{"status":"round_closed"}`},
				{"of another name", func(id string) string { return c.settle(id, "prize", 1) }, `{"status":"unknown_round"}`},
			} {
				id := strings.ReplaceAll(step.what, " ", "-")
				if got := step.do(id); got != step.want {
					t.Fatalf("%s gives\n%s, want\n%s", step.what, got, step.want)
				}
				if got := step.do(id); strings.Replace(got, `,"replayed":true`, "", 1) != step.want || strings.Contains(got, "replayed") != strings.Contains(got, "status") {
					t.Fatalf("%s, again, gives\n%s, want\n%s", step.what, got, step.want)
				}
			}
			settleDuel(t, c)
		})
	}
}

// settleDuel settles the duel of ann and bob, twice.
func settleDuel(t *testing.T, c *roundClient) {
	t.Helper()
	got := c.settle("s", "duel", 0)
	winner, loser := "ann", "bob"
	if strings.Contains(got, `"player":"bob"`) {
		winner, loser = loser, winner
	}
	want := `{"status":"ok","claims":[{"player":"` + winner + `","items":{"gem":4},"place":1}],` +
		`"round":{"round":"duel","number":1,"state":"settled","entrants":2,"tickets":2,"winners":[{"player":"` + winner + `"}]}}`
	if got != want {
		t.Errorf("the duel gives\n%s, want\n%s", got, want)
	}
	if again := c.settle("s", "duel", 0); again != strings.Replace(want, `"claims"`, `"replayed":true,"claims"`, 1) {
		t.Errorf("again, it gives\n%s, want\n%s", again, want)
	}
	for player, gems := range map[string]int{winner: 12, loser: 8} {
		if got := c.player(player); !strings.Contains(got, fmt.Sprintf(`"gem":%d`, gems)) || strings.Contains(got, "held") {
			t.Errorf("%s has %s, want %d gems", player, got, gems)
		}
	}
	if got := c.get(1); got != `{"round":{"round":"duel","number":1,"state":"settled","entrants":2,"tickets":2,"winners":[{"player":"`+winner+`"}],"opener":"ann"}}` {
		t.Errorf("it can be read: %s", got)
	}
	if got := c.list(); got != `{}` {
		t.Errorf("open are %s", got)
	}
}

// TestRoundsWrong: what is malformed or not there is named as the request names it.
func TestRoundsWrong(t *testing.T) {
	f := start(t, server.Options{})
	roundRealm(t, f, "rounds", "ann")
	long := make([]*kujiv1.Stack, kuji.MaxStacks+1)
	for i := range long {
		long[i] = &kujiv1.Stack{Item: fmt.Sprint("i", i), Quantity: 1}
	}
	join := func(change func(q *kujiv1.JoinRequest)) *kujiv1.JoinRequest {
		q := &kujiv1.JoinRequest{Player: "ann", Round: "duel"}
		change(q)
		return q
	}
	for _, c := range clients(t, f.url) {
		for _, tt := range []struct {
			m     any
			code  connect.Code
			field string
		}{
			{&kujiv1.OpenRoundRequest{}, connect.CodeInvalidArgument, "round"},
			{&kujiv1.OpenRoundRequest{Round: "none"}, connect.CodeNotFound, "round"},
			{&kujiv1.OpenRoundRequest{Round: "prize", Tickets: 1}, connect.CodeInvalidArgument, "player"},
			{&kujiv1.OpenRoundRequest{Round: "prize", Player: "ann", Stake: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}, connect.CodeNotFound, "stake"},
			{join(func(q *kujiv1.JoinRequest) { q.Player = "" }), connect.CodeInvalidArgument, "player"},
			{join(func(q *kujiv1.JoinRequest) { q.Tickets = 1 }), connect.CodeNotFound, "tickets"},
			{join(func(q *kujiv1.JoinRequest) { q.Stake = []*kujiv1.Stack{{Item: "gem"}} }), connect.CodeInvalidArgument, "stake[0].quantity"},
			{join(func(q *kujiv1.JoinRequest) {
				q.Stake = []*kujiv1.Stack{{Item: "gem", Quantity: 1}, {Item: "none", Quantity: 1}}
			}), connect.CodeNotFound, "stake[1].item"},
			{join(func(q *kujiv1.JoinRequest) { q.Stake = long }), connect.CodeInvalidArgument, "stake"},
			{&kujiv1.SettleRequest{Round: "none"}, connect.CodeNotFound, "round"},
			{&kujiv1.RerollRequest{Round: "prize"}, connect.CodeInvalidArgument, "number"},
			{&kujiv1.CancelRoundRequest{Round: strings.Repeat("x", 65)}, connect.CodeInvalidArgument, "round"},
			{&kujiv1.GetRoundRequest{Number: 9}, connect.CodeNotFound, "number"},
			{&kujiv1.GetRoundRequest{Number: 9, EntrantLimit: 1001}, connect.CodeInvalidArgument, "entrant_limit"},
			{&kujiv1.ListRoundsRequest{RoundLimit: 10_001}, connect.CodeInvalidArgument, "round_limit"},
		} {
			var err error
			switch m := tt.m.(type) {
			case *kujiv1.OpenRoundRequest:
				m.Realm = "rounds"
				_, err = c.reward.OpenRound(t.Context(), m)
			case *kujiv1.JoinRequest:
				m.Realm = "rounds"
				_, err = c.reward.Join(t.Context(), m)
			case *kujiv1.SettleRequest:
				m.Realm = "rounds"
				_, err = c.reward.Settle(t.Context(), m)
			case *kujiv1.RerollRequest:
				m.Realm = "rounds"
				_, err = c.reward.Reroll(t.Context(), m)
			case *kujiv1.CancelRoundRequest:
				m.Realm = "rounds"
				_, err = c.reward.CancelRound(t.Context(), m)
			case *kujiv1.GetRoundRequest:
				m.Realm = "rounds"
				_, err = c.reward.GetRound(t.Context(), m)
			case *kujiv1.ListRoundsRequest:
				m.Realm = "rounds"
				_, err = c.reward.ListRounds(t.Context(), m)
			}
			if connect.CodeOf(err) != tt.code {
				t.Errorf("%s: %v: %v, want %v", c.name, tt.m, err, tt.code)
				continue
			}
			if v := detail(t, err).GetViolations(); len(v) != 1 || v[0].GetField() != tt.field {
				t.Errorf("%s: %v: %v, want field %s", c.name, tt.m, v, tt.field)
			}
		}
	}
}

// TestRoundsInBatches: a batch has the same results, and its rounds can be read in pages.
func TestRoundsInBatches(t *testing.T) {
	f := start(t, server.Options{})
	roundRealm(t, f, "rounds")
	c := clients(t, f.url)[0].reward
	all := []*kujiv1.Command{{Command: &kujiv1.Command_OpenRound{OpenRound: &kujiv1.OpenRound{Round: "prize"}}, Metadata: "stream 7"}}
	for i := range 150 {
		all = append(all, &kujiv1.Command{Command: &kujiv1.Command_Join{Join: &kujiv1.Join{Player: fmt.Sprintf("p%03d", i), Round: "prize"}}})
	}
	all = append(all,
		&kujiv1.Command{Command: &kujiv1.Command_OpenRound{OpenRound: &kujiv1.OpenRound{Round: "prize"}}},
		&kujiv1.Command{Command: &kujiv1.Command_CancelRound{CancelRound: &kujiv1.CancelRound{Round: "prize", Number: 2}}},
		&kujiv1.Command{Command: &kujiv1.Command_OpenRound{OpenRound: &kujiv1.OpenRound{Round: "lottery"}}},
		&kujiv1.Command{Command: &kujiv1.Command_Settle{Settle: &kujiv1.Settle{Round: "duel"}}},
		&kujiv1.Command{Command: &kujiv1.Command_Reroll{Reroll: &kujiv1.Reroll{Round: "prize"}}})
	resp, err := c.Batch(t.Context(), &kujiv1.BatchRequest{Realm: "rounds", Commands: all})
	if err != nil {
		t.Fatal(err)
	}
	res := resp.GetResults()
	for i, want := range map[int]string{
		0:   `{"round":"prize","number":1,"state":"open"}`,
		150: `{"round":"prize","number":1,"state":"open","entrants":150,"tickets":150}`,
		152: `{"round":"prize","number":2,"state":"returned"}`,
	} {
		if got := plain(res[i].GetRound()); got != want {
			t.Errorf("result %d is about %s, want %s", i, got, want)
		}
	}
	if st := res[154].GetStatus(); st != kujiv1.Status_STATUS_UNKNOWN_ROUND {
		t.Errorf("a round that nobody has opened: %v", st)
	}
	if v := res[155].GetError().GetViolations(); res[155].GetStatus() != kujiv1.Status_STATUS_REFUSED || len(v) != 1 || v[0].GetField() != "number" {
		t.Errorf("a reroll without a number: %v", res[155])
	}
	for _, page := range []struct {
		offset      uint64
		limit       uint32
		n           int
		first, last string
	}{{0, 0, 100, "p000", "p099"}, {100, 0, 50, "p100", "p149"}, {0, 1000, 150, "p000", "p149"}, {7, 1, 1, "p007", "p007"}, {1 << 40, 1, 0, "", ""}} {
		got, err := c.GetRound(t.Context(), &kujiv1.GetRoundRequest{Realm: "rounds", Number: 1, EntrantOffset: page.offset, EntrantLimit: page.limit, Stale: true})
		if err != nil {
			t.Fatal(err)
		}
		some := got.GetEntrants()
		if len(some) != page.n || page.n > 0 && (some[0].GetPlayer() != page.first || some[page.n-1].GetPlayer() != page.last) {
			t.Errorf("from %d on, at most %d: %v", page.offset, page.limit, some)
		}
	}
	for _, page := range []struct {
		offset, limit uint32
		want          string
	}{
		{0, 1, `{"rounds":[{"round":"lottery","number":3,"state":"open"}],"round_count":2}`},
		{1, 1, `{"rounds":[{"round":"prize","number":1,"state":"open","entrants":150,"tickets":150}],"round_count":2}`},
		{2, 0, `{"round_count":2}`},
	} {
		got, err := c.ListRounds(t.Context(), &kujiv1.ListRoundsRequest{Realm: "rounds", RoundOffset: page.offset, RoundLimit: page.limit})
		if err != nil || plain(got) != page.want {
			t.Errorf("rounds from %d on, at most %d: %v, %v", page.offset, page.limit, got, err)
		}
	}
}

// TestRoundsInFeeds: the feed tells who joined and how it ended, and each player what is theirs.
func TestRoundsInFeeds(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{}) // the feed waits until an event survives a crash
	r := roundRealm(t, f, "feed", "ann", "bob")
	for _, req := range []kuji.Request{
		kuji.OpenRound{Player: "ann", Round: "duel", Stake: []kuji.Stack{{Item: "gem", Quantity: 2}}},
		kuji.Join{Player: "bob", Round: "duel"},
		kuji.Settle{Round: "duel"},
		kuji.OpenRound{Round: "lottery"},
		kuji.Join{Player: "ann", Round: "lottery", Tickets: 3},
		kuji.CancelRound{Round: "lottery"},
		kuji.CancelRound{Round: "lottery"},
		kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "key", Quantity: 1}}},
		kuji.Grant{Player: "bob", Items: []kuji.Stack{{Item: "key", Quantity: 1}}},
	} {
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient("grpc", h2c(t), f.url, connect.WithGRPC())
	v, err := kuji.RoundsOf(r).Get(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("WINNER", v.Winners[0].Player, "LOSER", map[string]string{"ann": "bob", "bob": "ann"}[v.Winners[0].Player])
	const (
		opened   = `open_round ann items{"gem":2} {"round":"duel","number":1,"state":"open","entrants":1,"tickets":1} ann gem -2`
		joined   = `join bob {"round":"duel","number":1,"state":"open","entrants":2,"tickets":2} bob gem -2`
		settled  = `settle {"round":"duel","number":1,"state":"settled","entrants":2,"tickets":2,"winners":[{"player":"WINNER"}]} left ann left bob WINNER gem +4 WINNER place 1`
		won      = `settle {"round":"duel","number":1,"state":"settled","entrants":2,"tickets":2,"winners":[{"player":"WINNER"}]} left WINNER WINNER gem +4 WINNER place 1`
		lost     = `settle {"round":"duel","number":1,"state":"settled","entrants":2,"tickets":2} left LOSER`
		bought   = `join ann x3 {"round":"lottery","number":2,"state":"open","entrants":1,"tickets":3} ann coin -6`
		lottery  = `open_round {"round":"lottery","number":2,"state":"open"}`
		returned = `cancel_round {"round":"lottery","number":2,"state":"returned","entrants":1,"tickets":3} left ann ann coin +6`
		failed   = `cancel_round {"round":"lottery"} unknown_round`
	)
	of := map[string][]string{"": {opened, joined, settled, lottery, bought, returned, failed}, "ann": {opened, won, bought, returned}, "bob": {joined, lost}}
	if v.Winners[0].Player == "bob" {
		of["ann"][1], of["bob"][1] = lost, won
	}
	for player, want := range of {
		from := uint64(1)
		feed, err := c.reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{Realm: "feed", Player: player, From: &from})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for ends := 0; ends < 1 && feed.Receive(); {
			for _, e := range feed.Msg().GetEvents() {
				if e.GetKind() == "grant" && len(e.GetItems()) == 1 {
					ends += map[bool]int{true: 1}[player != "" || e.GetPlayer() == "bob"]
				} else if e.GetRound() != nil {
					got = append(got, roundEvent(e))
				}
			}
		}
		if all := names.Replace(strings.Join(want, "\n")); strings.Join(got, "\n") != all {
			t.Errorf("%q sees\n%s\nwant\n%s (%v)", player, strings.Join(got, "\n"), all, feed.Err())
		}
	}
}

// TestLosersInFeeds: who joins for nothing and wins nothing sees how the round has ended, too.
func TestLosersInFeeds(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	r := roundRealm(t, f, "free")
	for _, req := range []kuji.Request{kuji.OpenRound{Round: "prize"}, kuji.Join{Round: "prize", Player: "ann"}, kuji.Join{Round: "prize", Player: "bob"},
		kuji.Settle{Round: "prize"}, kuji.Register{Player: "ann"}, kuji.Register{Player: "bob"}} {
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient("grpc", h2c(t), f.url, connect.WithGRPC())
	wins := 0
	for _, player := range []string{"ann", "bob"} {
		from, kinds := uint64(1), ""
		feed, err := c.reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{Realm: "free", Player: player, From: &from})
		if err != nil {
			t.Fatal(err)
		}
		for !strings.HasSuffix(kinds, "register ") && feed.Receive() {
			for _, e := range feed.Msg().GetEvents() {
				kinds += e.GetKind() + " "
				wins += len(e.GetClaims())
			}
		}
		if kinds != "join settle register " {
			t.Errorf("%s sees %s (%v)", player, kinds, feed.Err())
		}
	}
	if wins != 1 {
		t.Errorf("%d have won, want 1", wins)
	}
}

// TestDueInFeeds: what falls due without a request is in the feed of each player whom it is about, and of nobody else.
func TestDueInFeeds(t *testing.T) {
	ahead := atomic.Int64{}
	now := func() time.Time { return time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).Add(time.Duration(ahead.Load())) }
	f := startWith(t, kuji.Options{Now: now}, server.Options{})
	rounds, ranks := roundRealm(t, f, "rounds", "ann", "bob"), rankRealm(t, f, "ranks")
	do := func(r *kuji.Realm, req kuji.Request) {
		t.Helper()
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	do(rounds, kuji.OpenRound{Round: "short", Player: "ann", Stake: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	ahead.Store(int64(24 * time.Hour))
	for _, player := range []string{"ann", "bob"} {
		do(rounds, kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "key", Quantity: 1}}}) // ends what is read below
		do(ranks, kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "coin", Quantity: 1}}})
	}
	c := newClient("grpc", h2c(t), f.url, connect.WithGRPC())
	due := func(realm, player string) (all []*kujiv1.Event) {
		t.Helper()
		from := uint64(1)
		feed, err := c.reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{Realm: realm, Player: player, From: &from})
		if err != nil {
			t.Fatal(err)
		}
		for feed.Receive() {
			for _, e := range feed.Msg().GetEvents() {
				switch {
				case e.GetKind() == "due":
					all = append(all, e)
				case e.GetKind() == "grant" && len(e.GetItems()) == 1:
					return all
				}
			}
		}
		t.Fatal(feed.Err())
		return nil
	}
	want := `due {"round":"short","number":1,"state":"returned","entrants":1,"tickets":1} left ann ann gem +1`
	if got := due("rounds", "ann"); len(got) != 1 || roundEvent(got[0]) != want || got[0].GetDue().GetRound() != 1 {
		t.Errorf("ann sees %v, want %s", got, want)
	}
	if got := due("rounds", "bob"); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
	if got := due("ranks", "bob"); len(got) != 1 || len(got[0].GetClaims()) != 1 || got[0].GetClaims()[0].GetPlayer() != "bob" || got[0].GetClaims()[0].GetRank() != 2 {
		t.Errorf("bob sees %v", got)
	}
}

// roundEvent says in a line what an event about a round is.
func roundEvent(e *kujiv1.Event) string {
	line := []string{e.GetKind()}
	if e.GetPlayer() != "" {
		line = append(line, e.GetPlayer())
	}
	if e.GetCount() > 0 {
		line = append(line, fmt.Sprint("x", e.GetCount()))
	}
	if len(e.GetItems()) > 0 {
		line = append(line, strings.Trim(plain(&kujiv1.Outcome{Items: e.GetItems()}), "{}"))
		line[len(line)-1] = "items" + strings.TrimPrefix(line[len(line)-1], `"items":`) + "}"
	}
	line = append(line, plain(e.GetRound()))
	for _, id := range e.GetEntrants() {
		line = append(line, "left "+id)
	}
	for _, c := range e.GetChanges() {
		line = append(line, fmt.Sprintf("%s %s %+d", c.GetPlayer(), c.GetItem(), c.GetDelta()))
	}
	for _, c := range e.GetClaims() {
		line = append(line, fmt.Sprintf("%s place %d", c.GetPlayer(), c.GetPlace()))
	}
	if st := e.GetStatus(); st != kujiv1.Status_STATUS_OK {
		line = append(line, contract.Word(st))
	}
	return strings.Join(line, " ")
}

// roundSession is about the catalog roundCatalog.
var roundSession = redisSteps{
	{"OPENROUND duel PLAYER ann ID o1 STAKE gem 2", dict{"status": "ok", "round": dict{"round": "duel", "number": int64(1), "state": "open", "entrants": int64(1), "tickets": int64(1)}}},
	{"OPENROUND duel ID o1 PLAYER ann STAKE gem 2", dict{"status": "ok", "replayed": true, "round": dict{"round": "duel", "number": int64(1), "state": "open", "entrants": int64(1), "tickets": int64(1)}}},
	{"OPENROUND duel ID o1 PLAYER ann STAKE gem 3", errors.New("IDREUSED ")},
	{"OPENROUND duel STAKE gem", errors.New("INVALID stake[0].quantity: is missing")},
	{"OPENROUND duel STAKE gem 1 ID o2", errors.New(`INVALID stake[1].quantity: "o2", want a whole number`)},
	{"OPENROUND duel STAKE gem 1", errors.New("INVALID player: ")},
	{"OPENROUND", errors.New("INVALID 0 arguments, want OPENROUND round [PLAYER player] [TICKETS n] [ID id] [STAKE item quantity ...]")},
	{"JOIN bob duel NUMBER 1 ID j1", dict{"status": "ok", "round": dict{"round": "duel", "number": int64(1), "state": "open", "entrants": int64(2), "tickets": int64(2)}}},
	{"JOIN bob duel STAKE gem 2", dict{"status": "already_joined"}},
	{"JOIN bob duel STAKE", errors.New("INVALID stake[0].item: is missing")},
	{"JOIN ann prize TICKETS 0", errors.New(`INVALID TICKETS: "0", want a whole number from 1 to 1000000`)},
	{"JOIN ann nothing", errors.New("NOTFOUND round: ")},
	{"ROUNDS", dict{"rounds": []any{dict{"round": "duel", "number": int64(1), "state": "open", "entrants": int64(2), "tickets": int64(2), "opener": "ann"}}, "round_count": int64(1)}},
	{"ROUNDS OFFSET 1 LIMIT 5", dict{"round_count": int64(1)}},
	{"ROUND 1 OFFSET 1", dict{"round": dict{"round": "duel", "number": int64(1), "state": "open", "entrants": int64(2), "tickets": int64(2), "opener": "ann"},
		"entrants": []any{dict{"player": "bob", "tickets": int64(1), "held": dict{"gem": int64(2)}}}}},
	{"ROUND 1 LIMIT 1001", errors.New(`INVALID LIMIT: "1001", want a whole number from 1 to 1000`)},
	{"ROUND 0", errors.New(`INVALID number: "0", want a whole number from 1 to `)},
	{"ROUND 9", errors.New("NOTFOUND number: ")},
	{"CANCELROUND duel", dict{"status": "ok", "round": dict{"round": "duel", "number": int64(1), "state": "returned", "entrants": int64(2), "tickets": int64(2)}}},
	{"OPENROUND prize PLAYER ann TICKETS 1", dict{"status": "ok", "round": dict{"round": "prize", "number": int64(2), "state": "open", "entrants": int64(1), "tickets": int64(1)}}},
	{"SETTLE prize NUMBER 2", dict{"status": "ok", "claims": []any{dict{"player": "ann", "items": dict{"key": int64(1)}, "place": int64(1)}},
		"round": dict{"round": "prize", "number": int64(2), "state": "settled", "entrants": int64(1), "tickets": int64(1), "winners": []any{dict{"player": "ann"}}}}},
	{"REROLL prize 2", dict{"status": "nobody_left"}},
	{"REROLL prize", errors.New("INVALID 1 arguments, want REROLL round number [ID id]")},
	{"PLAYER ann", dict{"id": "ann", "items": dict{"coin": int64(100), "gem": int64(10), "key": int64(1)}}},
	{"MULTI", "OK"},
	{"JOIN ann prize", errors.New("INVALID JOIN in a group, want ")},
	{"DISCARD", "OK"},
}
