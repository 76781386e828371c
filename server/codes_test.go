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
