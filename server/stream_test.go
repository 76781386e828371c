package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

type drawStream = connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]

func openStream(t testing.TB, c client) *drawStream {
	t.Helper()
	s, err := c.reward.StreamDraws(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.CloseRequest(), s.CloseResponse() })
	return s
}

// exchange sends one batch and returns its answer.
func exchange(t testing.TB, s *drawStream, req *kujiv1.StreamDrawsRequest) *kujiv1.StreamDrawsResponse {
	t.Helper()
	if err := s.Send(req); err != nil {
		t.Fatal(err)
	}
	res, err := s.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// streamClients returns every protocol and encoding that can stream both ways.
func streamClients(t testing.TB, url string) []client {
	return []client{
		newClient("grpc", h2c(t), url, connect.WithGRPC()),
		newClient("grpc json", h2c(t), url, connect.WithGRPC(), connect.WithProtoJSON()),
		newClient("grpc gzip", h2c(t), url, connect.WithGRPC(), connect.WithSendGzip()),
		newClient("grpc-web", h2c(t), url, connect.WithGRPCWeb()),
		newClient("connect", h2c(t), url),
		newClient("connect json", h2c(t), url, connect.WithProtoJSON()),
	}
}

// resultsOf puts together what a unary call would have been told of each draw,
// as the contract describes it.
func resultsOf(t testing.TB, req *kujiv1.StreamDrawsRequest, res *kujiv1.StreamDrawsResponse) (all []*kujiv1.Result, refusals map[int]*kujiv1.ErrorDetail) {
	t.Helper()
	refusals = map[int]*kujiv1.ErrorDetail{}
	next, counts, drawn := res.GetOutcomeIndexes(), res.GetOutcomeCounts(), res.GetOutcomeDraws()
	for _, run := range res.GetRuns() {
		for i := range run.GetDraws() {
			out := &kujiv1.Result{Status: run.GetStatus(), Subject: run.GetSubject(), Replayed: run.GetReplayed(), Paid: run.GetPaid(), Limit: run.GetLimit(), Lacks: run.GetLacks()}
			if run.Receipt != nil {
				out.Receipt = proto.Clone(res.GetReceipts()[run.GetReceipt()]).(*kujiv1.Receipt)
				out.Receipt.Index = run.GetIndex() + i
			}
			if run.GetStatus() == kujiv1.Status_STATUS_OK {
				count := uint32(1)
				if len(req.GetCounts()) > 0 {
					count = max(1, req.GetCounts()[len(all)])
				}
				if len(counts) > 0 {
					count, counts = counts[0], counts[1:]
				}
				for k, place := range next[:count] {
					o := proto.CloneOf(res.GetOutcomes()[place])
					if o.Draw = uint32(k); len(drawn) > 0 {
						o.Draw, drawn = drawn[0], drawn[1:]
					}
					out.Outcomes = append(out.Outcomes, o)
				}
				next = next[count:]
			}
			if run.GetError() != nil {
				refusals[len(all)] = run.GetError()
			}
			all = append(all, out)
		}
	}
	if len(next) > 0 {
		t.Errorf("%d outcomes belong to no draw", len(next))
	}
	return all, refusals
}

// TestStreamDraws sends a batch whose draws end in every way, and checks each
// against the answer of a unary call with the same id, in every protocol.
func TestStreamDraws(t *testing.T) {
	f := start(t, server.Options{})
	players := []string{"ann", "bob", ""}
	pools := []string{"standard", "free", "last", "once", "dear", "future", "past", "nosuch", "chest"}
	draws := []struct {
		player, pool, count uint32
		id                  string
		want                kujiv1.Status
	}{
		{0, 1, 0, "0", kujiv1.Status_STATUS_OK},
		{1, 1, 0, "1", kujiv1.Status_STATUS_OK},
		{0, 0, 10, "2", kujiv1.Status_STATUS_OK},
		{0, 0, 11, "3", kujiv1.Status_STATUS_COUNT_TOO_LARGE},
		{0, 2, 1, "4", kujiv1.Status_STATUS_OK},
		{1, 2, 1, "5", kujiv1.Status_STATUS_SOLD_OUT},
		{2, 1, 1, "6", kujiv1.Status_STATUS_REFUSED}, // nobody
		{0, 3, 1, "7", kujiv1.Status_STATUS_OK},
		{0, 3, 1, "8", kujiv1.Status_STATUS_LIMIT_REACHED},
		{0, 4, 1, "9", kujiv1.Status_STATUS_INSUFFICIENT_ITEMS},
		{0, 5, 1, "10", kujiv1.Status_STATUS_NOT_STARTED},
		{0, 6, 1, "11", kujiv1.Status_STATUS_ENDED},
		{0, 7, 1, "12", kujiv1.Status_STATUS_REFUSED},
		{0, 7, 1, "13", kujiv1.Status_STATUS_REFUSED},
		{0, 1, math.MaxUint32, "14", kujiv1.Status_STATUS_REFUSED},
		{0, 1, 1, "2", kujiv1.Status_STATUS_REFUSED}, // other arguments
		{0, 1, 0, "0", kujiv1.Status_STATUS_OK},      // again
		{1, 1, 3, "", kujiv1.Status_STATUS_OK},
		{0, 8, 3, "18", kujiv1.Status_STATUS_OK}, // takes several entries a draw
	}
	req := &kujiv1.StreamDrawsRequest{Players: players, Pools: pools}
	for _, d := range draws {
		req.PlayerIndexes = append(req.PlayerIndexes, d.player)
		req.PoolIndexes = append(req.PoolIndexes, d.pool)
		req.Counts = append(req.Counts, d.count)
		req.RequestIds = append(req.RequestIds, d.id)
	}
	all := streamClients(t, f.url)
	for i, c := range all {
		res := exchange(t, openStream(t, c), req)
		got, refusals := resultsOf(t, req, res)
		if len(got) != len(draws) {
			t.Fatalf("%s: %d results for %d draws", c.name, len(got), len(draws))
		}
		for j, d := range draws {
			if got[j].GetStatus() != d.want {
				t.Errorf("%s: draw %d: %v, want %v", c.name, j, got[j], d.want)
			}
			refused := d.want == kujiv1.Status_STATUS_REFUSED
			if refused != (refusals[j] != nil) || refused != (got[j].GetReceipt() == nil) {
				t.Errorf("%s: draw %d: receipt %v, refusal %v: want exactly one of them", c.name, j, got[j].GetReceipt(), refusals[j])
			}
			if refused || d.id == "" {
				continue
			}
			if want := i > 0 || j == 16; got[j].GetReplayed() != want {
				t.Errorf("%s: draw %d: replayed %v, want %v", c.name, j, got[j].GetReplayed(), want)
			}
			got[j].Replayed = true
			unary, err := all[0].reward.Draw(context.Background(), &kujiv1.DrawRequest{RequestId: d.id, Player: players[d.player], Pool: pools[d.pool], Count: d.count})
			if err != nil {
				t.Fatal(err)
			}
			want := unary.GetResult()
			if df := diff(want, got[j]); df != "" {
				t.Errorf("%s: draw %d differs from the unary answer:\n%s", c.name, j, df)
			}
		}
		for j, reason := range map[int]kujiv1.Reason{6: kujiv1.Reason_REASON_INVALID, 14: kujiv1.Reason_REASON_INVALID, 15: kujiv1.Reason_REASON_ID_REUSED} {
			if refusals[j].GetReason() != reason || len(refusals[j].GetViolations()) != 1 {
				t.Errorf("%s: draw %d is refused with %v, want %v and what is wrong", c.name, j, refusals[j], reason)
			}
		}
		if n := len(res.GetOutcomes()); n > 4 {
			t.Errorf("%s: %d outcomes in the table for at most four different ones", c.name, n)
		}
	}
}

// TestStreamShortForms: columns that are left out.
func TestStreamShortForms(t *testing.T) {
	f := start(t, server.Options{})
	second, err := f.engine.Realm("other")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err == nil {
		_, err = second.Apply(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := openStream(t, streamClients(t, f.url)[0])
	for range 8 { // nothing of a long form may be left
		exchange(t, s, &kujiv1.StreamDrawsRequest{Realm: "other", Players: []string{"x", "y", "z"}, PlayerIndexes: []uint32{2, 1, 0},
			Pools: []string{"a", "b"}, PoolIndexes: []uint32{0, 1, 0}, Counts: []uint32{3, 2, 1}, RequestIds: []string{"1", "2", "3"}})
	}
	req := &kujiv1.StreamDrawsRequest{Players: []string{"ann", "bob"}, Pools: []string{"free"}}
	res := exchange(t, s, req)
	if len(res.GetRuns()) != 1 || res.GetRuns()[0].GetDraws() != 2 || len(res.GetReceipts()) != 1 || len(res.GetOutcomes()) != 1 ||
		!slices.Equal(res.GetOutcomeIndexes(), []uint32{0, 0}) {
		t.Errorf("two draws alike: %v, want one run, one receipt, one outcome", res)
	}
	other := exchange(t, s, &kujiv1.StreamDrawsRequest{Realm: "other", Players: []string{"ann"}, Pools: []string{"free"}})
	if got := other.GetReceipts()[0].GetRealm(); got != "other" || other.GetRuns()[0].GetStatus() != kujiv1.Status_STATUS_OK {
		t.Errorf("a batch for another realm: %v", other)
	}
	_ = s.Send(&kujiv1.StreamDrawsRequest{}) // of no bytes at all
	if res, err := s.Receive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty batch: %v, %v, want invalid_argument", res, err)
	}
}

// TestStreamBadBatches: a batch that makes no sense ends the stream with a
// reason, after the answer to the batch before it; nothing of it is carried out.
func TestStreamBadBatches(t *testing.T) {
	f := start(t, server.Options{})
	good := &kujiv1.StreamDrawsRequest{Players: []string{"ann"}, Pools: []string{"free"}}
	many := make([]uint32, kuji.MaxBatch+1)
	thousand := slices.Repeat([]uint32{1000}, 101)
	for field, bad := range map[string]*kujiv1.StreamDrawsRequest{
		"players":         {},
		"pools":           {Players: []string{"ann"}},
		"pools ":          {Players: []string{"ann"}, Pools: []string{"free", "last"}},
		"pool_indexes":    {Players: []string{"ann"}, Pools: []string{"free"}, PoolIndexes: []uint32{0, 0}},
		"pool_indexes ":   {Players: []string{"ann"}, Pools: []string{"free"}, PoolIndexes: []uint32{1}},
		"player_indexes":  {Players: []string{"ann"}, PlayerIndexes: []uint32{0, math.MaxUint32}, Pools: []string{"free"}},
		"counts":          {Players: []string{"ann"}, Pools: []string{"free"}, Counts: []uint32{1, 1}},
		"counts ":         {Players: []string{"ann"}, Pools: []string{"free"}, PlayerIndexes: make([]uint32, len(thousand)), Counts: thousand},
		"request_ids":     {Players: []string{"ann"}, Pools: []string{"free"}, RequestIds: []string{"1", "2"}},
		"player_indexes ": {Players: []string{"ann"}, Pools: []string{"free"}, PlayerIndexes: many},
		"players ":        {Players: make([]string, kuji.MaxBatch+1), Pools: []string{"free"}},
	} {
		field = strings.TrimSpace(field)
		s := openStream(t, streamClients(t, f.url)[0])
		before := f.events(t)
		if err := errors.Join(s.Send(good), s.Send(bad), s.Send(good)); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if res, err := s.Receive(); err != nil || len(res.GetRuns()) != 1 {
			t.Errorf("%s: the batch before: %v, %v", field, res, err)
		}
		_, err := s.Receive()
		if connect.CodeOf(err) != connect.CodeInvalidArgument || detail(t, err).GetViolations()[0].GetField() != field {
			t.Errorf("%s: %v, %v, want invalid_argument for it", field, err, detailOf(err))
		}
		if got := f.events(t) - before; got != 1 {
			t.Errorf("%s: %d draws were logged, want the good one before it", field, got)
		}
	}
	s := openStream(t, streamClients(t, f.url)[0])
	_ = s.Send(&kujiv1.StreamDrawsRequest{Realm: "nosuch", Players: []string{"ann"}, Pools: []string{"free"}})
	if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown realm: %v, want not_found", err)
	}
}

func (f *fixture) events(t testing.TB) uint64 {
	t.Helper()
	r, err := f.engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	return r.Stats().Events
}

// TestStreamAhead sends batches without waiting for answers: these come in
// order, and the draws are carried out in order.
func TestStreamAhead(t *testing.T) {
	f := start(t, server.Options{})
	for _, c := range streamClients(t, f.url)[:2] {
		s := openStream(t, c)
		const batches = 50
		go func() {
			for i := range batches {
				req := &kujiv1.StreamDrawsRequest{Pools: []string{"free"}}
				for j := range i + 1 {
					req.Players = append(req.Players, fmt.Sprint("p", j))
					req.RequestIds = append(req.RequestIds, fmt.Sprintf("%s-%d-%d", c.name, i, j))
				}
				if err := s.Send(req); err != nil {
					t.Errorf("%s: batch %d: %v", c.name, i, err)
				}
			}
			if err := s.CloseRequest(); err != nil {
				t.Error(err)
			}
		}()
		last := &kujiv1.Receipt{}
		for i := range batches {
			res, err := s.Receive()
			if err != nil {
				t.Fatalf("%s: answer %d: %v", c.name, i, err)
			}
			run := res.GetRuns()[0]
			at := res.GetReceipts()[0]
			at.Index = run.GetIndex()
			if run.GetDraws() != uint32(i+1) {
				t.Fatalf("%s: answer %d is to %d draws, want %d", c.name, i, run.GetDraws(), i+1)
			}
			if at.GetPosition() < last.GetPosition() || (at.GetPosition() == last.GetPosition() && at.GetIndex() <= last.GetIndex()) {
				t.Fatalf("%s: answer %d stands at %v, the one before at %v", c.name, i, at, last)
			}
			last = at
		}
		if _, err := s.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the last answer: %v, want EOF", c.name, err)
		}
	}
}

