package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// fuzzTypes are the content types that a request can come in.
var fuzzTypes = []string{"application/json", "application/proto", "application/grpc", "application/grpc+json",
	"application/grpc-web+proto", "application/connect+json"}

// FuzzRequest sends bytes to every RPC in every encoding. Nothing may panic or
// end in an error that the server does not know. (Connect itself answers broken
// gRPC frames with internal: those never reach a handler.)
func FuzzRequest(f *testing.F) {
	log := &lockedBuffer{}
	fx := newServer(f, server.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))})
	roles := fx.server.RoleOf()
	var paths []string
	for _, path := range []string{"Draw", "Grant", "Consume", "Transfer", "OpenRound", "Join", "Settle", "Reroll", "CancelRound", "GetRound", "ListRounds", "Confirm", "Cancel", "GetHold", "ListHolds", "LinkCode", "Link", "Unlink", "Atomic", "Batch", "GetPlayer", "GetPool", "GetCatalog", "GetOdds", "ExportCatalog", "ListCatalogs"} {
		paths = append(paths, "/kuji.v1.RewardService/"+path)
	}
	for _, path := range []string{"GetStatus", "ListRealms", "ApplyCatalog", "SetTrack", "SetLimit", "SetCounter", "Merge", "Forget", "Block", "Reverse"} { // CreateRealm would leave files for every name tried, and DeleteRealm no realm
		paths = append(paths, "/kuji.v1.AdminService/"+path)
	}
	for _, path := range paths {
		if _, ok := roles[path]; !ok {
			f.Fatalf("%s is not served", path)
		}
	}
	stack := []*kujiv1.Stack{{Item: "gem", Quantity: 1 << 40}}
	for i, m := range []proto.Message{
		&kujiv1.DrawRequest{Realm: "default", RequestId: "1", Player: "ann", Pool: "standard", Count: 3},
		&kujiv1.GrantRequest{Player: "ann", Items: stack},
		&kujiv1.ConsumeRequest{Player: "ann", Items: stack},
		&kujiv1.TransferRequest{From: "ann", To: "bob", Items: stack},
		&kujiv1.OpenRoundRequest{Round: "prize", Player: "ann", Stake: stack},
		&kujiv1.JoinRequest{Round: "prize", Player: "ann", Tickets: 1 << 60, Number: 1},
		&kujiv1.SettleRequest{Round: "prize"},
		&kujiv1.RerollRequest{Round: "prize", Number: 1 << 63},
		&kujiv1.CancelRoundRequest{Round: "prize", Number: 1},
		&kujiv1.GetRoundRequest{Number: 1, EntrantOffset: 1 << 63, EntrantLimit: 5},
		&kujiv1.ListRoundsRequest{RoundOffset: 1 << 31},
		&kujiv1.DrawRequest{RequestId: "h", Player: "ann", Pool: "free", HoldMs: 60_000, Refund: true},
		&kujiv1.ConsumeRequest{RequestId: "i", Player: "ann", Items: stack, HoldMs: 1 << 62},
		&kujiv1.ConfirmRequest{RequestId: "j", Hold: "h"},
		&kujiv1.CancelRequest{Hold: "h"},
		&kujiv1.GetHoldRequest{Hold: "h"},
		&kujiv1.ListHoldsRequest{AfterUnixMs: -1 << 63, After: "h", Limit: 1 << 31},
		&kujiv1.LinkCodeRequest{Player: "ann", Code: "K7QM-3XPD-WZ4H"},
		&kujiv1.LinkRequest{Player: "twitch:1", Code: "K7QM-3XPD-WZ4H", To: "ann"},
		&kujiv1.UnlinkRequest{Player: "twitch:1"},
		&kujiv1.AtomicRequest{Members: []*kujiv1.Member{{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "free"}}}}},
		&kujiv1.BatchRequest{Commands: []*kujiv1.Command{drawCommand("2", "ann", "last", 1), {}}},
		&kujiv1.GetPlayerRequest{Player: "ann", Stale: true},
		&kujiv1.GetPoolRequest{Pool: "free", EntryOffset: 1, EntryLimit: 1 << 31},
		&kujiv1.GetCatalogRequest{},
		&kujiv1.GetOddsRequest{Pool: "standard", Player: "ann"},
		&kujiv1.GetStatusRequest{},
		&kujiv1.ListRealmsRequest{},
		&kujiv1.MergeRequest{Player: "ann", From: "bob", Strict: true},
		&kujiv1.ForgetRequest{Player: "ann", Reason: "x"},
		&kujiv1.BlockRequest{Player: "ann", Ends: true, Reason: "x"},
		&kujiv1.ReverseRequest{Request: "1", Reason: "x"},
		&kujiv1.ApplyCatalogRequest{Yaml: []byte("kuji: 1\nitems: {}\n"), DryRun: true},
	} {
		binary, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		text, err := protojson.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		frame := func(b []byte) []byte { return append([]byte{0, 0, 0, byte(len(b) >> 8), byte(len(b))}, b...) }
		f.Add(byte(i), byte(0), "", text)
		f.Add(byte(i), byte(1), "", binary)
		f.Add(byte(i), byte(1), "gzip", []byte("\x1f\x8b\x08\x00"))
		f.Add(byte(i), byte(2), "", frame(binary))
		f.Add(byte(i), byte(3), "", frame(text))
		f.Add(byte(i), byte(4), "", frame(binary))
		f.Add(byte(i), byte(5), "", frame(text))
	}
	f.Fuzz(func(t *testing.T, path, contentType byte, encoding string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, paths[int(path)%len(paths)], bytes.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", fuzzTypes[int(contentType)%len(fuzzTypes)])
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
			r.Header.Set("Grpc-Encoding", encoding)
		}
		w := httptest.NewRecorder()
		fx.server.ServeHTTP(w, r)
		if text := log.String(); text != "" {
			t.Errorf("%s %s %q: HTTP %d, %s; log: %s", r.URL.Path, r.Header.Get("Content-Type"), body, w.Code, w.Body, text)
		}
	})
}
