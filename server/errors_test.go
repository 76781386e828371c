package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func upper(s string) string { return strings.ToUpper(s) }

func asConnect(err error, ce **connect.Error) bool { return errors.As(err, ce) }

// TestStatuses brings about every status that a command can end with. It is a result, with a receipt
// and code 200, whatever the protocol.
func TestStatuses(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	applyTo(t, f, "quests", `{kuji: 1, items: {gem: {}, pass: {lasts: 1h, extend: true}}, counters: {wins: {}},
		pools: {empty: {internal: true, entries: [{id: e, weight: 1, stock: 1}]}, e: {entries: [{id: e, weight: 1}]}},
		quests: {last: {reward: {pool: empty}}, far: {needs: {wins: 1}}, near: {reward: {items: {gem: 1}}}, empty: {reward: {pool: empty}}}}`)
	var mailed strings.Builder // items, each of which makes a letter
	for i := range kuji.MaxMail + 1 {
		fmt.Fprintf(&mailed, "m%d: {most: 1, beyond: mail}, ", i)
	}
	applyTo(t, f, "mail", "{kuji: 1, items: {"+mailed.String()+"crate: {most: 1}}}")
	fullRound(t, f)
	holdRealm(t, f, "holds")
	applyTo(t, f, "names", nameCatalog)
	for _, named := range clients(t, f.url) {
		t.Run(named.name, func(t *testing.T) { statuses(ctx, t, named) })
	}
	code, body := send(t, h1(t), "POST", f.url+"/kuji.v1.RewardService/Draw", `{"player": "ann", "pool": "once"}`, "Content-Type", "application/json")
	if code != 200 || !strings.Contains(body, "STATUS_LIMIT_REACHED") {
		t.Errorf("a draw beyond a limit gets %d %s, want 200 and the status", code, body)
	}
}

// fullRound makes a realm with a round that is open and has as many entrants as a later catalog lets in: one that is full
// is settled before anybody else can join.
func fullRound(t *testing.T, f *fixture) {
	t.Helper()
	source := `{kuji: 1, items: {gem: {}, coin: {}}, rounds: {full: {ticket: {}, entrants: {max: 3}, winner: {reward: {items: {gem: 1}}}},
		one: {ticket: {}, one: true, winner: {reward: {items: {gem: 1}}}}, duel: {stake: {item: gem}, winner: {gets: everything}},
		prize: {ticket: {}, winner: {reward: {items: {gem: 1}}, rerolls: {most: 1, within: 1h}}}}}`
	r := applyTo(t, f, "rounds", source)
	for _, req := range []kuji.Request{kuji.OpenRound{Round: "full", Player: "ann", Tickets: 1}, kuji.Join{Round: "full", Player: "bob"}} {
		if _, err := r.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	applyTo(t, f, "rounds", strings.Replace(source, "max: 3", "max: 2", 1))
}

// rounds is what a client asks for about rounds, as statuses needs it.
func (c client) rounds(ctx context.Context, t *testing.T) (open func(player, round string) *kujiv1.Result, join func(round string, item string) *kujiv1.Result) {
	result := func(res interface{ GetResult() *kujiv1.Result }, err error) *kujiv1.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return res.GetResult()
	}
	open = func(player, round string) *kujiv1.Result {
		tickets := uint64(min(1, len(player)))
		return result(c.reward.OpenRound(ctx, &kujiv1.OpenRoundRequest{Realm: "rounds", Round: round, Player: player, Tickets: tickets}))
	}
	join = func(round, item string) *kujiv1.Result {
		q := &kujiv1.JoinRequest{Realm: "rounds", Round: round, Player: c.name}
		if item != "" {
			q.Stake = []*kujiv1.Stack{{Item: item, Quantity: 1}}
		}
		return result(c.reward.Join(ctx, q))
	}
	result(c.reward.Grant(ctx, &kujiv1.GrantRequest{Realm: "rounds", Player: c.name, Items: []*kujiv1.Stack{{Item: "coin", Quantity: 1}}}))
	return open, join
}