// fakeConn is the server's end of a stream: it has endless batches to read,
// and takes no answer until told.
type fakeConn struct {
	connect.StreamingHandlerConn
	batch    []byte
	received chan int
	n        int
	take     chan struct{}
	fail     error // of Send
	crash    bool  // Send panics
}

func (c *fakeConn) Receive(m any) error {
	c.n++
	c.received <- c.n
	return proto.Unmarshal(c.batch, m.(proto.Message))
}

func (c *fakeConn) Send(any) error {
	<-c.take
	if c.crash {
		panic("while sending")
	}
	return c.fail
}
func (c *fakeConn) RequestHeader() http.Header { return http.Header{} }

// deadlines is a ResponseWriter that allows deadlines and has none.
type deadlines struct{ http.ResponseWriter }

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// TestStreamBackPressure: as long as no answer is taken, no more than
// StreamBatches are read; an answer that cannot be sent, or a panic while it
// is, ends the stream.
func TestStreamBackPressure(t *testing.T) {
	const ahead = 3
	log := &lockedBuffer{}
	f := newServer(t, server.Options{Limits: server.Limits{StreamBatches: ahead}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	batch, err := proto.Marshal(drawsOf(10, -1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // each is a chance for a batch too many
		crash := i%2 == 1
		c := &fakeConn{batch: batch, received: make(chan int), take: make(chan struct{}), crash: crash, fail: errors.New("gone")}
		ended := make(chan error, 1)
		go func() { ended <- f.server.RunStream(context.Background(), c, deadlines{httptest.NewRecorder()}) }()
		for range ahead {
			<-c.received
		}
		select {
		case n := <-c.received:
			t.Fatalf("batch %d is read while %d wait", n, ahead)
		case err := <-ended:
			t.Fatalf("the stream ended: %v", err)
		case c.take <- struct{}{}:
		}
		err := <-ended
		if crash {
			if ce := f.server.ConnectError(err, nil); ce.Code() != connect.CodeInternal || !strings.Contains(log.String(), "while sending") {
				t.Errorf("after a panic: %v, log %q", ce, log.String())
			}
		} else if !errors.Is(err, c.fail) {
			t.Errorf("ended with %v, want %v", err, c.fail)
		}
	}
}

// TestStreamWork: large batches wait for memory, and give it back whatever becomes of
// them.
func TestStreamWork(t *testing.T) {
	f := newServer(t, server.Options{Limits: server.Limits{WorkBytes: 1}})
	batch, err := proto.Marshal(drawsOf(kuji.MaxBatch, -1))
	if err != nil {
		t.Fatal(err)
	}
	for _, fail := range []error{nil, errors.New("gone")} {
		c := &fakeConn{batch: batch, received: make(chan int), take: make(chan struct{}), fail: fail}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.server.RunStream(ctx, c, deadlines{httptest.NewRecorder()}) }()
		<-c.received
		<-c.received // received, and waiting for the first's memory
		if n := f.server.InWork(); n != 1 {
			t.Errorf("%d bytes are taken, want 1", n)
		}
		select {
		case n := <-c.received:
			t.Errorf("batch %d is read before the one before it has its memory", n)
		case c.take <- struct{}{}:
		}
		if fail == nil {
			<-c.received // the second has its memory
			cancel()
			close(c.take)
		}
		<-ended
		cancel()
		if n := f.server.InWork(); n != 0 {
			t.Errorf("%d bytes are taken after the end, want 0", n)
		}
	}
}

// TestStreamShutdown: a drain answers what has begun and ends the stream with
// a code that tells the client to go on elsewhere.
func TestStreamShutdown(t *testing.T) {
	f := start(t, server.Options{})
	var idle []*drawStream
	for _, c := range streamClients(t, f.url)[:2] {
		s := openStream(t, c)
		exchange(t, s, drawsOf(3, -1))
		idle = append(idle, s)
	}
	if err := f.server.Shutdown(context.Background()); err != nil { // waits for streams
		t.Fatal(err)
	}
	for _, s := range idle {
		_, err := s.Receive()
		if connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_CLOSED {
			t.Errorf("after the drain: %v, want unavailable, REASON_CLOSED", err)
		}
	}
}

// keyed presents an API key with every request of a client.
type keyed struct {
	http.RoundTripper
	key string
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Api-Key", k.key)
	return k.RoundTripper.RoundTrip(r)
}

// TestStreamKeys: a stream takes the role write, and a key that is withdrawn
// is good for no further batch.
func TestStreamKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	both := []string{keyLine(t, "write", writeKey, ""), keyLine(t, "read", readKey, "")}
	writeKeys(t, path, both...)
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, server.Options{Keys: keys})
	stream := func(key string) *drawStream {
		h := h2c(t)
		h.Transport = keyed{h.Transport, key}
		return openStream(t, newClient("", h, f.url, connect.WithGRPC()))
	}
	for key, want := range map[string]connect.Code{readKey: connect.CodePermissionDenied, "none": connect.CodeUnauthenticated} {
		s := stream(key)
		_ = s.Send(drawsOf(1, -1)) // Receive says why it failed
		if _, err := s.Receive(); connect.CodeOf(err) != want {
			t.Errorf("key %s: %v, want %v", key, err, want)
		}
	}
	s := stream(writeKey)
	exchange(t, s, drawsOf(1, -1))
	writeKeys(t, path, append(both, keyLine(t, "admin", adminKey, ""))...)
	if err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	exchange(t, s, drawsOf(1, -1)) // still there
	writeKeys(t, path, both[1])
	if err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	before := f.events(t)
	_ = s.Send(drawsOf(1, -1))
	if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnauthenticated || detail(t, err).GetReason() != kujiv1.Reason_REASON_UNAUTHENTICATED {
		t.Errorf("a withdrawn key: %v, want unauthenticated", err)
	}
	if f.events(t) != before {
		t.Error("a withdrawn key has drawn")
	}
}

