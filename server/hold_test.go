package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const holdCatalog = `
kuji: 1
items: {coin: {kind: currency}, gem: {}, key: {}, prize: {}, pass: {lasts: 1h}}
pools:
  shop: {price: {coin: 10}, entries: [{id: prize, weight: 1, stock: 1000, reward: {items: {prize: 1}}}]}
  one: {entries: [{id: prize, weight: 1, stock: 1, reward: {items: {prize: 1}}}]}
  coded: {entries: [{id: code, weight: 1000000000000, reward: {items: {key: 1}, code: keys}}, {id: none, weight: 1}]}
  free: {entries: [{id: prize, weight: 1, reward: {items: {prize: 1}}}]}
  passes: {entries: [{id: pass, weight: 1, reward: {items: {pass: 1}}}]}
`

// holdRealm is a realm of a server with the catalog above, whose players have 1000 coins and 10 gems each.
func holdRealm(t testing.TB, f *fixture, name string, players ...string) *kuji.Realm {
	t.Helper()
	r := applyTo(t, f, name, holdCatalog)
	if _, err := r.Codes().Import(t.Context(), "keys", []string{"KEY-1", "KEY-2", "KEY-3", "KEY-4"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range players {
		if _, err := r.Do(t.Context(), kuji.Grant{Player: p, Items: []kuji.Stack{{Item: "coin", Quantity: 1000}, {Item: "gem", Quantity: 10}}}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// ask sends a request about holds, and returns the answer or its result.
func (c client) ask(ctx context.Context, m proto.Message) (proto.Message, error) {
	result := func(res interface{ GetResult() *kujiv1.Result }, err error) (proto.Message, error) {
		return res.GetResult(), err
	}
	switch m := m.(type) {
	case *kujiv1.DrawRequest:
		return result(c.reward.Draw(ctx, m))
	case *kujiv1.ConsumeRequest:
		return result(c.reward.Consume(ctx, m))
	case *kujiv1.TransferRequest:
		return result(c.reward.Transfer(ctx, m))
	case *kujiv1.AtomicRequest:
		return result(c.reward.Atomic(ctx, m))
	case *kujiv1.ConfirmRequest:
		return result(c.reward.Confirm(ctx, m))
	case *kujiv1.CancelRequest:
		return result(c.reward.Cancel(ctx, m))
	case *kujiv1.GetHoldRequest:
		res, err := c.reward.GetHold(ctx, m)
		return res.GetHold(), err
	case *kujiv1.ListHoldsRequest:
		return c.reward.ListHolds(ctx, m)
	case *kujiv1.GetPlayerRequest:
		res, err := c.reward.GetPlayer(ctx, m)
		return res.GetPlayer(), err
	}
	return nil, fmt.Errorf("%T is no request about holds", m)
}

// timeless is a message in plain form, without its receipt, its position and the times of holds.
func timeless(m proto.Message) string {
	var holds []*kujiv1.Hold
	switch m := m.(type) {
	case *kujiv1.Result:
		holds = append(holds, m.GetHold())
	case *kujiv1.Hold:
		holds = append(holds, m)
	case *kujiv1.ListHoldsResponse:
		holds = m.GetHolds()
	case *kujiv1.Player:
		m.Position = 0
	}
	for _, h := range holds {
		if h != nil {
			h.AskedUnixMs, h.UntilUnixMs, h.EndedUnixMs = 0, 0, 0
		}
	}
	return plain(m)
}

func memberDraw(player, pool string) *kujiv1.Member {
	return &kujiv1.Member{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: player, Pool: pool}}}
}

func memberConsume(player, item string, n uint64) *kujiv1.Member {
	return &kujiv1.Member{Command: &kujiv1.Member_Consume{Consume: &kujiv1.Consume{Player: player, Items: []*kujiv1.Stack{{Item: item, Quantity: n}}}}}
}

// TestHolds: each way to hold something, to confirm and to cancel it, by each protocol. Every request comes twice: the
// second time its answer is the same, and says so.
func TestHolds(t *testing.T) {
	f := start(t, server.Options{})
	gems := func(n uint64) []*kujiv1.Stack { return []*kujiv1.Stack{{Item: "gem", Quantity: n}} }
	for _, c := range clients(t, f.url) {
		realm := "holds-" + strings.ReplaceAll(c.name, " ", "-")
		holdRealm(t, f, realm, "ann", "bob")
		for _, tt := range []struct {
			m    proto.Message
			want string
		}{
			{&kujiv1.DrawRequest{RequestId: "d", Player: "ann", Pool: "shop", Count: 2, HoldMs: 60_000},
				`{"status":"ok","outcomes":[{"entry":"prize","items":{"prize":1}},{"entry":"prize","items":{"prize":1},"draw":1}],"paid":{"coin":20},"hold":{"hold":"d","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"prize":2}}]}}`},
			{&kujiv1.DrawRequest{RequestId: "r", Player: "ann", Pool: "shop", HoldMs: 60_000, Refund: true},
				`{"status":"ok","hold":{"hold":"r","state":"open","refund":true,"parts":[{"kind":"draw","player":"ann","pool":"shop","draws":1,"takes":{"coin":10}}]}}`},
			{&kujiv1.DrawRequest{RequestId: "k", Player: "ann", Pool: "coded", HoldMs: 60_000},
				`{"status":"ok","outcomes":[{"entry":"code","items":{"key":1}}],"hold":{"hold":"k","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"key":1},"codes":1}]}}`},
			{&kujiv1.ConsumeRequest{RequestId: "c", Player: "ann", Items: gems(3), HoldMs: 60_000, Reason: "cart 7"},
				`{"status":"ok","hold":{"hold":"c","state":"open","parts":[{"kind":"consume","player":"ann","takes":{"gem":3}}]}}`},
			{&kujiv1.TransferRequest{RequestId: "t", From: "ann", To: "bob", Items: gems(2), HoldMs: 60_000},
				`{"status":"ok","hold":{"hold":"t","state":"open","parts":[{"kind":"transfer","player":"ann","to":"bob","takes":{"gem":2}}]}}`},
			{&kujiv1.AtomicRequest{RequestId: "a", Members: []*kujiv1.Member{memberConsume("bob", "gem", 1), memberDraw("bob", "shop")}, HoldMs: 60_000, Refund: true},
				`{"status":"ok","members":[{"status":"ok"},{"status":"ok"}],"hold":{"hold":"a","state":"open","refund":true,"parts":[{"kind":"consume","player":"bob","takes":{"gem":1}},{"kind":"draw","player":"bob","pool":"shop","draws":1,"takes":{"coin":10}}]}}`},
			{&kujiv1.GetPlayerRequest{Player: "ann"}, `{"id":"ann","items":{"coin":970,"gem":5},"held":{"coin":10,"gem":5,"key":1,"prize":2}}`},
			{&kujiv1.GetHoldRequest{Hold: "t"}, `{"hold":"t","state":"open","parts":[{"kind":"transfer","player":"ann","to":"bob","takes":{"gem":2}}]}`},
			{&kujiv1.ConfirmRequest{RequestId: "d1", Hold: "d", Reason: "address checked"}, `{"status":"ok","hold":{"hold":"d","state":"confirmed","by":"d1"},"given":{"items":{"prize":2}}}`},
			{&kujiv1.ConfirmRequest{RequestId: "r1", Hold: "r"}, `{"status":"ok","outcomes":[{"entry":"prize","items":{"prize":1}}],"hold":{"hold":"r","state":"confirmed","refund":true,"by":"r1"}}`},
			{&kujiv1.ConfirmRequest{RequestId: "k1", Hold: "k"}, `{"status":"ok","hold":{"hold":"k","state":"confirmed","by":"k1"},"given":{"items":{"key":1},"codes":[{"list":"keys","code":"KEY-1"}]}}`},
			{&kujiv1.CancelRequest{RequestId: "c1", Hold: "c"}, `{"status":"ok","hold":{"hold":"c","state":"cancelled","by":"c1"}}`},
			{&kujiv1.ConfirmRequest{RequestId: "t1", Hold: "t"}, `{"status":"ok","hold":{"hold":"t","state":"confirmed","by":"t1"},"given":{"items":{"gem":2}}}`},
			{&kujiv1.ConfirmRequest{RequestId: "a1", Hold: "a"},
				`{"status":"ok","members":[{"status":"ok"},{"status":"ok","outcomes":[{"entry":"prize","items":{"prize":1}}]}],"hold":{"hold":"a","state":"confirmed","refund":true,"by":"a1"}}`},
			{&kujiv1.AtomicRequest{RequestId: "g", Members: []*kujiv1.Member{memberDraw("ann", "coded"), memberConsume("bob", "gem", 1)}, HoldMs: 60_000},
				`{"status":"ok","members":[{"status":"ok","outcomes":[{"entry":"code","items":{"key":1}}]},{"status":"ok"}],"hold":{"hold":"g","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"key":1},"codes":1},{"kind":"consume","player":"bob"}]}}`},
			{&kujiv1.ConfirmRequest{RequestId: "g1", Hold: "g"},
				`{"status":"ok","members":[{"status":"ok","given":{"items":{"key":1},"codes":[{"list":"keys","number":1,"code":"KEY-2"}]}},{"status":"ok"}],"hold":{"hold":"g","state":"confirmed","by":"g1"}}`},
			{&kujiv1.GetPlayerRequest{Player: "ann"}, `{"id":"ann","items":{"coin":970,"gem":8,"key":2,"prize":3}}`},
			{&kujiv1.GetPlayerRequest{Player: "bob"}, `{"id":"bob","items":{"coin":990,"gem":10,"prize":1}}`},
			{&kujiv1.CancelRequest{RequestId: "d2", Hold: "d"}, `{"status":"hold_ended","hold":{"hold":"d","state":"confirmed","by":"d1"}}`},
			{&kujiv1.ConfirmRequest{RequestId: "c2", Hold: "c"}, `{"status":"hold_ended","hold":{"hold":"c","state":"cancelled","by":"c1"}}`},
			{&kujiv1.ConfirmRequest{RequestId: "n1", Hold: "nothing"}, `{"status":"unknown_hold"}`},
			{&kujiv1.GetHoldRequest{Hold: "a"}, `{"hold":"a","state":"confirmed","refund":true,"by":"a1"}`},
			{&kujiv1.ListHoldsRequest{}, `{}`},
		} {
			tt.m.ProtoReflect().Set(tt.m.ProtoReflect().Descriptor().Fields().ByName("realm"), protoreflect.ValueOfString(realm))
			for _, again := range []bool{false, true} {
				got, err := c.ask(t.Context(), tt.m)
				if err != nil {
					t.Fatalf("%s: %v: %v", c.name, tt.m, err)
				}
				if res, ok := got.(*kujiv1.Result); ok && res.GetReplayed() != again {
					t.Errorf("%s: %v: replayed is %v, want %v", c.name, tt.m, res.GetReplayed(), again)
				} else if ok {
					res.Replayed = false
				}
				if text := timeless(got); text != tt.want {
					t.Errorf("%s: %v:\n%s, want\n%s", c.name, tt.m, text, tt.want)
				}
			}
		}
	}
}

// TestHoldResults: what came of a request that is held, and of its confirm, can be looked up. Only a repeat of the
// confirm shows codes.
func TestHoldResults(t *testing.T) {
	f := start(t, server.Options{})
	holdRealm(t, f, "results", "ann")
	c := clients(t, f.url)[0]
	for _, tt := range []struct {
		m          proto.Message
		id, player string
		code       string
	}{
		{&kujiv1.DrawRequest{Realm: "results", RequestId: "d", Player: "ann", Pool: "coded", HoldMs: 60_000}, "d", "ann", ""},
		{&kujiv1.ConfirmRequest{Realm: "results", RequestId: "c", Hold: "d"}, "c", "", kuji.Redacted},
		{&kujiv1.TransferRequest{Realm: "results", RequestId: "t", From: "ann", To: "bob", Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}, HoldMs: 60_000}, "t", "ann", ""},
	} {
		first, err := c.ask(t.Context(), tt.m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.reward.GetResult(t.Context(), &kujiv1.GetResultRequest{Realm: "results", RequestId: tt.id})
		if err != nil || got.GetPlayer() != tt.player {
			t.Errorf("%s: of player %q, want %q (%v)", tt.id, got.GetPlayer(), tt.player, err)
		}
		want := proto.CloneOf(first.(*kujiv1.Result))
		for _, one := range want.GetGiven().GetCodes() {
			one.Code = tt.code
		}
		if want.Replayed = true; !proto.Equal(got.GetResult(), want) {
			t.Errorf("%s: %v, want %v", tt.id, got.GetResult(), want)
		}
	}
}

// TestHoldTimes: an answer says when it was asked for, until when, and when it ended; at its deadline a hold is
// cancelled, and a day later it is forgotten.
func TestHoldTimes(t *testing.T) {
	ahead := atomic.Int64{}
	begin := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	now := func() time.Time { return begin.Add(time.Duration(ahead.Load())) }
	f := startWith(t, kuji.Options{Now: now}, server.Options{})
	holdRealm(t, f, "times", "ann")
	c := clients(t, f.url)[0]
	at := begin.UnixMilli()
	for _, tt := range []struct {
		ahead               time.Duration
		m                   proto.Message
		status              kujiv1.Status
		state               kujiv1.HoldState
		asked, until, ended int64
	}{
		{0, &kujiv1.DrawRequest{Realm: "times", RequestId: "one", Player: "ann", Pool: "one", HoldMs: 1000}, kujiv1.Status_STATUS_OK, kujiv1.HoldState_HOLD_STATE_OPEN, at, at + 1000, 0},
		{0, &kujiv1.DrawRequest{Realm: "times", Player: "bob", Pool: "one"}, kujiv1.Status_STATUS_SOLD_OUT, 0, 0, 0, 0},
		{999 * time.Millisecond, &kujiv1.GetHoldRequest{Realm: "times", Hold: "one"}, 0, kujiv1.HoldState_HOLD_STATE_OPEN, at, at + 1000, 0},
		{2 * time.Second, &kujiv1.ConfirmRequest{Realm: "times", Hold: "one"}, kujiv1.Status_STATUS_HOLD_ENDED, kujiv1.HoldState_HOLD_STATE_EXPIRED, 0, 0, at + 2000},
		{3 * time.Second, &kujiv1.DrawRequest{Realm: "times", RequestId: "two", Player: "bob", Pool: "one", HoldMs: 60_000}, kujiv1.Status_STATUS_OK, kujiv1.HoldState_HOLD_STATE_OPEN, at + 3000, at + 63_000, 0},
		{4 * time.Second, &kujiv1.ConfirmRequest{Realm: "times", Hold: "two"}, kujiv1.Status_STATUS_OK, kujiv1.HoldState_HOLD_STATE_CONFIRMED, at + 3000, 0, at + 4000},
		{5 * time.Second, &kujiv1.GetHoldRequest{Realm: "times", Hold: "two"}, 0, kujiv1.HoldState_HOLD_STATE_CONFIRMED, at + 3000, 0, at + 4000},
		{25 * time.Hour, &kujiv1.CancelRequest{Realm: "times", Hold: "two"}, kujiv1.Status_STATUS_UNKNOWN_HOLD, 0, 0, 0, 0},
	} {
		ahead.Store(int64(tt.ahead))
		got, err := c.ask(t.Context(), tt.m)
		if err != nil {
			t.Fatal(err)
		}
		h, _ := got.(*kujiv1.Hold)
		if res, ok := got.(*kujiv1.Result); ok {
			if h = res.GetHold(); res.GetStatus() != tt.status {
				t.Errorf("%v: %v, want %v", tt.m, res.GetStatus(), tt.status)
			}
		}
		if h.GetState() != tt.state || h.GetAskedUnixMs() != tt.asked || h.GetUntilUnixMs() != tt.until || h.GetEndedUnixMs() != tt.ended {
			t.Errorf("%v: %v, want %v with times %d, %d, %d", tt.m, h, tt.state, tt.asked, tt.until, tt.ended)
		}
	}
}

// TestHoldsRefused: what is malformed or is not there names its field.
func TestHoldsRefused(t *testing.T) {
	f := start(t, server.Options{})
	holdRealm(t, f, "holds", "ann")
	held := memberDraw("ann", "shop")
	held.GetDraw().HoldMs = 60_000
	gem := []*kujiv1.Stack{{Item: "gem", Quantity: 1}}
	for _, c := range clients(t, f.url) {
		for _, tt := range []struct {
			m    proto.Message
			code connect.Code
			want string // field: text
		}{
			{&kujiv1.DrawRequest{Player: "ann", Pool: "shop", HoldMs: 60_000}, connect.CodeInvalidArgument, "request_id: empty; a hold needs a request id"},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "shop", HoldMs: 999}, connect.CodeInvalidArgument, "hold_ms: 999 milliseconds; 1000 to 2592000000 are allowed"},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "shop", HoldMs: 1 << 62}, connect.CodeInvalidArgument, "hold_ms: 2592000001 milliseconds"},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "shop", HoldMs: -1 << 62}, connect.CodeInvalidArgument, "hold_ms: -1 milliseconds"},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "shop", Refund: true}, connect.CodeInvalidArgument, "hold_ms: 0 milliseconds"},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "passes", HoldMs: 60_000}, connect.CodeInvalidArgument, `pool: "passes" gives items that last`},
			{&kujiv1.DrawRequest{RequestId: "x", Player: "ann", Pool: "nothing", HoldMs: 60_000}, connect.CodeNotFound, "pool: "},
			{&kujiv1.ConsumeRequest{RequestId: "x", Player: "ann", Items: []*kujiv1.Stack{{Item: "pass", Quantity: 1}}, HoldMs: 60_000}, connect.CodeInvalidArgument, `items: "pass" lasts for a time`},
			{&kujiv1.TransferRequest{RequestId: "x", From: "ann", To: "ann", Items: gem, HoldMs: 60_000}, connect.CodeInvalidArgument, "to: "},
			{&kujiv1.AtomicRequest{RequestId: "x", Members: []*kujiv1.Member{held}}, connect.CodeInvalidArgument, "members[0].kind: a member is not held by itself"},
			{&kujiv1.AtomicRequest{RequestId: "x", Members: []*kujiv1.Member{held}, HoldMs: 60_000}, connect.CodeInvalidArgument, "members[0].kind: a member is not held by itself"},
			{&kujiv1.AtomicRequest{RequestId: "x", Members: []*kujiv1.Member{{Command: &kujiv1.Member_Register{Register: &kujiv1.Register{Player: "ann"}}}}, HoldMs: 60_000},
				connect.CodeInvalidArgument, "members[0].kind: a register cannot be held"},
			{&kujiv1.ConfirmRequest{}, connect.CodeInvalidArgument, "hold: empty"},
			{&kujiv1.CancelRequest{Hold: strings.Repeat("x", 65)}, connect.CodeInvalidArgument, "hold: "},
			{&kujiv1.GetHoldRequest{Hold: "nothing"}, connect.CodeNotFound, "hold: "},
			{&kujiv1.ListHoldsRequest{Limit: 1001}, connect.CodeInvalidArgument, "limit: "},
			{&kujiv1.ListHoldsRequest{Player: "ann", AfterUnixMs: 5}, connect.CodeInvalidArgument, "after_unix_ms: "},
		} {
			tt.m.ProtoReflect().Set(tt.m.ProtoReflect().Descriptor().Fields().ByName("realm"), protoreflect.ValueOfString("holds"))
			_, err := c.ask(t.Context(), tt.m)
			if connect.CodeOf(err) != tt.code {
				t.Errorf("%s: %v: %v, want %v", c.name, tt.m, err, tt.code)
				continue
			}
			v := detail(t, err).GetViolations()
			if len(v) != 1 || !strings.HasPrefix(v[0].GetField()+": "+v[0].GetDescription(), tt.want) {
				t.Errorf("%s: %v: %v, want %s", c.name, tt.m, v, tt.want)
			}
		}
	}
}