func statuses(ctx context.Context, t *testing.T, c client) {
	result := func(res interface{ GetResult() *kujiv1.Result }, err error) *kujiv1.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return res.GetResult()
	}
	draw := func(player, pool string, count uint32) *kujiv1.Result {
		return result(c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: player, Pool: pool, Count: count}))
	}
	draw("ann", "last", 1)
	draw("ann", "once", 1)
	pay := func(pool, item string) *kujiv1.Result {
		return result(c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: pool, Pay: item}))
	}
	grant := func(item string, n uint64) *kujiv1.Result {
		return result(c.reward.Grant(ctx, &kujiv1.GrantRequest{Player: "ann", Items: []*kujiv1.Stack{{Item: item, Quantity: n}}}))
	}
	for list, codes := range map[string][]string{"caps": {"one" + c.name, "two" + c.name}, "old": {"late" + c.name}} {
		if _, err := c.admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: list, Codes: codes}); err != nil {
			t.Fatal(err)
		}
	}
	redeem := func(player, code string) *kujiv1.Result {
		return result(c.reward.Redeem(ctx, &kujiv1.RedeemRequest{Player: player, Code: code + c.name}))
	}
	claim := func(quest string) *kujiv1.Result {
		return result(c.reward.Claim(ctx, &kujiv1.ClaimRequest{Realm: "quests", Player: "ann", Quest: quest}))
	}
	claim("near")
	claim("last")
	give := func(item string, n uint64) *kujiv1.Result {
		return result(c.reward.Grant(ctx, &kujiv1.GrantRequest{Realm: "mail", Player: c.name, Items: []*kujiv1.Stack{{Item: item, Quantity: n}}}))
	}
	for i := range kuji.MaxMail {
		give(fmt.Sprintf("m%d", i), 2)
	}
	passes := make([]*kujiv1.Command, 100) // each goes at another time
	for i := range passes {
		passes[i] = &kujiv1.Command{Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: c.name, Items: []*kujiv1.Stack{{Item: "pass", Quantity: 1}}}}}
	}
	if _, err := c.reward.Batch(ctx, &kujiv1.BatchRequest{Realm: "quests", Commands: passes}); err != nil {
		t.Fatal(err)
	}
	open, join := c.rounds(ctx, t)
	open("", "duel")
	open("", "one")
	open("dan", "prize")
	won := result(c.reward.Settle(ctx, &kujiv1.SettleRequest{Realm: "rounds", Round: "prize"})).GetRound().GetNumber()
	crowded := open("eve", "prize").GetRound().GetNumber()
	for range 100 {
		open("busy"+c.name, "prize")
	}
	hold := func(player, id string) *kujiv1.Result {
		return result(c.reward.Draw(ctx, &kujiv1.DrawRequest{Realm: "holds", RequestId: id + c.name, Player: player + c.name, Pool: "coded", HoldMs: 60_000}))
	}
	hold("done", "done")
	result(c.reward.Cancel(ctx, &kujiv1.CancelRequest{Realm: "holds", Hold: "done" + c.name}))
	many := make([]*kujiv1.Command, kuji.MaxPlayerHolds)
	for i := range many {
		d := &kujiv1.Draw{Player: "much" + c.name, Pool: "free", HoldMs: 60_000}
		many[i] = &kujiv1.Command{RequestId: fmt.Sprint(c.name, i), Command: &kujiv1.Command_Draw{Draw: d}}
	}
	if _, err := c.reward.Batch(ctx, &kujiv1.BatchRequest{Realm: "holds", Commands: many}); err != nil {
		t.Fatal(err)
	}
	guesser := "bob" + c.name
	redeem("ann", "ONE")
	seen := map[kuji.Status]bool{kuji.Aborted: true} // of members only
	for _, tt := range []struct {
		status  kuji.Status
		subject string
		got     *kujiv1.Result
	}{
		{kuji.SoldOut, "last", draw("ann", "last", 1)},
		{kuji.LimitReached, "once", draw("ann", "once", 1)},
		{kuji.InsufficientItems, "gem", draw("ann", "dear", 1)},
		{kuji.NotStarted, "future", draw("ann", "future", 1)},
		{kuji.Ended, "past", draw("ann", "past", 1)},
		{kuji.CountTooLarge, "standard", draw("ann", "standard", 11)},
		{kuji.NotEligible, "vip", draw("ann", "vip", 1)},
		{kuji.PriceNotOffered, "sword", pay("choice", "sword")},
		{kuji.CodeRequired, "caps", draw("ann", "caps", 1)},
		{kuji.CodeRedeemed, "caps", redeem("ann", "one")},
		{kuji.CodeUsedUp, "caps", redeem(guesser, "one")},
		{kuji.CodeExpired, "old", redeem(guesser, "late")},
		{kuji.UnknownCode, "", redeem(guesser, "three")},
		{kuji.TooManyGuesses, "", redeem(guesser, "two")},
		{kuji.NotReached, "far", claim("far")},
		{kuji.AlreadyClaimed, "near", claim("near")},
		{kuji.RewardUnavailable, "empty", claim("empty")},
		{kuji.TooManyLots, "pass", result(c.reward.Grant(ctx, &kujiv1.GrantRequest{Realm: "quests", Player: c.name, Items: []*kujiv1.Stack{{Item: "pass", Quantity: 1}}}))},
		{kuji.MostReached, "crate", give("crate", 2)},
		{kuji.MailboxFull, "m100", give("m100", 2)},
		{kuji.NothingToCollect, "", result(c.reward.Collect(ctx, &kujiv1.CollectRequest{Realm: "mail", Player: c.name}))},
		{kuji.UnknownRound, "", result(c.reward.Settle(ctx, &kujiv1.SettleRequest{Realm: "rounds", Round: "duel", Number: 1}))},
		{kuji.RoundClosed, "", result(c.reward.CancelRound(ctx, &kujiv1.CancelRoundRequest{Realm: "rounds", Round: "prize", Number: won}))},
		{kuji.NobodyLeft, "", result(c.reward.Reroll(ctx, &kujiv1.RerollRequest{Realm: "rounds", Round: "prize", Number: won}))},
		{kuji.AlreadyJoined, "", result(c.reward.Join(ctx, &kujiv1.JoinRequest{Realm: "rounds", Round: "prize", Number: crowded, Player: "eve"}))},
		{kuji.RoundFull, "", join("full", "")},
		{kuji.WrongStake, "", join("duel", "coin")},
		{kuji.AlreadyOpen, "", open("", "one")},
		{kuji.TooManyRounds, "", open("busy"+c.name, "prize")},
		{kuji.UnknownHold, "", result(c.reward.Confirm(ctx, &kujiv1.ConfirmRequest{Realm: "holds", Hold: "nothing"}))},
		{kuji.HoldEnded, "", result(c.reward.Confirm(ctx, &kujiv1.ConfirmRequest{Realm: "holds", Hold: "done" + c.name}))},
		{kuji.TooManyHolds, "", hold("much", "more")},
		{kuji.BalanceOverflow, "gem", grant("gem", kuji.MaxQuantity)},
	} {
		seen[tt.status] = true
		if tt.got.GetStatus() != server.StatusProto(tt.status) || tt.got.GetSubject() != tt.subject || tt.got.GetReceipt().GetPosition() == 0 {
			t.Errorf("%v, want %v of %q and a receipt", tt.got, tt.status, tt.subject)
		}
		if (tt.got.GetLimit() != nil) != (tt.status == kuji.LimitReached) || (tt.got.GetLacks() != nil) != (tt.status == kuji.InsufficientItems) {
			t.Errorf("%v says why: %v, %v", tt.status, tt.got.GetLimit(), tt.got.GetLacks())
		}
	}
	for st, got := range c.names(ctx, t) {
		seen[st] = true
		if got.GetStatus() != server.StatusProto(st) || got.GetSubject() != "" || got.GetReceipt().GetPosition() == 0 {
			t.Errorf("%v, want %v and a receipt", got, st)
		}
	}
	for _, st := range statusesOf()[1:] {
		if !seen[st] {
			t.Errorf("nothing here brings about %v", st)
		}
	}
}