func TestStreamLimits(t *testing.T) {
	t.Run("streams", func(t *testing.T) {
		f := start(t, server.Options{Limits: server.Limits{DrawStreams: 1}})
		c := streamClients(t, f.url)
		exchange(t, openStream(t, c[0]), drawsOf(1, -1))
		s := openStream(t, c[4])
		_ = s.Send(drawsOf(1, -1))
		if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnavailable || detail(t, err).GetReason() != kujiv1.Reason_REASON_OVERLOADED {
			t.Errorf("one stream too many: %v, want unavailable", err)
		}
	})
	t.Run("idle", func(t *testing.T) {
		f := start(t, server.Options{Limits: server.Limits{IdleTimeout: 50 * time.Millisecond}})
		until(t, "an idle stream ends", func() bool {
			s := openStream(t, streamClients(t, f.url)[0])
			_ = s.Send(drawsOf(1, -1)) // it may come too late
			_, err := s.Receive()
			if err == nil {
				_, err = s.Receive()
			}
			if connect.CodeOf(err) == connect.CodeUnavailable {
				return false // its connection was idle for too long, before there was a stream
			}
			if connect.CodeOf(err) != connect.CodeDeadlineExceeded || detail(t, err).GetReason() != kujiv1.Reason_REASON_CANCELED {
				t.Errorf("an idle stream: %v, want deadline_exceeded", err)
			}
			return true
		})
	})
	t.Run("longer than a call may take", func(t *testing.T) {
		f := start(t, server.Options{Limits: server.Limits{ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second}})
		s := openStream(t, streamClients(t, f.url)[0])
		// Each exchange is far within the limits, all together are beyond them.
		for begin := time.Now(); time.Since(begin) < 3*time.Second; {
			exchange(t, s, drawsOf(10, -1))
		}
	})
	t.Run("bytes", func(t *testing.T) {
		f := start(t, server.Options{Limits: server.Limits{BatchBytes: 1000}})
		for _, c := range streamClients(t, f.url)[:3] {
			s := openStream(t, c)
			for range 20 { // each within the limit
				exchange(t, s, drawsOf(10, -1))
			}
			_ = s.Send(drawsOf(10_000, -1))
			if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("%s: a batch that is too large: %v, want resource_exhausted", c.name, err)
			}
		}
	})
	t.Run("http/1.1", func(t *testing.T) {
		f := start(t, server.Options{})
		s := openStream(t, newClient("", h1(t), f.url))
		_ = s.Send(drawsOf(1, -1))
		if _, err := s.Receive(); err == nil {
			t.Error("a stream over HTTP/1.1 is served")
		}
	})
}

