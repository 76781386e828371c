package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/server"
)

// TestWindowFills: the server warns of a window that fills up, once and before it refuses anything;
// says so when it refuses; and warns again when the window fills up once more.
func TestWindowFills(t *testing.T) {
	elapsed := atomic.Int64{}
	now := func() time.Time { return time.UnixMilli(1_800_000_000_000).Add(time.Duration(elapsed.Load())) }
	var said bytes.Buffer
	f := newServerWith(t, kuji.Options{Sync: kuji.SyncNone, Now: now}, server.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	c, err := catalog.Parse([]byte("idempotency: {count: 10, age: 10m}\n" + testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	realm, err := f.engine.Realm(server.DefaultRealm)
	if err == nil {
		_, err = realm.Apply(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	check := f.server.WindowChecks()
	warns := func(when, want string) {
		t.Helper()
		check()
		got := strings.TrimSpace(said.String())
		said.Reset()
		if (want == "") != (got == "") || !strings.Contains(got, want) || strings.Count(got, "level=WARN") > 1 {
			t.Errorf("%s the server says %q, want %q", when, got, want)
		}
	}
	n := 0
	draw := func(times int) (err error) {
		for range times {
			n++
			_, err = realm.Do(t.Context(), kuji.Draw{ID: fmt.Sprint("id-", n), Player: "ann", Pool: "free"})
		}
		return err
	}
	for range 2 {
		if err := draw(7); err != nil {
			t.Fatal(err)
		}
		warns("at 7 of 10", "")
		if err := draw(1); err != nil {
			t.Fatal(err)
		}
		warns("at 8 of 10", "fills up")
		warns("at 8 of 10 again", "")
		if err := draw(2); err != nil {
			t.Fatal(err)
		}
		warns("at 10 of 10", "")
		if err := draw(1); kuji.CodeOf(err) != kuji.CodeOverloaded {
			t.Fatal(err)
		}
		warns("beyond", "limit=10")
		warns("beyond, again", "")
		elapsed.Add(int64(time.Hour)) // they are remembered, and can go
		if st := realm.Stats(); st.YoungRequestIDs != 0 || st.RequestIDs == 0 {
			t.Errorf("an hour later %d ids of %d are young", st.YoungRequestIDs, st.RequestIDs)
		}
		warns("an hour later", "")
	}
}
