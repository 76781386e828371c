package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// fakeHistory is a history that notes what it is asked.
type fakeHistory struct {
	events   []kuji.Record
	more     bool
	asked    *kujiv1.GetHistoryRequest
	waited   uint64
	mu       sync.Mutex
	followed []string
	state    *kujiv1.HistoryState
	away     error // what every read returns
	down     error
}

func (f *fakeHistory) Follow(r *kuji.Realm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed = append(f.followed, r.Name())
}

func (f *fakeHistory) follows() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.followed)
}

func (f *fakeHistory) Events(_ context.Context, realm string, req *kujiv1.GetHistoryRequest) ([]kuji.Record, *kujiv1.GetHistoryResponse, error) {
	f.asked = req
	out := &kujiv1.GetHistoryResponse{State: f.State(realm)}
	if f.more {
		out.Before = &kujiv1.EventPlace{Position: 7, Index: 3}
	}
	return slices.Clone(f.events), out, f.away
}

func (f *fakeHistory) Players(_ context.Context, realm string, req *kujiv1.ListPlayersRequest) (*kujiv1.ListPlayersResponse, error) {
	return &kujiv1.ListPlayersResponse{Players: []string{req.GetAfter(), fmt.Sprint(req.GetLimit())}, More: f.more, State: f.State(realm)}, f.away
}

func (f *fakeHistory) Holders(_ context.Context, realm string, req *kujiv1.ListHoldersRequest) (*kujiv1.ListHoldersResponse, error) {
	return &kujiv1.ListHoldersResponse{Holders: []*kujiv1.Holder{{Player: req.GetItem() + req.GetAfter(), Quantity: uint64(req.GetLimit())}}, State: f.State(realm)}, f.away
}

func (f *fakeHistory) Wait(_ context.Context, realm string, position uint64) error {
	f.waited = position
	return f.away
}

func (f *fakeHistory) State(string) *kujiv1.HistoryState {
	return proto.CloneOf(cmp.Or(f.state, &kujiv1.HistoryState{}))
}

func (f *fakeHistory) Down(string) error { return f.down }

// group is an atomic group about two players.
func group() kuji.Record {
	return kuji.Record{Position: 9, Kind: "atomic", Status: "ok", By: "ops", Reason: "why", Members: []kuji.Record{
		{Kind: "draw", Status: "ok", Player: "ann", Pool: "free"}, {Kind: "consume", Status: "ok", Player: "bob"},
	}, Changes: []kuji.BalanceChange{
		{Player: "ann", Item: "gem", Delta: 1, Balance: new(uint64(5))}, {Player: "bob", Item: "gem", Delta: -1, Balance: new(uint64(0))},
	}}
}