// TestStreamRepeatable: an unknown outcome may be retried blindly only when
// every draw has an id.
func TestStreamRepeatable(t *testing.T) {
	f := newServer(t, server.Options{})
	unknown := &kuji.Error{Code: kuji.CodeUnknownOutcome, Message: "who knows"}
	for named, want := range map[bool]connect.Code{true: connect.CodeUnavailable, false: connect.CodeUnknown} {
		if got := f.server.ConnectError(server.StreamError(unknown, named), nil); got.Code() != want || detail(t, got).GetReason() != kujiv1.Reason_REASON_UNKNOWN_OUTCOME {
			t.Errorf("named %v: %v, want %v", named, got, want)
		}
	}
}

func TestStreamMetrics(t *testing.T) {
	f := start(t, server.Options{})
	s := openStream(t, streamClients(t, f.url)[0])
	req := drawsOf(10, -1)
	req.Pools[0] = "once"
	exchange(t, s, req)
	exchange(t, s, req)
	has := func(want ...string) {
		t.Helper()
		_, text := get(t, h1(t), f.url+"/metrics")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %s in\n%s", w, grep(text, "kuji_r"))
			}
		}
	}
	// A batch counts when its answer has been sent, which the client may see first.
	for {
		_, text := get(t, h1(t), f.url+"/metrics")
		if strings.Contains(text, `kuji_rpc_duration_seconds_count{rpc="kuji.v1.RewardService/StreamDraws"} 2`) {
			break
		}
	}
	has("kuji_draw_streams 1", `kuji_results_total{status="ok"} 10`, `kuji_results_total{status="limit_reached"} 10`)
	if err := s.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for {
		_, text := get(t, h1(t), f.url+"/metrics")
		if strings.Contains(text, `kuji_rpc_requests_total{code="ok",rpc="kuji.v1.RewardService/StreamDraws"} 1`) {
			break
		}
	}
	has("kuji_draw_streams 0", `kuji_rpc_duration_seconds_count{rpc="kuji.v1.RewardService/StreamDraws"} 2`)
}

