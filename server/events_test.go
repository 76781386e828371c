package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// readEvents reads a stream until it has come to a position.
func readEvents(t testing.TB, c client, req *kujiv1.StreamEventsRequest, until uint64) (all []*kujiv1.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := c.reward.StreamEvents(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	for s.Receive() {
		all = append(all, s.Msg().GetEvents()...)
		if n := len(all); n > 0 && all[n-1].GetPosition() >= until {
			return all
		}
	}
	t.Fatal(s.Err())
	return nil
}

// TestStreamEvents: over every protocol a stream brings what was asked for, and what comes.
func TestStreamEvents(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	for i, c := range clients(t, f.url) {
		id := func(tag string) string { return fmt.Sprint(tag, i) }
		draw := func(player string) uint64 {
			res, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: id(player), Player: player, Pool: "free"})
			if err != nil {
				t.Fatal(err)
			}
			return res.GetResult().GetReceipt().GetPosition()
		}
		ctx, cancel := context.WithCancel(t.Context())
		live, err := c.reward.StreamEvents(ctx, &kujiv1.StreamEventsRequest{})
		if err != nil || !live.Receive() || len(live.Msg().GetEvents()) > 0 { // from now on
			t.Fatalf("%s: %v, %v", c.name, err, live.Err())
		}
		first := draw("ann")
		last := draw("bob")
		for want := range 2 {
			if !live.Receive() || live.Msg().GetEvents()[0].GetRequestId() != id([]string{"ann", "bob"}[want]) {
				t.Errorf("%s: %v, %v", c.name, live.Msg(), live.Err())
			}
		}
		if next := live.Msg().GetNext(); next != last+1 {
			t.Errorf("%s: next %d, want %d", c.name, next, last+1)
		}
		cancel()
		all := readEvents(t, c, &kujiv1.StreamEventsRequest{From: &first}, last)
		if len(all) != 2 || all[0].GetPlayer() != "ann" || all[0].GetStatus() != kujiv1.Status_STATUS_OK || len(all[0].GetOutcomes()) != 1 {
			t.Errorf("%s: %v", c.name, all)
		}
		for _, e := range readEvents(t, c, &kujiv1.StreamEventsRequest{From: new(uint64), Player: "bob"}, last) {
			if e.GetPlayer() != "bob" {
				t.Errorf("%s: for bob: %v", c.name, e)
			}
		}
		beyond := last + 100
		s, err := c.reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{From: &beyond})
		if err == nil {
			for s.Receive() {
			}
			err = s.Err()
		}
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: from %d: %v", c.name, beyond, err)
		}
	}
}

// TestStreamEventsTrimmed: the answer says where the feed begins.
func TestStreamEventsTrimmed(t *testing.T) {
	f := newServer(t, server.Options{})
	err := f.server.ConnectError(&kuji.Error{Code: kuji.CodeNotFound, Field: "from", Err: &kuji.TrimmedError{First: 17}}, nil)
	if err.Code() != connect.CodeNotFound || detail(t, err).GetFirstPosition() != 17 || !strings.Contains(err.Message(), "begins at position 17") {
		t.Errorf("%v, %v", err, detail(t, err))
	}
}

// TestEventFilter: a group is shown without the members that are about others, and a player does not
// see who asked and why.
func TestEventFilter(t *testing.T) {
	group := func() kuji.Record {
		return kuji.Record{Kind: "atomic", By: "ops", Members: []kuji.Record{
			{Player: "ann", Pool: "free"}, {Player: "bob", Pool: "free"}, {Player: "bob", To: "ann"}, {Player: "bob", Pool: "box"},
		}}
	}
	for _, c := range []struct {
		player, pool string
		bare         bool
		members      int
	}{{"", "", false, 4}, {"ann", "", true, 2}, {"bob", "", false, 3}, {"", "free", false, 2}, {"bob", "box", false, 1}, {"ann", "box", true, 0}} {
		rec := group()
		kept := server.KeepEvent(&rec, c.player, c.pool, c.bare)
		if len(rec.Members) != c.members || kept != (c.members > 0) || (rec.By == "") != c.bare {
			t.Errorf("player %q, pool %q: kept %v, %+v", c.player, c.pool, kept, rec)
		}
	}
}

// TestStreamEventsShutdown: a drain ends the stream and says that the client should go on elsewhere.
func TestStreamEventsShutdown(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	s, err := newClient("", h2c(t), f.url, connect.WithGRPC()).reward.StreamEvents(t.Context(), &kujiv1.StreamEventsRequest{})
	if err != nil || !s.Receive() {
		t.Fatal(err)
	}
	if err := f.server.Shutdown(context.Background()); err != nil { // waits for streams
		t.Fatal(err)
	}
	for s.Receive() {
	}
	if connect.CodeOf(s.Err()) != connect.CodeUnavailable || detail(t, s.Err()).GetReason() != kujiv1.Reason_REASON_CLOSED {
		t.Errorf("after the drain: %v, want unavailable, REASON_CLOSED", s.Err())
	}
}