// TestGetHistory: the server passes on what is asked, says how far the history is behind, and waits if
// it shall be fresh.
func TestGetHistory(t *testing.T) {
	hist := &fakeHistory{events: []kuji.Record{group()}, more: true, state: &kujiv1.HistoryState{CompleteFrom: 1, KeptFrom: 6, KeptFromUnixMs: 77, ProvenFrom: 4}}
	f := startWith(t, kuji.Options{}, server.Options{History: hist})
	c := newClient("", h2c(t), f.url, connect.WithGRPC())
	if _, err := c.admin.CreateRealm(t.Context(), &kujiv1.CreateRealmRequest{Realm: "new"}); err != nil {
		t.Fatal(err)
	}
	if all := hist.follows(); !slices.Equal(all, []string{server.DefaultRealm, "new"}) {
		t.Errorf("followed %q", all)
	}
	if _, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "one", Player: "ann", Pool: "free"}); err != nil {
		t.Fatal(err)
	}
	r, err := f.engine.Lookup(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	last := r.Stats().LastEvent
	res, err := c.reward.GetHistory(t.Context(), &kujiv1.GetHistoryRequest{Item: "gem", Player: "ann", Limit: 5, Fresh: true, Before: &kujiv1.EventPlace{Position: 8, Index: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if q := hist.asked; q.GetPlayer() != "ann" || q.GetItem() != "gem" || q.GetLimit() != 5 || q.GetBefore().GetPosition() != 8 || hist.waited != last {
		t.Errorf("asked %v and waited for %d, want for %d", q, hist.waited, last)
	}
	if b := res.GetBefore(); b.GetPosition() != 7 || b.GetIndex() != 3 || res.GetState().GetLag() != last || res.GetState().GetCompleteFrom() != 1 || res.GetState().GetKeptFrom() != 6 || res.GetState().GetKeptFromUnixMs() != 77 || res.GetState().GetProvenFrom() != 4 {
		t.Errorf("%v", res)
	}
	// Of a group, those who ask for a player see what is about the player.
	if e := res.GetEvents()[0]; len(e.GetMembers()) != 1 || len(e.GetChanges()) != 1 || e.GetChanges()[0].GetBalance() != 5 || e.GetBy() != "ops" {
		t.Errorf("%v", e)
	}
	res, err = c.reward.GetHistory(t.Context(), &kujiv1.GetHistoryRequest{Pool: "free"})
	if err != nil || len(res.GetEvents()[0].GetMembers()) != 1 || len(res.GetEvents()[0].GetChanges()) != 0 {
		t.Errorf("of a pool: %v, %v", res, err)
	}
	players, err := c.reward.ListPlayers(t.Context(), &kujiv1.ListPlayersRequest{After: "ann", Limit: 3})
	if err != nil || !slices.Equal(players.GetPlayers(), []string{"ann", "3"}) || !players.GetMore() || players.GetState().GetLag() != last {
		t.Errorf("%v, %v", players, err)
	}
	holders, err := c.reward.ListHolders(t.Context(), &kujiv1.ListHoldersRequest{Item: "gem", After: "bob", Limit: 4})
	if err != nil || holders.GetHolders()[0].GetPlayer() != "gembob" || holders.GetHolders()[0].GetQuantity() != 4 || holders.GetMore() {
		t.Errorf("%v, %v", holders, err)
	}
	for _, req := range []*kujiv1.GetHistoryRequest{{Player: "ann", Limit: server.MaxHistoryPage + 1}, {Player: "ann", Before: &kujiv1.EventPlace{}}} {
		if _, err := c.reward.GetHistory(t.Context(), req); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v", req, err)
		}
	}
	resp, err := http.Get(f.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, line := range []string{`kuji_realm_history_position{realm="default"} 0`, fmt.Sprintf(`kuji_realm_history_lag{realm="default"} %d`, last), `kuji_realm_history_complete_from{realm="default"} 1`} {
		if err != nil || !strings.Contains(string(text), line+"\n") {
			t.Errorf("the metrics lack %s: %v", line, err)
		}
	}
}

// TestHistoryOfPlayers: a player sees neither who asked, nor others.
func TestHistoryOfPlayers(t *testing.T) {
	keys, k := playerKeys(t)
	f := newServer(t, server.Options{Keys: keys, History: &fakeHistory{events: []kuji.Record{group()}}})
	w := ask(f, methodOf(t, "GetHistory"), k.of("ann"), `{"player": "ann"}`)
	if body := w.Body.String(); w.Code != 200 || strings.Contains(body, "ops") || strings.Contains(body, "why") || strings.Contains(body, "bob") || !strings.Contains(body, `"balance":"5"`) {
		t.Errorf("HTTP %d %s", w.Code, body)
	}
}

// TestNoHistory: a server without one says so.
func TestNoHistory(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	c := newClient("", h2c(t), f.url, connect.WithGRPC())
	_, err := c.reward.GetHistory(t.Context(), &kujiv1.GetHistoryRequest{Player: "ann"})
	_, err2 := c.reward.ListPlayers(t.Context(), &kujiv1.ListPlayersRequest{})
	_, err3 := c.reward.ListHolders(t.Context(), &kujiv1.ListHoldersRequest{Item: "gem"})
	for _, err := range []error{err, err2, err3} {
		if connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Error(err)
		}
	}
}

// TestHistoryAway: a history that cannot be read has a reason of its own, says nothing of its database,
// and does not make the server unready or say that a realm has stopped.
func TestHistoryAway(t *testing.T) {
	var log lockedBuffer
	hist := &fakeHistory{}
	f := startWith(t, kuji.Options{}, server.Options{History: hist, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := newClient("", h2c(t), f.url, connect.WithGRPC())
	for code, text := range map[kuji.Code]string{kuji.CodeFailed: "cannot be read now", kuji.CodeOverloaded: "is not open yet", kuji.CodeCorrupt: "builds it again"} {
		hist.away = &kuji.Error{Code: code, Message: "reading the history", Err: errors.New("secret.example:5432")}
		hist.down = hist.away
		for call, ask := range map[string]func() error{
			"GetHistory": func() error {
				_, err := c.reward.GetHistory(t.Context(), &kujiv1.GetHistoryRequest{Player: "ann"})
				return err
			},
			"fresh": func() error {
				_, err := c.reward.GetHistory(t.Context(), &kujiv1.GetHistoryRequest{Player: "ann", Fresh: true})
				return err
			},
			"ListPlayers": func() error { _, err := c.reward.ListPlayers(t.Context(), &kujiv1.ListPlayersRequest{}); return err },
			"ListHolders": func() error {
				_, err := c.reward.ListHolders(t.Context(), &kujiv1.ListHoldersRequest{Item: "gem"})
				return err
			},
		} {
			err := ask()
			if connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_HISTORY || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s when it is away with %v: %v", call, code, err)
			}
		}
	}
	if code, body := get(t, http.DefaultClient, f.url+"/readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, body)
	}
	if _, body := get(t, http.DefaultClient, f.url+"/metrics"); !strings.Contains(body, `kuji_realm_history_down{realm="default"} 1`) {
		t.Errorf("the metric does not say that it is down:\n%s", body)
	}
	if strings.Contains(log.String(), "a realm has stopped") {
		t.Errorf("no realm has stopped:\n%s", log.String())
	}
}
