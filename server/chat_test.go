package server_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

const chatCatalog = `
kuji: 1
items: {coin: {kind: currency}, sword: {}}
start: {coin: 100}
pools:
  search: {entries: [{id: sword, weight: 1, reward: {items: {sword: 1}}}]}
  dear: {price: {coin: 1000}, entries: [{id: sword, weight: 1, reward: {items: {sword: 1}}}]}
counters: {messages: {of: {progress: message}}}
`

// chatConfig has so many phrases more than those of its tests.
func chatConfig(phrases int) chat.Config {
	draw := func(pool string) []chat.Action { return []chat.Action{{Do: "draw", Pool: pool, Count: "$n"}} }
	n := []chat.Word{{Name: "n", From: 1, To: 10, Else: "1"}}
	c := chat.Config{Activity: "message", Triggers: []chat.Trigger{
		{ID: "search", Phrases: []string{"!search"}, Words: n, Cooldown: chat.Cooldown{Player: time.Minute}, Do: draw("search")},
		{ID: "dear", Phrases: []string{"!dear"}, Words: n, Do: draw("dear")},
		{ID: "none", Phrases: []string{"!none"}, Words: n, Do: draw("none")},
	}}
	for i := range phrases {
		c.Triggers[0].Phrases = append(c.Triggers[0].Phrases, fmt.Sprintf("some phrase no %d", i))
	}
	return c
}

// chatEngine is an engine in memory whose default realm has a catalog for chats.
func chatEngine(t testing.TB) *kuji.Engine {
	t.Helper()
	engine, err := kuji.OpenMemory([32]byte{}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(chatCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestHandleMessage(t *testing.T) {
	engine := chatEngine(t)
	f := startEngine(t, engine, server.Options{Chats: map[string]chat.Config{"default": chatConfig(0)}})
	sent := time.Date(2026, 5, 1, 20, 0, 0, 0, time.UTC)
	for name, c := range map[string]kujiv1connect.ChatServiceClient{
		"json": kujiv1connect.NewChatServiceClient(h1(t), f.url, connect.WithProtoJSON()),
		"grpc": kujiv1connect.NewChatServiceClient(h2c(t), f.url, connect.WithGRPC()),
	} {
		say := func(id, text string) *kujiv1.HandleMessageResponse {
			res, err := c.HandleMessage(t.Context(), &kujiv1.HandleMessageRequest{Platform: "twitch", User: name, Name: "Ann", Text: text, MessageId: name + id, SentUnixMs: sent.UnixMilli()})
			if err != nil {
				t.Fatal(err)
			}
			if want := "twitch:" + name; res.GetPlayer() != want {
				t.Errorf("player %q, want %q", res.GetPlayer(), want)
			}
			return res
		}
		if res := say("1", "hello"); len(res.GetFound()) > 0 {
			t.Errorf("%v", res)
		}
		for _, again := range []bool{false, true} {
			res := say("2", "!search 3").GetFound()
			if len(res) != 1 || res[0].GetTrigger() != "search" || res[0].GetState() != kujiv1.TriggerState_TRIGGER_STATE_STARTED || len(res[0].GetResults()) != 1 {
				t.Fatalf("%v", res)
			}
			if r := res[0].GetResults()[0].GetResult(); r.GetStatus() != kujiv1.Status_STATUS_OK || len(r.GetOutcomes()) != 3 || r.GetReplayed() != again {
				t.Errorf("%v", r)
			}
		}
		if res := say("3", "!search").GetFound(); res[0].GetState() != kujiv1.TriggerState_TRIGGER_STATE_COOLING || res[0].GetReadyUnixMs() != sent.Add(time.Minute).UnixMilli() {
			t.Errorf("%v", res)
		}
		if res := say("4", "!dear 11").GetFound(); res[0].GetState() != kujiv1.TriggerState_TRIGGER_STATE_UNCLEAR || res[0].GetWord() != "n" {
			t.Errorf("%v", res)
		}
		if res := say("5", "!dear").GetFound(); res[0].GetResults()[0].GetResult().GetStatus() != kujiv1.Status_STATUS_INSUFFICIENT_ITEMS {
			t.Errorf("%v", res)
		}
		if res := say("6", "!none").GetFound(); res[0].GetResults()[0].GetError().GetReason() != kujiv1.Reason_REASON_NOT_FOUND {
			t.Errorf("%v", res)
		}
		_, err := c.HandleMessage(t.Context(), &kujiv1.HandleMessageRequest{Platform: "twitch", MessageId: "7"})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || detail(t, err).GetViolations()[0].GetField() != "user" {
			t.Errorf("without a user: %v", err)
		}
	}
	// What was gathered is reported when the server ends.
	if err := f.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	goals, err := realm.Goals(t.Context(), "twitch:grpc")
	if err != nil || goals.Counters[0].Value != 7 {
		t.Errorf("%+v, %v; want 7 messages", goals.Counters, err)
	}
}

// TestNoChat has no configuration, or a wrong one.
func TestNoChat(t *testing.T) {
	f := start(t, server.Options{})
	c := kujiv1connect.NewChatServiceClient(h1(t), f.url)
	_, err := c.HandleMessage(t.Context(), &kujiv1.HandleMessageRequest{Platform: "twitch", User: "1", MessageId: "1"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("%v", err)
	}
	wrong := chatConfig(0)
	wrong.Most = -1
	if _, err := server.New(newEngine(t, kuji.Options{}), server.Options{Chats: map[string]chat.Config{"default": wrong}}); err == nil {
		t.Error("a server starts with a wrong configuration")
	}
}

// emptyChat answers without an engine.
type emptyChat struct{}

func (emptyChat) HandleMessage(context.Context, *kujiv1.HandleMessageRequest) (*kujiv1.HandleMessageResponse, error) {
	return &kujiv1.HandleMessageResponse{Player: "twitch:1234"}, nil
}

// BenchmarkHandleMessage compares messages without a match among 2,000 phrases with an empty Connect handler: JSON by
// 64 connections, a realm in memory.
func BenchmarkHandleMessage(b *testing.B) {
	const connections = 64
	f := startEngine(b, chatEngine(b), server.Options{Chats: map[string]chat.Config{"default": chatConfig(2000)}})
	mux := http.NewServeMux()
	mux.Handle(kujiv1connect.NewChatServiceHandler(emptyChat{}, connect.WithCompressMinBytes(math.MaxInt)))
	for _, target := range []struct{ name, url string }{{"empty", serveBare(b, mux)}, {"kuji", f.url}} {
		var all []kujiv1connect.ChatServiceClient
		for range connections {
			all = append(all, kujiv1connect.NewChatServiceClient(h1(b), target.url, connect.WithProtoJSON()))
		}
		b.Run(target.name, func(b *testing.B) {
			var failed atomic.Pointer[error]
			b.ReportAllocs()
			var wg sync.WaitGroup
			for i, c := range all {
				wg.Go(func() {
					m := &kujiv1.HandleMessageRequest{Platform: "twitch", User: fmt.Sprint(1000 + i), Name: "Viewer", MessageId: "b34ccfc7-4977-403a-8a94-33c6bac34fb8",
						Text: "Was that the boss of the second floor? I thought he would be larger!", SentUnixMs: 1777665600000}
					for range (b.N + i) / connections {
						if _, err := c.HandleMessage(context.Background(), m); err != nil {
							failed.Store(&err)
						}
					}
				})
			}
			wg.Wait()
			if err := cmp.Or(failed.Load(), new(error)); *err != nil {
				b.Error(*err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
