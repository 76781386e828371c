//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/driver/postgres"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/internal/proxy"
)

// try connects to a URL, and returns what came of it.
func try(t testing.TB, url, cluster string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := postgres.Connect(ctx, postgres.Options{URL: url, Cluster: cluster})
	if err == nil {
		err = d.Close()
	}
	return err
}

// Processes that start at once make the schema once.
func TestSchemaTogether(t *testing.T) {
	s := server(t)
	url := with(s.URL(), "schema="+newSchema())
	errs := make([]error, 5)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = try(t, url, "test") })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// An old schema is brought up to date and keeps what it has. One of a newer build is refused, and stays.
func TestSchemaVersions(t *testing.T) {
	s := server(t)
	schema := newSchema()
	d := connect(t, s.URL(), schema)
	fill(t, open(t, d), 0, 3)
	d.Close()
	exec(t, s, fmt.Sprintf("DROP TABLE %s.cuts", schema))
	exec(t, s, fmt.Sprintf("UPDATE %s.meta SET version = 2", schema))
	d = connect(t, s.URL(), schema)
	if last, err := open(t, d).Last(t.Context()); err != nil || last != 3 {
		t.Fatalf("after the update of the schema, the log ends at %d, error %v; want 3", last, err)
	}
	d.Close()
	until(t, s, "3", fmt.Sprintf("SELECT version FROM %s.meta", schema))

	exec(t, s, fmt.Sprintf("UPDATE %s.meta SET version = 1000", schema))
	err := try(t, with(s.URL(), "schema="+schema), "test")
	newer, ok := errors.AsType[*postgres.VersionError](err)
	if !ok || newer.Has != 1000 || newer.Knows != 3 || newer.Schema != schema {
		t.Fatalf("a newer schema: error %v, want a VersionError", err)
	}
	until(t, s, "1000", fmt.Sprintf("SELECT version FROM %s.meta", schema))
}

// A schema is one cluster's. Two clusters in one database have one each.
func TestTwoClusters(t *testing.T) {
	s := server(t)
	mine, other := newSchema(), newSchema()
	a := connect(t, s.URL(), mine)
	fill(t, open(t, a), 0, 3)
	err := try(t, with(s.URL(), "schema="+mine), "other")
	if e, ok := errors.AsType[*postgres.ClusterError](err); !ok || e.Has != "test" || e.Wants != "other" {
		t.Fatalf("another cluster's schema: error %v, want a ClusterError", err)
	}
	b := connect(t, s.URL(), other, func(o *postgres.Options) { o.Cluster = "other" })
	if names, err := b.Realms(t.Context()); err != nil || len(names) != 0 {
		t.Fatalf("a new cluster has realms %v, error %v", names, err)
	}
	if last, err := open(t, b).Last(t.Context()); err != nil || last != 0 {
		t.Fatalf("the other cluster's log ends at %d, error %v", last, err)
	}
}

// The rights that the package names are enough, and without them the error says what to do.
func TestRights(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	schema := newSchema()
	exec(t, s, "CREATE ROLE little LOGIN")
	url := with(strings.Replace(s.URL(), "kuji@", "little@", 1), "schema="+schema)
	if err := try(t, url, "test"); err == nil || !strings.Contains(err.Error(), "right") {
		t.Fatalf("who may not make a schema: error %v, want one that says so", err)
	}
	connect(t, s.URL(), schema).Close()
	if err := try(t, url, "test"); err == nil || !strings.Contains(err.Error(), "right") {
		t.Fatalf("who may not use the schema: error %v, want one that says so", err)
	}
	exec(t, s, "GRANT CONNECT ON DATABASE postgres TO little")
	exec(t, s, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO little", schema))
	exec(t, s, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO little", schema))
	d := connect(t, strings.Replace(s.URL(), "kuji@", "little@", 1), schema)
	r := open(t, d)
	at := fill(t, r, 0, 3)
	if err := r.Trim(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	w, err := r.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Commit(t.Context(), "file"), r.Remove(t.Context(), "file")); err != nil {
		t.Fatal(err)
	}
	if err := d.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("board"), nil }); err != nil {
		t.Fatal(err)
	}
}

// A server that only takes reads for now is no reason to give up: it may be in the middle of a failover.
func TestReadOnlyServer(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true})
	r := open(t, connect(t, s.URL(), newSchema()))
	at := fill(t, r, 0, 2)
	if err := s.Set(t.Context(), map[string]string{"default_transaction_read_only": "on"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Append(t.Context(), at, []byte("x")); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("append to a database that only takes reads: error %v, want ErrUnknown", err)
	}
	if err := s.Set(t.Context(), map[string]string{"default_transaction_read_only": "off"}); err != nil {
		t.Fatal(err)
	}
	appendOne(t, r, at, "x")
}

