//go:build unix

package pgtest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuji-dev/kuji/internal/pgtest"
)

// must ends a test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patient returns a context that ends only if something hangs.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// want checks the one value of a query.
func want(t *testing.T, s *pgtest.Server, value, sql string) {
	t.Helper()
	got, err := s.Value(t.Context(), sql)
	must(t, err)
	if got != value {
		t.Errorf("%s: got %q, want %q", sql, got, value)
	}
}

func TestKill(t *testing.T) {
	ctx := patient(t)
	s := pgtest.Start(t, pgtest.Options{TCP: true, Password: "it's secret", Settings: map[string]string{"max_connections": "33"}})
	c, err := pgx.Connect(ctx, s.URL())
	must(t, err)
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "CREATE TABLE t AS SELECT 1 AS n")
	must(t, err)
	for range 2 {
		must(t, s.Kill())
		<-s.Ended()
		if _, err := c.Exec(ctx, "SELECT 1"); err == nil {
			t.Error("a connection has survived")
		}
		must(t, s.Start(ctx))
	}
	want(t, s, "1", "SELECT sum(n) FROM t")
	want(t, s, "33", "SELECT current_setting('max_connections')")
	must(t, s.Stop(ctx))
	must(t, s.Stop(ctx))
	must(t, s.Set(ctx, map[string]string{"work_mem": "7MB"}))
	must(t, s.Start(ctx))
	want(t, s, "7MB", "SELECT current_setting('work_mem')")
	wrong := strings.Replace(s.URL(), "secret", "else", 1)
	if c, err := pgx.Connect(ctx, wrong); err == nil {
		c.Close(ctx)
		t.Error("another password is as good")
	}
	must(t, s.Close())
	must(t, s.Close())
}

func TestStandby(t *testing.T) {
	ctx := patient(t)
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	must(t, s.Exec(ctx, "CREATE TABLE t(n int)"))
	b := pgtest.Standby(t, s, "b", pgtest.Options{TCP: true})
	must(t, s.SetSync(ctx, "b"))
	must(t, s.Exec(ctx, "INSERT INTO t VALUES (1)"))
	must(t, b.CatchUp(ctx))
	want(t, b, "1", "SELECT sum(n) FROM t")

	// While it is paused, commits wait for it, and show in no other connection until then.
	must(t, b.Pause(ctx))
	must(t, b.Pause(ctx))
	done := make(chan error, 1)
	go func() { done <- s.Exec(ctx, "INSERT INTO t VALUES (2)") }()
	must(t, s.Until(ctx, "1", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
	want(t, s, "1", "SELECT sum(n) FROM t")
	must(t, b.Resume())
	must(t, <-done)
	must(t, b.CatchUp(ctx))

	// What is written while nothing waits for it is lost.
	must(t, s.SetSync(ctx, ""))
	must(t, b.Pause(ctx))
	must(t, s.Exec(ctx, "INSERT INTO t VALUES (4)"))
	must(t, s.Kill())
	must(t, b.Promote(ctx))
	want(t, b, "3", "SELECT sum(n) FROM t")
	both, err := pgx.Connect(ctx, s.URL(s.Address(), b.Address())+"&target_session_attrs=read-write")
	must(t, err)
	_, err = both.Exec(ctx, "INSERT INTO t VALUES (8)")
	must(t, err)
	must(t, both.Close(ctx))
	must(t, s.Start(ctx))
	want(t, s, "7", "SELECT sum(n) FROM t")
}

func TestDisk(t *testing.T) {
	ctx := patient(t)
	s := pgtest.Start(t, pgtest.Options{Disk: 128 << 20, WALApart: true})
	must(t, s.Exec(ctx, "CREATE TABLE t(data text)"))
	must(t, s.Fill(256<<10))
	fill := func() error {
		return s.Exec(ctx, "INSERT INTO t SELECT repeat(md5(i::text), 100) FROM generate_series(1, 10000) AS i")
	}
	var e *pgconn.PgError
	switch err := fill(); {
	case err == nil:
		t.Error("there was room")
	case !errors.As(err, &e) || e.Code != "53100":
		t.Errorf("a full disk: got %v, want the code 53100", err)
	}
	must(t, s.Free())
	must(t, fill())
}

func TestDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it starts a PostgreSQL")
	}
	parent, err := os.MkdirTemp("", "kuji-test") // t.TempDir is below one that is not for everybody
	must(t, err)
	defer os.RemoveAll(parent)
	must(t, os.Chmod(parent, 0o755))
	s, err := pgtest.New(patient(t), pgtest.Options{Dir: parent})
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	must(t, err)
	must(t, s.Close())
	left, err := os.ReadDir(parent)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
}