// TestHoldsInBatches: a batch has the same results, and what is open is read in pages.
func TestHoldsInBatches(t *testing.T) {
	f := start(t, server.Options{})
	holdRealm(t, f, "batches", "ann", "bob")
	c := clients(t, f.url)[0]
	var all []*kujiv1.Command
	for i := range 7 {
		d := &kujiv1.Draw{Player: []string{"ann", "bob"}[i%2], Pool: "shop", HoldMs: int64(70_000 - 10_000*i)}
		all = append(all, &kujiv1.Command{RequestId: fmt.Sprint("h", i), Command: &kujiv1.Command_Draw{Draw: d}})
	}
	all = append(all,
		&kujiv1.Command{RequestId: "group", Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{HoldMs: 5000,
			Members: []*kujiv1.Member{memberConsume("ann", "gem", 1), memberConsume("bob", "gem", 2)}}}},
		&kujiv1.Command{RequestId: "confirm", Command: &kujiv1.Command_Confirm{Confirm: &kujiv1.Confirm{Hold: "h0"}}, Metadata: "order 5"},
		&kujiv1.Command{Command: &kujiv1.Command_Cancel{Cancel: &kujiv1.Cancel{Hold: "h1"}}},
		&kujiv1.Command{Command: &kujiv1.Command_Cancel{Cancel: &kujiv1.Cancel{Hold: "h0"}}},
		&kujiv1.Command{Command: &kujiv1.Command_Confirm{Confirm: &kujiv1.Confirm{}}})
	resp, err := c.reward.Batch(t.Context(), &kujiv1.BatchRequest{Realm: "batches", Commands: all})
	if err != nil {
		t.Fatal(err)
	}
	n := len(all)
	for i, want := range map[int]string{
		0:     `{"hold":"h0","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"prize":1}}]}`,
		7:     `{"hold":"group","state":"open","parts":[{"kind":"consume","player":"ann","takes":{"gem":1}},{"kind":"consume","player":"bob","takes":{"gem":2}}]}`,
		n - 4: `{"hold":"h0","state":"confirmed","by":"confirm"}`,
		n - 3: `{"hold":"h1","state":"cancelled"}`,
		n - 2: `{"hold":"h0","state":"confirmed","by":"confirm"}`,
	} {
		if got := timeless(resp.GetResults()[i].GetHold()); got != want {
			t.Errorf("result %d is about %s, want %s", i, got, want)
		}
	}
	if given := plain(resp.GetResults()[n-4].GetGiven()); given != `{"items":{"prize":1}}` {
		t.Errorf("the confirm gave %s", given)
	}
	if st := resp.GetResults()[n-2].GetStatus(); st != kujiv1.Status_STATUS_HOLD_ENDED {
		t.Errorf("a cancel after a confirm: %v", st)
	}
	if v := resp.GetResults()[n-1].GetError().GetViolations(); len(v) != 1 || v[0].GetField() != "hold" {
		t.Errorf("a confirm of nothing: %v", resp.GetResults()[n-1])
	}
	var got []string
	for after := (&kujiv1.Hold{}); ; {
		page, err := c.reward.ListHolds(t.Context(), &kujiv1.ListHoldsRequest{Realm: "batches", AfterUnixMs: after.GetUntilUnixMs(), After: after.GetHold(), Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, after = range page.GetHolds() {
			got = append(got, after.GetHold())
		}
		if !page.GetMore() {
			break
		}
	}
	if want := "group h6 h5 h4 h3 h2"; strings.Join(got, " ") != want {
		t.Errorf("the pages have %v, want %s", got, want)
	}
	own, err := c.reward.ListHolds(t.Context(), &kujiv1.ListHoldsRequest{Realm: "batches", Player: "bob", Stale: true})
	if want := `{"holds":[{"hold":"group","state":"open","parts":[{"kind":"consume","player":"bob","takes":{"gem":2}}]},` +
		`{"hold":"h3","state":"open","parts":[{"kind":"draw","player":"bob","gives":{"prize":1}}]},{"hold":"h5","state":"open","parts":[{"kind":"draw","player":"bob","gives":{"prize":1}}]}]}`; err != nil || timeless(own) != want {
		t.Errorf("bob has %s, want %s (%v)", timeless(own), want, err)
	}
	own, err = c.reward.ListHolds(t.Context(), &kujiv1.ListHoldsRequest{Realm: "batches", Player: "bob", After: "group", Limit: 1})
	if err != nil || len(own.GetHolds()) != 1 || own.GetHolds()[0].GetHold() != "h3" || !own.GetMore() {
		t.Errorf("the second hold of bob is %v (%v)", own, err)
	}
}

// TestHoldsOfPlayers: a player's token may draw with a hold, and see what is held of its player. Only the application
// confirms and cancels.
func TestHoldsOfPlayers(t *testing.T) {
	f, k, _ := accessServer(t)
	for _, tt := range []struct {
		who  string
		path protoreflect.Name
		body string
		code int
		want string
	}{
		{k.of("ann"), "Draw", `{"requestId": "h1", "player": "ann", "pool": "free", "holdMs": "60000"}`, 200, `"HOLD_STATE_OPEN"`},
		{k.of("ann"), "Draw", `{"requestId": "h2", "player": "bob", "pool": "free", "holdMs": "60000"}`, 403, "acts for player"},
		{k.of("ann"), "Draw", `{"requestId": "h3", "player": "ann", "pool": "free", "holdMs": "60000", "refund": true}`, 403, "not for players"},
		{k.of("ann"), "Batch", `{"commands": [{"draw": {"player": "ann", "pool": "free", "holdMs": "60000", "refund": true}}]}`, 403, "not for players"},
		{k.of("ann"), "ListHolds", `{"player": "ann"}`, 200, `"h1"`},
		{k.of("ann"), "ListHolds", `{"player": "bob"}`, 403, "acts for player"},
		{k.of("ann"), "ListHolds", `{}`, 403, ""},
		{k.of("ann"), "GetHold", `{"hold": "h1"}`, 403, ""},
		{k.of("ann"), "Confirm", `{"hold": "h1"}`, 403, "it needs the command confirm"},
		{k.of("ann"), "Cancel", `{"hold": "h1"}`, 403, "it needs the command cancel"},
		{k.of("ann"), "Batch", `{"commands": [{"confirm": {"hold": "h1"}}]}`, 403, "it needs the command confirm"},
		{"free-pool", "Confirm", `{"hold": "h1"}`, 403, "restricted to some"},
		{"only-draw", "Confirm", `{"hold": "h1"}`, 403, "it needs the command confirm"},
		{"only-confirm", "Cancel", `{"hold": "h1"}`, 403, "it needs the command cancel"},
		{"only-confirm", "Confirm", `{"hold": "h1"}`, 200, `"HOLD_STATE_CONFIRMED"`},
		{"only-cancel", "Cancel", `{"hold": "h1"}`, 200, `"STATUS_HOLD_ENDED"`},
	} {
		w := ask(f, methodOf(t, tt.path), tt.who, tt.body)
		if code, body := w.Code, w.Body.String(); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s by %.12q: %d %s, want %d with %s", tt.path, tt.body, tt.who, code, body, tt.code, tt.want)
		}
	}
}

