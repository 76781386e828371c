package server_test

import (
	"context"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func drawCommand(id, player, pool string, count uint32) *kujiv1.Command {
	return &kujiv1.Command{RequestId: id, Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: player, Pool: pool, Count: count}}}
}

// expand writes out what a batch's answer refers to.
func expand(t testing.TB, res *kujiv1.BatchResponse, i int) *kujiv1.Result {
	t.Helper()
	b := res.GetResults()[i]
	out := &kujiv1.Result{Status: b.GetStatus(), Subject: b.GetSubject(), Members: b.GetMembers(), Replayed: b.GetReplayed(), Paid: b.GetPaid(), Limit: b.GetLimit(), Lacks: b.GetLacks()}
	for i, place := range b.GetOutcomes() {
		o := proto.CloneOf(res.GetOutcomes()[place])
		if o.Draw = uint32(i); len(b.GetOutcomeDraws()) > 0 {
			o.Draw = b.GetOutcomeDraws()[i]
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	if b.Receipt != nil {
		out.Receipt = proto.Clone(res.GetReceipts()[b.GetReceipt()]).(*kujiv1.Receipt)
		out.Receipt.Index = b.GetIndex()
	}
	return out
}

func TestBatch(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	all := clients(t, f.url)
	sword := []*kujiv1.Stack{{Item: "sword", Quantity: 1}}
	req := &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
		drawCommand("0", "ann", "standard", 10),
		drawCommand("1", "ann", "last", 1),
		drawCommand("2", "bob", "last", 1),     // sold out
		drawCommand("3", "", "free", 1),        // malformed
		{RequestId: "4"},                       // empty
		drawCommand("0", "ann", "standard", 9), // id reused
		{RequestId: "6", Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{Player: "bob", Items: sword}}},
		{RequestId: "7", Command: &kujiv1.Command_Consume{Consume: &kujiv1.Consume{Player: "bob", Items: sword}}},
		{RequestId: "8", Command: &kujiv1.Command_Transfer{Transfer: &kujiv1.Transfer{From: "ann", To: "bob", Items: sword}}},
		{RequestId: "9", Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: []*kujiv1.Member{
			{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "bob", Pool: "free", Count: 2}}},
			{Command: &kujiv1.Member_Consume{Consume: &kujiv1.Consume{Player: "bob", Items: sword}}},
		}}}},
		{RequestId: "10", Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: []*kujiv1.Member{{}}}}}, // empty member
		drawCommand("1", "ann", "last", 1), // the same again
	}}
	const ok, refused = kujiv1.Status_STATUS_OK, kujiv1.Status_STATUS_REFUSED
	want := []kujiv1.Status{ok, ok, kujiv1.Status_STATUS_SOLD_OUT, refused, refused, refused, ok, ok, ok, ok, refused, ok}
	res, err := all[0].reward.Batch(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.GetResults()) != len(want) {
		t.Fatalf("%d results for %d commands", len(res.GetResults()), len(want))
	}
	for i, b := range res.GetResults() {
		if b.GetStatus() != want[i] {
			t.Errorf("result %d: %v, want %v", i, b.GetStatus(), want[i])
		}
		if isRefused := want[i] == refused; isRefused != (b.Receipt == nil) || isRefused != (b.Error != nil) {
			t.Errorf("result %d (%v): receipt %v, error %v: want exactly one of them", i, b.GetStatus(), b.Receipt, b.Error)
		}
	}
	for i, reason := range map[int]kujiv1.Reason{3: kujiv1.Reason_REASON_INVALID, 4: kujiv1.Reason_REASON_INVALID, 5: kujiv1.Reason_REASON_ID_REUSED, 10: kujiv1.Reason_REASON_INVALID} {
		if got := res.GetResults()[i].GetError(); got.GetReason() != reason {
			t.Errorf("result %d: %v, want %v", i, got, reason)
		}
	}
	first := expand(t, res, 0)
	if len(first.GetOutcomes()) != 10 {
		t.Errorf("first draw: %v, want 10 outcomes", first)
	}
	if len(res.GetOutcomes()) > 4 {
		t.Errorf("%d outcomes in the table for three different ones", len(res.GetOutcomes()))
	}
	if m := res.GetResults()[9].GetMembers(); len(m) != 2 || len(m[0].GetOutcomes()) != 2 {
		t.Errorf("members of the group: %v", m)
	}
	if last := expand(t, res, 11); !last.GetReplayed() || diff(expand(t, res, 1).GetReceipt(), last.GetReceipt()) != "" {
		t.Errorf("the repeated command: %v, want the answer of the first, replayed", last)
	}
	// Unary answers for the same ids say the same, through every protocol.
	for _, c := range all {
		got, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: "0", Player: "ann", Pool: "standard", Count: 10})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		first.Replayed = true
		if d := diff(first, got.GetResult()); d != "" {
			t.Errorf("%s: the unary answer differs from the batch's:\n%s", c.name, d)
		}
		again, err := c.reward.Batch(ctx, req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, b := range again.GetResults() {
			if b.GetStatus() != want[i] || b.GetReplayed() != (want[i] != refused) {
				t.Errorf("%s: the same batch again: result %d is %v", c.name, i, b)
			}
			x, y := expand(t, res, i), expand(t, again, i)
			x.Replayed = y.Replayed
			if d := diff(x, y); d != "" {
				t.Errorf("%s: the same batch again: result %d differs:\n%s", c.name, i, d)
			}
		}
	}
}