// statusesOf returns the statuses that the log of an engine can have, from OK on.
func statusesOf() (all []kuji.Status) {
	for st := kuji.OK; st < kuji.Refused; st++ {
		if st.String() != fmt.Sprintf("status(%d)", uint8(st)) {
			all = append(all, st)
		}
	}
	return all
}

// TestStatusNumbers holds the contract's statuses against the engine's.
func TestStatusNumbers(t *testing.T) {
	for _, st := range statusesOf() {
		want := "STATUS_" + upper(st.String())
		if got := server.StatusProto(st).String(); got != want {
			t.Errorf("%v is %s in the contract, want %s", st, got, want)
		}
	}
	if got := server.StatusProto(kuji.Refused); got != kujiv1.Status_STATUS_REFUSED {
		t.Errorf("refused is %v", got)
	}
}

func TestErrorMapping(t *testing.T) {
	f := newServer(t, server.Options{})
	withID, withoutID := &kujiv1.DrawRequest{RequestId: "r"}, &kujiv1.DrawRequest{}
	mixed := &kujiv1.BatchRequest{Commands: []*kujiv1.Command{{RequestId: "r"}, {}}}
	allIDs := &kujiv1.BatchRequest{Commands: []*kujiv1.Command{{RequestId: "r"}, {RequestId: "s"}}}
	coded := func(c kuji.Code) error { return &kuji.Error{Code: c, Field: "player", Message: "why"} }
	for _, tt := range []struct {
		err     error
		request any
		code    connect.Code
		reason  kujiv1.Reason
	}{
		{coded(kuji.CodeInvalid), withID, connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID},
		{coded(kuji.CodeNotFound), withID, connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND},
		{coded(kuji.CodeIDReused), withID, connect.CodeAlreadyExists, kujiv1.Reason_REASON_ID_REUSED},
		{coded(kuji.CodeTooOld), withID, connect.CodeOutOfRange, kujiv1.Reason_REASON_TOO_OLD},
		{coded(kuji.CodeConflict), withID, connect.CodeFailedPrecondition, kujiv1.Reason_REASON_CONFLICT},
		{coded(kuji.CodeOverloaded), withoutID, connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED},
		{coded(kuji.CodeUnknownOutcome), withID, connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME},
		{coded(kuji.CodeUnknownOutcome), withoutID, connect.CodeUnknown, kujiv1.Reason_REASON_UNKNOWN_OUTCOME},
		{coded(kuji.CodeUnknownOutcome), allIDs, connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME},
		{coded(kuji.CodeUnknownOutcome), mixed, connect.CodeUnknown, kujiv1.Reason_REASON_UNKNOWN_OUTCOME},
		{coded(kuji.CodeUnknownOutcome), &kujiv1.GetPlayerRequest{}, connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME},
		{coded(kuji.CodeFailed), withID, connect.CodeUnavailable, kujiv1.Reason_REASON_FAILED},
		{coded(kuji.CodeClosed), withID, connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED},
		{coded(kuji.CodeCorrupt), withID, connect.CodeDataLoss, kujiv1.Reason_REASON_CORRUPT},
		{coded(kuji.CodeCanceled), withID, connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED},
		{&kuji.Error{Code: kuji.CodeCanceled, Err: context.DeadlineExceeded}, withID, connect.CodeDeadlineExceeded, kujiv1.Reason_REASON_CANCELED},
		{fmt.Errorf("wrapped: %w", coded(kuji.CodeNotFound)), withID, connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND},
		{context.Canceled, withID, connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED},
		{context.DeadlineExceeded, nil, connect.CodeDeadlineExceeded, kujiv1.Reason_REASON_CANCELED},
		{errors.New("secret"), withID, connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL},
	} {
		got := f.server.ConnectError(tt.err, tt.request)
		if got.Code() != tt.code || detail(t, got).GetReason() != tt.reason {
			t.Errorf("%v for %T: %v with %v, want %v with %v", tt.err, tt.request, got.Code(), detailOf(got), tt.code, tt.reason)
		}
		if got.Message() == "secret" {
			t.Error("the text of an unexpected error reaches the client")
		}
	}
	engine, err := kuji.Open("", kuji.Options{Driver: drivertest.NewShared(drivertest.SharedOptions{}).Node(1), Key: [32]byte{1}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() }) // it has nothing
	one := newServerOn(t, engine, server.Options{Cluster: &shared{}})
	if got := one.server.ConnectError(coded(kuji.CodeFailed), withID); got.Code() != connect.CodeUnavailable || detail(t, got).GetReason() != kujiv1.Reason_REASON_CLOSED {
		t.Errorf("a realm that stopped, and that another process takes over: %v with %v", got.Code(), detailOf(got))
	}
	for c := kuji.Code(1); c.String() != fmt.Sprintf("code(%d)", uint8(c)); c++ {
		if _, ok := server.CodeAnswers()[c]; !ok {
			t.Errorf("engine code %v has no answer", c)
		}
	}
}

