package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func upper(s string) string { return strings.ToUpper(s) }

func asConnect(err error, ce **connect.Error) bool { return errors.As(err, ce) }

// TestStatuses brings about every status that a command can end with, and
// checks code and attached result.
func TestStatuses(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[0].reward
	draw := func(player, pool string, count uint32) error {
		_, err := c.Draw(ctx, &kujiv1.DrawRequest{Player: player, Pool: pool, Count: count})
		return err
	}
	for _, pool := range []string{"last", "once"} {
		if err := draw("ann", pool, 1); err != nil {
			t.Fatal(err)
		}
	}
	pay := func(pool, item string) error {
		_, err := c.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: pool, Pay: item})
		return err
	}
	grant := func(item string, n uint64) error {
		_, err := c.Grant(ctx, &kujiv1.GrantRequest{Player: "ann", Items: []*kujiv1.Stack{{Item: item, Quantity: n}}})
		return err
	}
	if _, err := clients(t, f.url)[0].admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: "caps", Codes: []string{"one", "two"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients(t, f.url)[0].admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: "old", Codes: []string{"late"}}); err != nil {
		t.Fatal(err)
	}
	redeem := func(player, code string) error {
		_, err := c.Redeem(ctx, &kujiv1.RedeemRequest{Player: player, Code: code})
		return err
	}
	if err := redeem("ann", "ONE"); err != nil {
		t.Fatal(err)
	}
	seen := map[kujiv1.Status]bool{}
	for _, tt := range []struct {
		status  kujiv1.Status
		subject string
		code    connect.Code
		err     error
	}{
		{kujiv1.Status_STATUS_SOLD_OUT, "last", connect.CodeFailedPrecondition, draw("ann", "last", 1)},
		{kujiv1.Status_STATUS_LIMIT_REACHED, "once", connect.CodeResourceExhausted, draw("ann", "once", 1)},
		{kujiv1.Status_STATUS_INSUFFICIENT_ITEMS, "gem", connect.CodeFailedPrecondition, draw("ann", "dear", 1)},
		{kujiv1.Status_STATUS_NOT_STARTED, "future", connect.CodeFailedPrecondition, draw("ann", "future", 1)},
		{kujiv1.Status_STATUS_ENDED, "past", connect.CodeFailedPrecondition, draw("ann", "past", 1)},
		{kujiv1.Status_STATUS_COUNT_TOO_LARGE, "standard", connect.CodeOutOfRange, draw("ann", "standard", 11)},
		{kujiv1.Status_STATUS_NOT_ELIGIBLE, "vip", connect.CodeFailedPrecondition, draw("ann", "vip", 1)},
		{kujiv1.Status_STATUS_PRICE_NOT_OFFERED, "sword", connect.CodeFailedPrecondition, pay("choice", "sword")},
		{kujiv1.Status_STATUS_CODE_REQUIRED, "caps", connect.CodeFailedPrecondition, draw("ann", "caps", 1)},
		{kujiv1.Status_STATUS_CODE_REDEEMED, "caps", connect.CodeFailedPrecondition, redeem("ann", "one")},
		{kujiv1.Status_STATUS_CODE_USED_UP, "caps", connect.CodeFailedPrecondition, redeem("bob", "one")},
		{kujiv1.Status_STATUS_CODE_EXPIRED, "old", connect.CodeFailedPrecondition, redeem("bob", "late")},
		{kujiv1.Status_STATUS_UNKNOWN_CODE, "", connect.CodeNotFound, redeem("bob", "three")},
		{kujiv1.Status_STATUS_TOO_MANY_GUESSES, "", connect.CodeResourceExhausted, redeem("bob", "two")},
		{kujiv1.Status_STATUS_BALANCE_OVERFLOW, "gem", connect.CodeFailedPrecondition, grant("gem", kuji.MaxQuantity)},
	} {
		seen[tt.status] = true
		if connect.CodeOf(tt.err) != tt.code {
			t.Errorf("%v: code %v (%v), want %v", tt.status, connect.CodeOf(tt.err), tt.err, tt.code)
			continue
		}
		d := detail(t, tt.err)
		if d.GetReason() != kujiv1.Reason_REASON_STATUS || d.GetResult().GetStatus() != tt.status ||
			d.GetResult().GetSubject() != tt.subject || d.GetResult().GetReceipt().GetPosition() == 0 {
			t.Errorf("%v: detail %v, want subject %q and a receipt", tt.status, d, tt.subject)
		}
	}
	for st := range server.StatusAnswers() {
		if !seen[server.StatusProto(st)] && st != kuji.Aborted { // of members only
			t.Errorf("nothing here brings about %v", st)
		}
	}
}

// TestStatusNumbers holds the contract's statuses against the engine's.
func TestStatusNumbers(t *testing.T) {
	for st := kuji.OK; st <= kuji.CodeRequired; st++ {
		if strings.HasPrefix(st.String(), "status(") {
			continue // a number that is no longer in use
		}
		want := "STATUS_" + upper(st.String())
		if got := server.StatusProto(st).String(); got != want {
			t.Errorf("%v is %s in the contract, want %s", st, got, want)
		}
		if _, ok := server.StatusAnswers()[st]; !ok && st != kuji.OK {
			t.Errorf("status %v has no code", st)
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
