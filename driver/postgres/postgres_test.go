//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/internal/proxy"
)

// patience is how long a test waits for anything.
const patience = time.Minute

// shared is the server of most tests.
var shared struct {
	once   sync.Once
	server *pgtest.Server
	err    error
	n      atomic.Int32 // schemas
}

func TestMain(m *testing.M) {
	m.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	pgtest.Stop()
}

// server returns the server of most tests.
func server(t testing.TB) *pgtest.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: starts a database")
	}
	shared.once.Do(func() {
		shared.server, shared.err = pgtest.New(context.Background(), pgtest.Options{TCP: true})
	})
	if errors.Is(shared.err, pgtest.ErrNotInstalled) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// newSchema returns the name of a schema that is not there.
func newSchema() string { return fmt.Sprint("s", shared.n.Add(1)) }

// with returns a URL with a parameter more.
func with(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}

// logger is where drivers of tests log.
func logger() *slog.Logger {
	if os.Getenv("KUJI_TEST_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// connect connects to a schema until the test ends.
func connect(t testing.TB, url, schema string, change ...func(*postgres.Options)) *postgres.Driver {
	t.Helper()
	o := postgres.Options{URL: with(url, "schema="+schema), Cluster: "test", Logger: logger()}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := postgres.Connect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// exec runs a statement as the server's first user.
func exec(t testing.TB, s *pgtest.Server, sql string, args ...any) {
	t.Helper()
	if err := s.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// newWorld returns a world on a server: a schema of its own, and a proxy for each of two nodes.
func newWorld(t testing.TB, s *pgtest.Server, change ...func(*postgres.Options)) *drivertest.World {
	schema := newSchema()
	var proxies [2]*proxy.Proxy
	for i := range proxies {
		p, err := proxy.Listen("127.0.0.1:0", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		proxies[i] = p
	}
	return &drivertest.World{
		Open: func(t testing.TB, node int) driver.Driver {
			t.Helper()
			return connect(t, s.URL(proxies[node].Addr()), schema, change...)
		},
		Hold: func(node int, way drivertest.Way) drivertest.Hold {
			ways := map[drivertest.Way]proxy.Way{drivertest.Requests: proxy.ToServer, drivertest.Answers: proxy.ToClient}
			return &hold{proxies[node], ways[way], proxies[node].Hold(ways[way])}
		},
		Failover: func(t testing.TB, _ string) {
			t.Helper()
			exec(t, s, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kuji'`)
		},
		SetFull: func(t testing.TB, full bool) {
			t.Helper()
			exec(t, s, fmt.Sprintf(`CREATE OR REPLACE FUNCTION %s.full() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN IF %t THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$`, schema, full))
			for _, table := range []string{"entries", "files", "chunks"} {
				exec(t, s, fmt.Sprintf(`CREATE OR REPLACE TRIGGER full_disk BEFORE INSERT OR UPDATE ON %s.%s FOR EACH ROW EXECUTE FUNCTION %s.full()`, schema, table, schema))
			}
		},
		Damage: func(t testing.TB, realm string, at driver.Cursor) {
			t.Helper()
			exec(t, s, fmt.Sprintf(`UPDATE %s.entries SET data = set_byte(data, 3, get_byte(data, 3) # 1)
				WHERE realm = (SELECT id FROM %s.realms WHERE name = '%s') AND cursor = %d`, schema, schema, realm, at))
		},
		Patience: patience,
	}
}

// hold implements drivertest.Hold.
type hold struct {
	proxy  *proxy.Proxy
	way    proxy.Way
	caught <-chan struct{}
}

func (h *hold) Caught() <-chan struct{} { return h.caught }
func (h *hold) Deliver()                { h.proxy.Release(h.way) }
func (h *hold) Drop() {
	h.proxy.Cut()
	h.proxy.Release(h.way)
}

func TestDriver(t *testing.T) {
	s := server(t)
	drivertest.Run(t, func(t testing.TB) *drivertest.World { return newWorld(t, s) })
}