// No error and no line of a log has a password in it, whatever is wrong with the URL.
func TestSecrets(t *testing.T) {
	const secret = "hu%nter2" // as it is, and in a URL
	for _, url := range []string{
		"postgres://kuji:hu%nter2@localhost/db", "postgres://kuji:hu%25nter2@local host/db", "postgres://kuji:hu%25nter2@localhost:port/db",
		"postgres://kuji:hu%25nter2@localhost/db?sslmode=bad", "host=localhost password=hu%nter2 sslmode=bad", "host=localhost password='hu%nter2",
		"postgres://kuji:hu%25nter2@localhost/db?schema=Bad", "postgres://kuji:hu%25nter2@localhost/db?sslrootcert=/missing&sslmode=verify-full",
		"mysql://kuji:hu%25nter2@localhost/db", "kuji:hu%nter2@localhost", "host=localhost port=hu%nter2", "postgres://localhost/?password=hu%nter2",
		"postgres://kuji:hu%25nter2@localhost/db?connect_timeout=hu%25nter2", "",
	} {
		err := postgres.Check(url)
		if err == nil {
			t.Errorf("%s counts as a URL", url)
			continue
		}
		if all := err.Error() + postgres.Redact(url); strings.Contains(all, "nter2") {
			t.Errorf("%s: the error has the secret in it: %s", url, all)
		}
	}
	for url, want := range map[string]string{
		"postgres://kuji:hu%25nter2@db.example:5433/rewards?sslmode=require":              "postgres://db.example:5433/rewards?schema=kuji",
		"postgresql://kuji:hu%25nter2@one:5432,two:5433/rewards?schema=other":             "postgres://one:5432,two:5433/rewards?schema=other",
		"host=db.example port=5433 dbname=rewards user=kuji password=hu%nter2 schema=a_1": "postgres://db.example:5433/rewards?schema=a_1",
	} {
		if err := postgres.Check(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if got := postgres.Redact(url); got != want {
			t.Errorf("%s is %s without secrets, want %s", url, got, want)
		}
	}

	if testing.Short() {
		return
	}
	s := pgtest.Start(t, pgtest.Options{TCP: true, Password: secret})
	var log bytes.Buffer
	d := connect(t, s.URL(), newSchema(), func(o *postgres.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	fill(t, open(t, d), 0, 1)
	d.Close()
	err := try(t, strings.Replace(s.URL(), "nter2", "nter3", 1), "test")
	if err == nil || !strings.Contains(err.Error(), "password") {
		t.Fatalf("a wrong password: error %v, want one that says so", err)
	}
	if all := log.String() + err.Error(); strings.Contains(all, "nter2") || strings.Contains(all, "nter3") {
		t.Fatalf("a secret is in %s", all)
	}
}

// A password file is read as PostgreSQL's own clients do.
func TestPasswordFile(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{TCP: true, Password: "from a file"})
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("*:*:*:kuji:from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("postgres://kuji@%s/postgres?sslmode=disable&passfile=%s", s.Address(), file)
	fill(t, open(t, connect(t, url, newSchema())), 0, 1)
}

// The suite passes behind PgBouncer, which gives each transaction to another session, and loses prepared
// statements if it is old.
func TestPgBouncer(t *testing.T) {
	s := server(t)
	path, err := osexec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
	}
	pooler := startPooler(t, s, path)
	drivertest.Run(t, func(t testing.TB) *drivertest.World {
		w := newWorld(t, s)
		schema := newSchema()
		w.Hold, w.SetFull, w.Damage, w.Failover = nil, nil, nil, nil
		w.Open = func(t testing.TB, node int) driver.Driver {
			return connect(t, "postgres://kuji@"+pooler+"/postgres?sslmode=disable", schema)
		}
		return w
	})
}

// startPooler starts PgBouncer in transaction mode, and returns its address.
func startPooler(t testing.TB, s *pgtest.Server, path string) string {
	t.Helper()
	addresses, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "kuji-bouncer") // not t.TempDir, which others cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	host, port, _ := strings.Cut(addresses[0], ":")
	toHost, toPort, _ := strings.Cut(s.Address(), ":")
	users := write("users", "\"kuji\" \"\"\n")
	config := write("ini", fmt.Sprintf(`[databases]
postgres = host=%s port=%s dbname=postgres user=kuji
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
auth_file = %s
pool_mode = transaction
default_pool_size = 5
`, toHost, toPort, host, port, users))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(path, config)
	if os.Getuid() == 0 {
		cmd = osexec.Command(path, "-u", "nobody", config)
	}
	if os.Getenv("KUJI_TEST_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	url := "postgres://kuji@" + addresses[0] + "/postgres?sslmode=disable&schema=" + newSchema()
	if err := try(t, url, "test"); err != nil {
		t.Fatalf("PgBouncer: %v", err)
	}
	return addresses[0]
}