// TestViolations checks that an invalid argument names its field.
func TestViolations(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[4]
	long := string(make([]byte, 65))
	stack := func(n uint64) *kujiv1.Stack { return &kujiv1.Stack{Item: "gem", Quantity: n} }
	for _, tt := range []struct {
		name, field string
		call        func() error
	}{
		{"long request id", "request_id", func() error {
			_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: long, Player: "ann", Pool: "free"})
			return err
		}},
		{"no player", "player", func() error {
			_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Pool: "free"})
			return err
		}},
		{"count", "count", func() error {
			_, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "free", Count: 1 << 31})
			return err
		}},
		{"quantity", "items[1].quantity", func() error {
			_, err := c.reward.Grant(ctx, &kujiv1.GrantRequest{Player: "ann", Items: []*kujiv1.Stack{{Item: "sword", Quantity: 1}, stack(0)}})
			return err
		}},
		{"empty member", "members[0]", func() error {
			_, err := c.reward.Atomic(ctx, &kujiv1.AtomicRequest{Members: []*kujiv1.Member{{}}})
			return err
		}},
		{"no realm to create", "realm", func() error {
			_, err := c.admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{})
			return err
		}},
		{"page", "entry_limit", func() error {
			_, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "free", EntryLimit: server.MaxPage + 1})
			return err
		}},
		{"item page", "item_limit", func() error {
			_, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{ItemLimit: server.MaxPage + 1})
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.call()
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Fatalf("%v, want invalid_argument", err)
			}
			v := detail(t, err).GetViolations()
			if len(v) != 1 || v[0].GetField() != tt.field || v[0].GetDescription() == "" {
				t.Errorf("violations %v, want one of %q", v, tt.field)
			}
		})
	}
}
