package server_test

import (
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// TestGetResult: in every protocol the first answer comes back as it was; an id that was not seen is
// said to be so. Codes are for a key that may draw and names the player.
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
