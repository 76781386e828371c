package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// cuts starts a proxy in front of a server, whose connections can be cut.
func cuts(t *testing.T, s *server) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Listen("127.0.0.1:0", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// events reads a feed to its end.
func events(t *testing.T, feed *task) (all []*kujiv1.Event) {
	t.Helper()
	for began := time.Now(); ; {
		m, f := message(t, feed)
		if f != nil {
			t.Fatal(f)
		}
		if m == nil {
			return all
		}
		if time.Since(began) > patience {
			t.Fatalf("the feed goes on, and has brought %v", all)
		}
		all = append(all, m.GetEvents()...)
	}
}

// message reads a feed's next message; nil: it has ended.
func message(t *testing.T, feed *task) (*kujiv1.StreamEventsResponse, *failure) {
	t.Helper()
	l := feed.next(t)
	if l.Item == nil {
		return nil, l.Error
	}
	m := &kujiv1.StreamEventsResponse{}
	read(t, l.Item, m)
	return m, nil
}

// logged reads the feed of a server itself, until it has so many events that count.
func logged(t *testing.T, s *server, req *kujiv1.StreamEventsRequest, n int, counts func(*kujiv1.Event) bool) (all []*kujiv1.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for m, err := range s.asks(t, "").Events(ctx, req) {
		if err != nil {
			t.Fatalf("%d events, want %d: %v", len(all), n, err)
		}
		for _, e := range m.GetEvents() {
			if counts(e) {
				all = append(all, e)
			}
		}
		if len(all) >= n {
			break
		}
	}
	return all
}

func isDraw(e *kujiv1.Event) bool { return e.GetKind() == "draw" }

// draws breaks the connection of a stream three times. The log must have its draws once each, in their order.
func draws(t *testing.T, _ *world, p *program) {
	if p.noDraws {
		t.Skip("this client has no stream of draws: docs/clients.md")
	}
	const batches, breaks = 60, 3
	s := serve(t)
	between := cuts(t, s)
	var all []*kujiv1.StreamDrawsRequest
	var want []string
	for i := range batches {
		b := &kujiv1.StreamDrawsRequest{Players: []string{"ann", "bob"}, Pools: []string{"hats", "shop"}}
		for j := range i%5 + 1 {
			b.PlayerIndexes, b.PoolIndexes = append(b.GetPlayerIndexes(), uint32(j%2)), append(b.GetPoolIndexes(), uint32(j%2))
			b.RequestIds = append(b.GetRequestIds(), fmt.Sprintf("s-%d-%d", i, j))
		}
		all, want = append(all, b), append(want, b.GetRequestIds()...)
	}
	c := p.open(t, options{}, "http://"+between.Addr())
	texts := make([]any, len(all))
	for i, b := range all {
		texts[i] = rawJSON(written(t, b))
	}
	stream := p.do(t, "draws", map[string]any{"client": c.name, "batches": texts})
	var last *kujiv1.Receipt
	for i := range batches {
		l := stream.next(t)
		if l.Item == nil {
			t.Fatalf("after %d answers: %v", i, l.Error)
		}
		res := &kujiv1.StreamDrawsResponse{}
		read(t, l.Item, res)
		draws := 0
		for _, run := range res.GetRuns() {
			draws += int(run.GetDraws())
		}
		r := res.GetReceipts()[0]
		if draws != len(all[i].GetRequestIds()) || last != nil && r.GetPosition() < last.GetPosition() {
			t.Errorf("answer %d has %d draws at %v, want %d after %v", i, draws, r, len(all[i].GetRequestIds()), last)
		}
		last = r
		if i%(batches/(breaks+1)) == 5 {
			between.Cut()
		}
	}
	if f := stream.end(t, nil); f != nil {
		t.Fatalf("the stream ended with %v", f)
	}
	var got []string
	for _, e := range logged(t, s, &kujiv1.StreamEventsRequest{From: proto.Uint64(1)}, len(want), isDraw) {
		got = append(got, e.GetRequestId())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has the draws %q, want %q", got, want)
	}
}

type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func drawsRefused(t *testing.T, w *world, p *program) {
	if p.noDraws {
		t.Skip("this client has no stream of draws: docs/clients.md")
	}
	c := p.open(t, options{}, w.open.url())
	bad := rawJSON(`{"players": ["ann"], "pools": ["hats"], "playerIndexes": [7]}`)
	f := p.do(t, "draws", map[string]any{"client": c.name, "batches": []any{bad}}).end(t, nil)
	want(t, f, "server", "invalid_argument", "REASON_INVALID")
}

// feed breaks the connection of a feed while events come. It must be the feed of one that nothing breaks.
func feed(t *testing.T, _ *world, p *program) {
	const draws = 120
	s := serve(t)
	between := cuts(t, s)
	c := p.open(t, options{}, "http://"+between.Addr())
	direct := s.asks(t, "")
	draw := func(n int) {
		for i := range n {
			if _, err := direct.Draw(t.Context(), &kujiv1.DrawRequest{Player: fmt.Sprint("p", i), Pool: "hats"}); err != nil {
				t.Error(err)
			}
		}
	}
	draw(draws / 2)
	feed := p.do(t, "events", map[string]any{"client": c.name, "events": draws + 1, "request": &kujiv1.StreamEventsRequest{From: proto.Uint64(1)}})
	var got []string
	began := time.Now()
	for broken := 0; ; {
		if time.Since(began) > patience {
			t.Fatalf("the feed goes on, and has brought %q", got)
		}
		m, f := message(t, feed)
		if f != nil {
			t.Fatal(f)
		}
		if m == nil {
			break
		}
		for _, e := range m.GetEvents() {
			got = append(got, place(e))
		}
		if len(got) > 20*(broken+1) && broken < 3 {
			broken++
			between.Cut()
			draw(draws / 6)
		}
	}
	var want []string
	for _, e := range logged(t, s, &kujiv1.StreamEventsRequest{From: proto.Uint64(1)}, draws+1, func(*kujiv1.Event) bool { return true }) {
		want = append(want, place(e))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the feed that broke has %q, want %q", got, want)
	}
}

func place(e *kujiv1.Event) string {
	return fmt.Sprintf("%d.%d %s %s", e.GetPosition(), e.GetIndex(), e.GetKind(), e.GetRequestId())
}

// feedRepeats: after a break, events come again that the reader has.
func feedRepeats(t *testing.T, _ *world, p *program) {
	message := func(next uint64, places ...uint64) *kujiv1.StreamEventsResponse {
		m := &kujiv1.StreamEventsResponse{Next: next}
		for _, at := range places {
			m.Events = append(m.Events, &kujiv1.Event{Position: at / 10, Index: uint32(at % 10)})
		}
		return m
	}
	asked := make(chan uint64, 10_000)
	s := &script{events: func(from *uint64, send func(*kujiv1.StreamEventsResponse) error) error {
		if *from < 5 { // after the last event it may ask once more
			asked <- *from
		}
		switch *from {
		case 1:
			return errors.Join(send(message(1, 10)), send(message(2, 20, 21)), send(message(2)), func() error { panic(http.ErrAbortHandler) }())
		case 2:
			return send(message(4, 20, 21, 22, 30)) // and ends
		}
		return errors.Join(send(message(5, 40)), refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED))
	}}
	c := p.open(t, options{}, s.serve(t))
	all := events(t, p.do(t, "events", map[string]any{"client": c.name, "events": 6, "request": &kujiv1.StreamEventsRequest{From: proto.Uint64(1)}}))
	var got []uint64
	for _, e := range all {
		got = append(got, e.GetPosition()*10+uint64(e.GetIndex()))
	}
	if want := []uint64{10, 20, 21, 22, 30, 40}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	var froms []uint64 // a client may have lost what came just before a break, and asks for it again
	for range len(asked) {
		froms = append(froms, <-asked)
	}
	if froms = slices.Compact(froms); !slices.Equal(froms, []uint64{1, 2, 4}) {
		t.Errorf("asked from %d, want 1, 2, 4", froms)
	}
}