// TestHoldsInFeeds: the feed tells what was held and how it ended, and each player what is theirs.
func TestHoldsInFeeds(t *testing.T) {
	ahead := atomic.Int64{}
	now := func() time.Time { return time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).Add(time.Duration(ahead.Load())) }
	f := startWith(t, kuji.Options{Now: now}, server.Options{}) // the feed waits until an event survives a crash
	r := holdRealm(t, f, "feed", "ann", "bob")
	gems := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "gem", Quantity: n}} }
	hold := kuji.Holding{For: time.Minute}
	for _, req := range []kuji.Request{
		kuji.Draw{ID: "d", Player: "ann", Pool: "coded", Hold: hold},
		kuji.Atomic{ID: "g", Hold: hold, Members: []kuji.Request{kuji.Consume{Player: "ann", Items: gems(1)}, kuji.Consume{Player: "bob", Items: gems(2)}}},
		kuji.Transfer{ID: "t", From: "ann", To: "bob", Items: gems(3), Hold: hold},
		kuji.Confirm{ID: "d1", Hold: "d"},
		kuji.Cancel{ID: "g1", Hold: "g"},
		kuji.Cancel{ID: "g2", Hold: "g"},
		kuji.Confirm{ID: "t1", Hold: "t"},
		kuji.Atomic{ID: "k", Hold: hold, Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "coded"}, kuji.Draw{Player: "bob", Pool: "free"}}},
		kuji.Confirm{ID: "k1", Hold: "k"},
		kuji.Draw{ID: "x", Player: "ann", Pool: "one", Hold: hold},
		kuji.Consume{ID: "y", Player: "bob", Items: gems(1), Hold: hold},
		nil,
		kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "key", Quantity: 1}}},
		kuji.Grant{Player: "bob", Items: []kuji.Stack{{Item: "key", Quantity: 1}}},
	} {
		if req == nil {
			ahead.Store(int64(time.Hour))
			continue
		}
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	const (
		draw   = `hold ann {"hold":"d","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"key":1},"codes":1}]} ann key +0`
		given  = `confirm {"hold":"d","state":"confirmed","by":"d1"} {"items":{"key":1},"codes":[{"list":"keys","code":"****"}]} freed ann of d ann key +1`
		parts  = `{"kind":"consume","player":"ann","takes":{"gem":1}}`
		others = `{"kind":"consume","player":"bob","takes":{"gem":2}}`
		group  = `hold {"hold":"g","state":"open","parts":[%s]}`
		cancel = `cancel {"hold":"g","state":"cancelled","by":"g1"}`
		moves  = `hold ann {"hold":"t","state":"open","parts":[{"kind":"transfer","player":"ann","to":"bob","takes":{"gem":3}}]}`
		moved  = `confirm {"hold":"t","state":"confirmed","by":"t1"}`
		got    = ` {"items":{"gem":3}}`
		both   = `hold {"hold":"k","state":"open","parts":[%s]}`
		annK   = `{"kind":"draw","player":"ann","gives":{"key":1},"codes":1}`
		bobK   = `{"kind":"draw","player":"bob","gives":{"prize":1}}`
		done   = `confirm {"hold":"k","state":"confirmed","by":"k1"}`
		gaveK  = ` {"items":{"key":1,"prize":1},"codes":[{"list":"keys","number":1,"code":"****"}]}`
		one    = `hold ann {"hold":"x","state":"open","parts":[{"kind":"draw","player":"ann","gives":{"prize":1}}]} ann prize +0`
		spent  = `hold bob {"hold":"y","state":"open","parts":[{"kind":"consume","player":"bob","takes":{"gem":1}}]} bob gem -1`
	)
	for player, want := range map[string][]string{
		"": {draw, fmt.Sprintf(group, parts+","+others) + " ann gem -1 bob gem -2", moves + " ann gem -3", given, cancel + " freed ann of g freed bob of g ann gem +1 bob gem +2",
			`cancel {"hold":"g","state":"cancelled","by":"g1"} hold_ended`, moved + got + " freed ann of t freed bob of t bob gem +3",
			fmt.Sprintf(both, annK+","+bobK) + " ann key +0 bob prize +0", done + gaveK + " freed ann of k freed bob of k ann key +1 bob prize +1", one, spent, "due x y freed ann of x freed bob of y bob gem +1"},
		"ann": {draw, fmt.Sprintf(group, parts) + " ann gem -1", moves + " ann gem -3", given, cancel + " freed ann of g ann gem +1", moved + " freed ann of t",
			fmt.Sprintf(both, annK) + " ann key +0", done + " freed ann of k ann key +1", one, "due x freed ann of x"},
		"bob": {fmt.Sprintf(group, others) + " bob gem -2", moves, cancel + " freed bob of g bob gem +2", moved + " freed bob of t bob gem +3",
			fmt.Sprintf(both, bobK) + " bob prize +0", done + " freed bob of k bob prize +1", spent, "due y freed bob of y bob gem +1"},
	} {
		got, err := holdEvents(t, f.url, player)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q sees\n%s\nwant\n%s (%v)", player, strings.Join(got, "\n"), strings.Join(want, "\n"), err)
		}
	}
}

