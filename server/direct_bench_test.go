package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// discard is a response that nobody reads.
type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header             { return d.header }
func (d *discard) WriteHeader(code int)            { d.code = code }
func (d *discard) Write(p []byte) (n int, _ error) { return len(p), nil }

// drawOnce returns what sends a server the same draw, without a request id, and
// reports whether it was made.
func drawOnce(tb testing.TB, s *server.Server) (send func() bool) {
	const message = `{"player":"ann","pool":"free"}`
	body := strings.NewReader(message)
	r, err := http.NewRequest(http.MethodPost, "http://localhost"+drawPath, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.ContentLength = io.NopCloser(body), int64(len(message))
	w := &discard{header: make(http.Header)}
	return func() bool {
		body.Reset(message)
		clear(w.header)
		w.code = http.StatusOK
		s.ServeHTTP(w, r)
		return w.code == http.StatusOK
	}
}

// TestDirectAllocations: a draw that is answered directly allocates its text and
// little else, three times in all. Connect's way takes 87; the race detector
// empties pools at random and takes a few more.
func TestDirectAllocations(t *testing.T) {
	s := newServerWith(t, kuji.Options{Sync: kuji.SyncOff}, server.Options{}).server
	send := drawOnce(t, s)
	const most = 8
	if n := testing.AllocsPerRun(1000, func() {
		if !send() {
			t.Fatal("no draw was made")
		}
	}); n > most {
		t.Errorf("%v allocations for each draw, want at most %d", n, most)
	}
}

// BenchmarkDraw is what a draw as one JSON message costs between net/http and
// the log: by the direct path, and by Connect's.
func BenchmarkDraw(b *testing.B) {
	s := newServerWith(b, kuji.Options{Sync: kuji.SyncOff}, server.Options{}).server
	run := func(b *testing.B) {
		send := drawOnce(b, s)
		b.ReportAllocs()
		for b.Loop() {
			if !send() {
				b.Fatal("no draw was made")
			}
		}
	}
	b.Run("direct", run)
	b.Run("connect", func(b *testing.B) {
		defer s.Indirect()()
		run(b)
	})
}