func TestBatchCounts(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)
	batch := func(n int) *kujiv1.BatchRequest {
		req := &kujiv1.BatchRequest{}
		for i := range n {
			req.Commands = append(req.Commands, drawCommand(fmt.Sprintf("a-request-id-that-is-as-long-as-sixty-four-bytes-allow-%09d", i), fmt.Sprintf("player-%d", i%100), "free", 1))
		}
		return req
	}
	for _, n := range []int{0, kuji.MaxBatch + 1} {
		_, err := c[4].reward.Batch(ctx, batch(n))
		if connect.CodeOf(err) != connect.CodeInvalidArgument || detail(t, err).GetViolations()[0].GetField() != "commands" {
			t.Errorf("%d commands: %v, want invalid_argument for commands", n, err)
		}
	}
	many := func(n int) *kujiv1.BatchRequest {
		req := &kujiv1.BatchRequest{}
		for range n {
			req.Commands = append(req.Commands, drawCommand("", "ann", "free", kuji.MaxDrawCount))
		}
		return req
	}
	most := many(server.MaxBatchOutcomes / kuji.MaxDrawCount)
	res, err := c[4].reward.Batch(ctx, most)
	if err != nil || len(res.GetResults()) != len(most.GetCommands()) {
		t.Errorf("as many outcomes as are allowed: %d results, %v", len(res.GetResults()), err)
	}
	inGroup := &kujiv1.Command{Command: &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: []*kujiv1.Member{
		{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "free"}}}}}}}
	for name, more := range map[string]*kujiv1.Command{"draw": drawCommand("", "ann", "free", 0), "group": inGroup} {
		req := many(server.MaxBatchOutcomes / kuji.MaxDrawCount)
		req.Commands = append(req.Commands, more)
		_, err := c[4].reward.Batch(ctx, req)
		if connect.CodeOf(err) != connect.CodeInvalidArgument || detail(t, err).GetViolations()[0].GetField() != "commands" {
			t.Errorf("one outcome too many, by a %s: %v, want invalid_argument for commands", name, err)
		}
	}
	for _, i := range []int{1, 4} { // JSON, gRPC
		res, err := c[i].reward.Batch(ctx, batch(kuji.MaxBatch))
		if err != nil {
			t.Fatalf("%s: the largest batch: %v", c[i].name, err)
		}
		if len(res.GetResults()) != kuji.MaxBatch || len(res.GetOutcomes()) != 1 {
			t.Errorf("%s: %d results, %d outcomes, want %d and 1", c[i].name, len(res.GetResults()), len(res.GetOutcomes()), kuji.MaxBatch)
		}
		for j, b := range res.GetResults() {
			if b.GetStatus() != kujiv1.Status_STATUS_OK {
				t.Fatalf("%s: result %d: %v", c[i].name, j, b)
			}
		}
	}
}

// TestBatchOutcomes draws from pools whose entries share ids and whose
// quantities vary, and checks the tables against unary answers.
func TestBatchOutcomes(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[4]
	_, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(`
kuji: 1
items: {gem: {kind: currency}, sword: {name: Sword}}
pools:
  a:
    entries:
      - {id: same, weight: 1, reward: {items: {gem: {min: 1, max: 3}}}}
      - {id: nest, weight: 1, reward: {pool: b}}
  b:
    entries:
      - {id: same, weight: 1, reward: {items: {sword: 1, gem: 5}}}
      - {id: none, weight: 1, reward: nothing}
`)})
	if err != nil {
		t.Fatal(err)
	}
	req := &kujiv1.BatchRequest{}
	for i := range 200 {
		req.Commands = append(req.Commands, drawCommand(fmt.Sprint(i), "ann", []string{"a", "b"}[i%2], 5))
	}
	draw := func(i int) *kujiv1.Result {
		d := req.Commands[i].GetDraw()
		got, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: fmt.Sprint(i), Player: d.GetPlayer(), Pool: d.GetPool(), Count: d.GetCount()})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetResult()
	}
	for i := 0; i < len(req.Commands); i += 7 { // answered before, each at a position of its own
		draw(i)
	}
	res, err := c.reward.Batch(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if got, atLeast := len(res.GetReceipts()), len(req.Commands)/7; got <= atLeast {
		t.Errorf("%d receipts, want more than %d", got, atLeast)
	}
	for i := range req.Commands {
		want := expand(t, res, i)
		if want.GetReplayed() != (i%7 == 0) {
			t.Errorf("command %d: replayed %v", i, want.GetReplayed())
		}
		want.Replayed = true
		if d := diff(want, draw(i)); d != "" {
			t.Fatalf("command %d:\n%s", i, d)
		}
	}
}