// holdEvents returns the events about holds in the feed of a player, up to a grant of one item.
func holdEvents(t *testing.T, url, player string) (all []string, err error) {
	t.Helper()
	from := uint64(1)
	feed, err := newClient("grpc", h2c(t), url, connect.WithGRPC()).reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{Realm: "feed", Player: player, From: &from})
	if err != nil {
		t.Fatal(err)
	}
	for ends := false; !ends && feed.Receive(); {
		for _, e := range feed.Msg().GetEvents() {
			switch {
			case e.GetHold() != nil || len(e.GetDue().GetHolds()) > 0:
				all = append(all, holdEvent(e))
			case e.GetKind() == "grant" && len(e.GetItems()) == 1:
				ends = player != "" || e.GetPlayer() == "bob"
			}
		}
	}
	return all, feed.Err()
}

// holdEvent says in a line what an event about a hold is.
func holdEvent(e *kujiv1.Event) string {
	line := append([]string{e.GetKind()}, e.GetDue().GetHolds()...)
	if e.GetPlayer() != "" {
		line = append(line, e.GetPlayer())
	}
	if e.GetHold() != nil {
		line = append(line, timeless(e.GetHold()))
	}
	if e.GetGiven() != nil {
		line = append(line, plain(e.GetGiven()))
	}
	for _, of := range e.GetFreed() {
		line = append(line, "freed "+of.GetPlayer()+" of "+of.GetHold())
	}
	for _, c := range e.GetChanges() {
		line = append(line, fmt.Sprintf("%s %s %+d", c.GetPlayer(), c.GetItem(), c.GetDelta()))
	}
	if st := e.GetStatus(); st != kujiv1.Status_STATUS_OK && e.GetKind() != "due" {
		line = append(line, contract.Word(st))
	}
	return strings.Join(line, " ")
}