// TestStreamAllocations: what an answer allocates does not grow with its draws.
func TestStreamAllocations(t *testing.T) {
	outcomes := make([]kuji.Outcome, 100)
	for i := range outcomes {
		outcomes[i] = kuji.Outcome{Entry: fmt.Sprint("entry-", i), Items: []kuji.Stack{{Item: "gem", Quantity: uint64(i)}}}
	}
	allocations := func(draws int) float64 {
		results := make([]kuji.Result, draws)
		for i := range results {
			results[i].Outcomes = outcomes[i%100 : i%100+1]
			results[i].Receipt.Index = i
		}
		asked := slices.Repeat([]kuji.Draw{{Count: 1}}, draws)
		return testing.AllocsPerRun(100, func() { server.DrawsResponse(asked, results) })
	}
	if few, many := allocations(1000), allocations(kuji.MaxBatch); many > few {
		t.Errorf("an answer to %d draws takes %v allocations, one to 1000 takes %v", kuji.MaxBatch, many, few)
	}
}

// FuzzStreamRequest makes draws of any batch, which must not panic, and checks
// each against the columns that it is from.
func FuzzStreamRequest(f *testing.F) {
	add := func(m *kujiv1.StreamDrawsRequest) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	add(&kujiv1.StreamDrawsRequest{Realm: "r", Players: []string{"ann", "bob", ""}, PlayerIndexes: []uint32{0, 300, 1}, Pools: []string{"x"},
		PoolIndexes: []uint32{7, 0}, Counts: []uint32{1, math.MaxUint32}, RequestIds: []string{"1", "é"}})
	add(&kujiv1.StreamDrawsRequest{Players: []string{"ann", "bob"}, PlayerIndexes: []uint32{1, 1}, Pools: []string{"x", "y"},
		PoolIndexes: []uint32{1, 0}, Counts: []uint32{0, 10}, RequestIds: []string{"1", ""}})
	add(drawsOf(3, 5))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(kujiv1.StreamDrawsRequest)
		if server.Codecs()["proto"].Unmarshal(data, m) != nil {
			return
		}
		draws, err := server.DrawsOf(m)
		if err != nil {
			return
		}
		for i, d := range draws {
			player, pool, count, id := i, 0, 1, ""
			if m.PlayerIndexes != nil {
				player = int(m.PlayerIndexes[i])
			}
			if m.PoolIndexes != nil {
				pool = int(m.PoolIndexes[i])
			}
			if m.Counts != nil {
				count = max(1, int(min(m.Counts[i], 1<<30)))
			}
			if m.RequestIds != nil {
				id = m.RequestIds[i]
			}
			want := kuji.Draw{ID: id, Player: m.Players[player], Pool: m.Pools[pool], Count: count}
			if d != want {
				t.Errorf("draw %d of %v is %v, want %v", i, m, d, want)
			}
		}
	})
}
