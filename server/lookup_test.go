package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// TestGetResult: in every protocol the first answer comes back as it was; an id that was not seen is
// said to be so. Codes are for a key that may draw and names the player: see TestResultCodes.
func TestGetResult(t *testing.T) {
	f := start(t, server.Options{Keys: keyFile(t)})
	writer := newClient("", h1(t), f.url, withKey(writeKey)).reward
	reader := newClient("", h1(t), f.url, withKey(readKey)).reward
	admin := newClient("", h1(t), f.url, withKey(adminKey)).admin
	if _, err := admin.CreateRealm(t.Context(), &kujiv1.CreateRealmRequest{Realm: "codes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ApplyCatalog(t.Context(), &kujiv1.ApplyCatalogRequest{Realm: "codes", Yaml: []byte(couponCatalog)}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ImportCodes(t.Context(), &kujiv1.ImportCodesRequest{Realm: "codes", List: "ten-percent", Codes: []string{"SECRET-1"}}); err != nil {
		t.Fatal(err)
	}
	look := func(c kujiv1connect.RewardServiceClient, player string) (*kujiv1.GetResultResponse, error) {
		return c.GetResult(t.Context(), &kujiv1.GetResultRequest{Realm: "codes", RequestId: "once", Player: player})
	}
	if res, err := look(reader, ""); err != nil || res.GetSeen() != kujiv1.Seen_SEEN_NOT_SEEN || res.GetResult() != nil {
		t.Errorf("before: %v, %v", res, err)
	}
	first, err := writer.Draw(t.Context(), &kujiv1.DrawRequest{Realm: "codes", RequestId: "once", Player: "ann", Pool: "splash"})
	if err != nil {
		t.Fatal(err)
	}
	first.GetResult().Replayed = true
	for _, tt := range []struct {
		who    kujiv1connect.RewardServiceClient
		player string
		shown  bool
	}{{writer, "ann", true}, {writer, "", false}, {reader, "ann", false}, {reader, "", false}} {
		res, err := look(tt.who, tt.player)
		if err != nil || res.GetSeen() != kujiv1.Seen_SEEN_ANSWERED || res.GetPlayer() != "ann" {
			t.Fatalf("%v, %v", res, err)
		}
		code := &res.GetResult().GetOutcomes()[0].GetCodes()[0].Code
		if tt.shown != (*code == "SECRET-1") || !tt.shown && *code != kuji.Redacted {
			t.Errorf("player %q named: the code is %q", tt.player, *code)
		}
		*code = "SECRET-1"
		if !proto.Equal(res.GetResult(), first.GetResult()) {
			t.Errorf("%v, first %v", res.GetResult(), first.GetResult())
		}
	}
	if _, err := look(writer, "bob"); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("another player's: %v", err)
	}
	if _, err := writer.GetResult(t.Context(), &kujiv1.GetResultRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no id: %v", err)
	}
	if _, err := newClient("", h1(t), f.url).reward.GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: "x"}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("no key: %v", err)
	}
	open := start(t, server.Options{})
	for _, c := range clients(t, open.url) {
		id := "of " + c.name
		first, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: id, Player: "ann", Pool: "standard", Count: 2})
		if err != nil {
			t.Fatal(err)
		}
		first.GetResult().Replayed = true
		if res, err := c.reward.GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: id}); err != nil || !proto.Equal(res.GetResult(), first.GetResult()) {
			t.Errorf("%s: %v, %v", c.name, res, err)
		}
	}
}

// TestResultCodes: GetResult shows the codes that a request gave to who could send it again.
func TestResultCodes(t *testing.T) {
	dir, k := t.TempDir(), newTokens(t)
	if err := os.WriteFile(filepath.Join(dir, "players.json"), k.public, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "keys")
	writeKeys(t, path, keyLine(t, "admin", adminKey, "ops"), keyLine(t, "read,draw", "drawer", ""), keyLine(t, "read,redeem", "redeemer", ""),
		keyLine(t, "read,draw,redeem", "kiosk", "", "pools=splash"), keyLine(t, "read,grant", "granter", ""), "read,draw,redeem jwks=players.json players algs=EdDSA")
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, server.Options{Keys: keys})
	ops := newClient("", h1(t), f.url, withKey(adminKey))
	yaml := couponCatalog + "  caps: {redeem: {code: caps}, mode: each, entries: [{id: coupon, chance: 100, reward: {code: ten-percent}}]}\n"
	if _, err := ops.admin.ApplyCatalog(t.Context(), &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml)}); err != nil {
		t.Fatal(err)
	}
	for list, codes := range map[string][]string{"ten-percent": {"SECRET-1", "SECRET-2"}, "caps": {"cap"}} {
		if _, err := ops.admin.ImportCodes(t.Context(), &kujiv1.ImportCodesRequest{List: list, Codes: codes}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ops.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "drawn", Player: "ann", Pool: "splash"}); err != nil {
		t.Fatal(err)
	}
	if res, err := ops.reward.Redeem(t.Context(), &kujiv1.RedeemRequest{RequestId: "redeemed", Player: "ann", Code: "CAP"}); err != nil || res.GetResult().GetRedeemed() != "caps" {
		t.Fatal(res, err)
	}
	for secret, want := range map[string]map[string]string{
		adminKey:    {"drawn": "SECRET-1", "redeemed": "SECRET-2"},
		"drawer":    {"drawn": "SECRET-1", "redeemed": kuji.Redacted},
		"redeemer":  {"drawn": kuji.Redacted, "redeemed": "SECRET-2"},
		"kiosk":     {"drawn": kuji.Redacted, "redeemed": kuji.Redacted},
		"granter":   {"drawn": kuji.Redacted, "redeemed": kuji.Redacted},
		k.of("ann"): {"drawn": "SECRET-1", "redeemed": "SECRET-2"},
	} {
		c := newClient("", h1(t), f.url, withKey(secret)).reward
		for id, code := range want {
			res, err := c.GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: id, Player: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			if got := res.GetResult().GetOutcomes()[0].GetCodes()[0].GetCode(); got != code {
				t.Errorf("%.10s, %s: the code is %q, want %q", secret, id, got, code)
			}
		}
	}
	bob := newClient("", h1(t), f.url, withKey(k.of("bob"))).reward
	if res, err := bob.GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: "drawn", Player: "bob"}); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("another player's result for a player: %v, %v", res, err)
	}
}