// holdSession is about the catalog holdCatalog. Times are left out: see untimed.
var holdSession = redisSteps{
	{"DRAW ann shop COUNT 2 HOLD_MS 60000 ID d", dict{"status": "ok", "paid": dict{"coin": int64(20)}, "outcomes": []any{dict{"entry": "prize", "items": dict{"prize": int64(1)}}, dict{"entry": "prize", "items": dict{"prize": int64(1)}, "draw": int64(1)}},
		"hold": dict{"hold": "d", "state": "open", "parts": []any{dict{"kind": "draw", "player": "ann", "gives": dict{"prize": int64(2)}}}}}},
	{"DRAW ann shop REFUND ID r HOLD_MS 60000", dict{"status": "ok",
		"hold": dict{"hold": "r", "state": "open", "refund": true, "parts": []any{dict{"kind": "draw", "player": "ann", "pool": "shop", "draws": int64(1), "takes": dict{"coin": int64(10)}}}}}},
	{"DRAW ann shop REFUND ID x", errors.New("INVALID hold_ms: 0 milliseconds")},
	{"DRAW ann shop HOLD_MS 999", errors.New(`INVALID HOLD_MS: "999", want a whole number from 1000 to 2592000000`)},
	{"DRAW ann shop REFUND REFUND", errors.New("INVALID REFUND: twice")},
	{"CONSUME ann gem 1 coin 2 HOLD_MS 60000 REFUND ID c", dict{"status": "ok",
		"hold": dict{"hold": "c", "state": "open", "refund": true, "parts": []any{dict{"kind": "consume", "player": "ann", "takes": dict{"gem": int64(1), "coin": int64(2)}}}}}},
	{"CONSUME ann gem 1 HOLD_MS 60000", errors.New("INVALID request_id: empty; a hold needs a request id")},
	{"CONSUME ann gem 1 HOLD_MS", errors.New("INVALID items[1].quantity: is missing")},
	{"CONSUME ann gem 1 ID", errors.New("INVALID items[1].quantity: is missing")},
	{"TRANSFER ann bob gem 1 ID t HOLD_MS 60000", dict{"status": "ok",
		"hold": dict{"hold": "t", "state": "open", "parts": []any{dict{"kind": "transfer", "player": "ann", "to": "bob", "takes": dict{"gem": int64(1)}}}}}},
	{"HOLD t", dict{"hold": "t", "state": "open", "parts": []any{dict{"kind": "transfer", "player": "ann", "to": "bob", "takes": dict{"gem": int64(1)}}}}},
	{"HOLD nothing", errors.New("NOTFOUND hold: ")},
	{"HOLDS PLAYER ann AFTER 0 r LIMIT 1", dict{"holds": []any{dict{"hold": "t", "state": "open", "parts": []any{dict{"kind": "transfer", "player": "ann", "to": "bob", "takes": dict{"gem": int64(1)}}}}}}},
	{"HOLDS AFTER 99999999999999 x", dict{}},
	{"HOLDS AFTER 5", errors.New("INVALID hold: is missing")},
	{"HOLDS PLAYER bob", dict{}},
	{"CONFIRM d ID d1", dict{"status": "ok", "given": dict{"items": dict{"prize": int64(2)}}, "hold": dict{"hold": "d", "state": "confirmed", "by": "d1"}}},
	{"CONFIRM d ID d1", dict{"status": "ok", "replayed": true, "given": dict{"items": dict{"prize": int64(2)}}, "hold": dict{"hold": "d", "state": "confirmed", "by": "d1"}}},
	{"CANCEL d", dict{"status": "hold_ended", "hold": dict{"hold": "d", "state": "confirmed", "by": "d1"}}},
	{"CANCEL r", dict{"status": "ok", "hold": dict{"hold": "r", "state": "cancelled", "refund": true}}},
	{"CANCEL nothing", dict{"status": "unknown_hold"}},
	{"CONFIRM", errors.New("INVALID 0 arguments, want CONFIRM hold [ID id]")},
	{"MULTI", "OK"},
	{"CONSUME ann gem 1 HOLD_MS 60000 ID g", "QUEUED"},
	{"DRAW bob shop REFUND", "QUEUED"},
	{"EXEC", []any{
		dict{"status": "ok", "hold": dict{"hold": "g", "state": "open", "refund": true, "parts": []any{dict{"kind": "consume", "player": "ann", "takes": dict{"gem": int64(1)}}}}},
		dict{"status": "ok", "hold": dict{"hold": "g", "state": "open", "refund": true, "parts": []any{dict{"kind": "draw", "player": "bob", "pool": "shop", "draws": int64(1), "takes": dict{"coin": int64(10)}}}}}}},
	{"MULTI", "OK"},
	{"CONSUME ann gem 1 HOLD_MS 60000 ID g", "QUEUED"},
	{"DRAW bob shop HOLD_MS 1000", errors.New("INVALID HOLD_MS: the group has one already")},
	{"EXEC", errors.New("EXECABORT ")},
	{"MULTI", "OK"},
	{"CONFIRM g", errors.New("INVALID CONFIRM in a group, want ")},
	{"DISCARD", "OK"},
}
