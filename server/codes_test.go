package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

const couponCatalog = `
kuji: 1
items: {coin: {}}
pools:
  splash:
    mode: each
    entries: [{id: coupon, chance: 100, reward: {code: ten-percent}}]
`

// TestCodes imports codes, draws them one by one and in a batch, each once, and
// exports who got them.
func TestCodes(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	for i, c := range clients(t, f.url) {
		list := fmt.Sprint("list-", i)
		yaml := strings.Replace(couponCatalog, "ten-percent", list, 1)
		if _, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml)}); err != nil {
			t.Fatal(err)
		}
		codes := []string{"SECRET-0", "SECRET-1", "SECRET-2", "SECRET-3"}
		in, err := c.admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: list, Codes: append(codes, codes...)})
		if err != nil || in.GetAdded() != 4 || in.GetList().GetCodes() != 4 {
			t.Fatal(in, err)
		}
		one, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "splash"})
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.reward.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			drawCommand("", "bob", "splash", 2), drawCommand("", "cyd", "splash", 2),
		}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range []*kujiv1.Result{one.GetResult(), expand(t, res, 0), expand(t, res, 1)} {
			for _, o := range r.GetOutcomes() {
				for _, code := range o.GetCodes() {
					if code.GetList() != list || code.GetNumber() != uint64(len(got)) {
						t.Errorf("number %d of list %q", code.GetNumber(), code.GetList())
					}
					got = append(got, code.GetCode())
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(codes) {
			t.Errorf("gave %v, want %v", got, codes)
		}
		state, err := c.admin.GetCodes(ctx, &kujiv1.GetCodesRequest{List: list})
		if err != nil || state.GetList().GetGiven() != 4 || state.GetList().GetPosition() == 0 {
			t.Error(state, err)
		}
		out, err := c.admin.ExportCodes(ctx, &kujiv1.ExportCodesRequest{List: list, Offset: 1, Limit: 2})
		if err != nil || len(out.GetCodes()) != 2 || out.GetCodes()[0].GetCode() != codes[1] || out.GetCodes()[0].GetPlayer() != "bob" {
			t.Error(out, err)
		}
		_, err = c.admin.ExportCodes(ctx, &kujiv1.ExportCodesRequest{List: list, Limit: server.MaxPage + 1})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Error(err)
		}
		_, err = c.admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: list, Codes: []string{"good", "SECRET\n"}})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || strings.Contains(err.Error(), "SECRET") {
			t.Error(err)
		}
		_, err = c.admin.GetCodes(ctx, &kujiv1.GetCodesRequest{List: "nosuch"})
		if connect.CodeOf(err) != connect.CodeNotFound {
			t.Error(err)
		}
	}
}

// TestRedeem uses codes one by one and in a batch, and exports who did. No error has a code.
func TestRedeem(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	for i, c := range clients(t, f.url) {
		list, players := fmt.Sprint("caps-", i), fmt.Sprint("p", i)
		yaml := strings.NewReplacer("mode: each", "redeem: {code: "+list+", times: 3}", "chance: 100, reward: {code: ten-percent}", "weight: 1, reward: {items: {coin: 2}}").Replace(couponCatalog)
		if _, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: list, Codes: []string{"SECRET-0", "SECRET-1"}}); err != nil {
			t.Fatal(err)
		}
		pool, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "splash"})
		if terms := pool.GetPool().GetRedeem(); err != nil || len(terms) != 1 || terms[0].GetList() != list || terms[0].GetTimes() != 3 || terms[0].GetUses() != 1 {
			t.Error(terms, err)
		}
		one, err := c.reward.Redeem(ctx, &kujiv1.RedeemRequest{Player: players, Code: "secret 0"})
		if err != nil || one.GetResult().GetRedeemed() != list || len(one.GetResult().GetOutcomes()) != 3 {
			t.Fatal(one, err)
		}
		command := func(player, code string) *kujiv1.Command {
			return &kujiv1.Command{Command: &kujiv1.Command_Redeem{Redeem: &kujiv1.Redeem{Player: player, Code: code}}}
		}
		res, err := c.reward.Batch(ctx, &kujiv1.BatchRequest{Commands: []*kujiv1.Command{
			command(players, "SECRET-1"), command(players+"x", "SECRET-1"), command(players, "SECRET-2"), command(players, ""),
		}})
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range []kujiv1.Status{kujiv1.Status_STATUS_OK, kujiv1.Status_STATUS_CODE_USED_UP, kujiv1.Status_STATUS_UNKNOWN_CODE, kujiv1.Status_STATUS_REFUSED} {
			if got := res.GetResults()[k]; got.GetStatus() != want || (got.GetRedeemed() == list) != (k == 0) {
				t.Errorf("command %d: %v, want %v", k, got, want)
			}
		}
		if n := len(expand(t, res, 0).GetOutcomes()); n != 3 {
			t.Errorf("%d outcomes", n)
		}
		out, err := c.admin.ExportCodes(ctx, &kujiv1.ExportCodesRequest{List: list, Redeemed: true, Offset: 1})
		if err != nil || len(out.GetCodes()) != 1 || out.GetCodes()[0].GetCode() != "SECRET-1" || out.GetCodes()[0].GetPlayer() != players ||
			out.GetList().GetRedeemed() != 2 || out.GetList().GetUses() != 2 || out.GetList().GetGiven() != 0 {
			t.Error(out, err)
		}
		guess, err := c.reward.Redeem(ctx, &kujiv1.RedeemRequest{Player: "eve", Code: "SECRET-2"})
		if err != nil || guess.GetResult().GetStatus() != kujiv1.Status_STATUS_UNKNOWN_CODE || strings.Contains(guess.String(), "SECRET") {
			t.Error(guess, err)
		}
		if _, err = c.reward.Redeem(ctx, &kujiv1.RedeemRequest{Player: "eve", Code: "SECRET\n"}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Error(err)
		}
		many := &kujiv1.BatchRequest{}
		for range 1001 {
			many.Commands = append(many.Commands, command(players, "x"))
		}
		if _, err := c.reward.Batch(ctx, many); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Error(err)
		}
	}
}