// feedSilent: the other end is gone without a word. Only time tells.
func feedSilent(t *testing.T, _ *world, p *program) {
	s := serve(t)
	between := cuts(t, s)
	c := p.open(t, options{silence: time.Second}, "http://"+between.Addr())
	direct := s.asks(t, "")
	feed := p.do(t, "events", map[string]any{"client": c.name, "events": 2, "request": &kujiv1.StreamEventsRequest{From: proto.Uint64(1)}})
	for had, began := 0, time.Now(); had == 0; {
		m, f := message(t, feed)
		if time.Since(began) > patience {
			t.Fatal("no event")
		}
		if f != nil || m == nil {
			t.Fatalf("got %v, %v, want the catalog", m, f)
		}
		had = len(m.GetEvents())
	}
	between.Freeze()
	if _, err := direct.Draw(t.Context(), &kujiv1.DrawRequest{Player: "ann", Pool: "hats"}); err != nil {
		t.Fatal(err)
	}
	if all := events(t, feed); len(all) != 1 || all[0].GetKind() != "draw" {
		t.Errorf("got %v, want the draw", all)
	}
}

func feedRefused(t *testing.T, w *world, p *program) {
	c := p.open(t, options{}, w.open.url())
	f := p.do(t, "events", map[string]any{"client": c.name, "events": 1, "request": &kujiv1.StreamEventsRequest{Realm: "no-such-realm"}}).end(t, nil)
	want(t, f, "server", "not_found", "REASON_NOT_FOUND")
}
