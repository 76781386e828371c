package rivals

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

//go:embed draw.sql
var drawSQL string

// postgresTool finds a program of PostgreSQL's newest installed version:
// distributions keep them off the path.
func postgresTool(name string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// startPostgres starts a PostgreSQL with its defaults, which commit
// synchronously, and the pool in it.
func startPostgres(tb testing.TB) setup {
	tb.Helper()
	initdb, server := postgresTool("initdb"), postgresTool("postgres")
	if initdb == "" || server == "" {
		tb.Skip("PostgreSQL is not installed: apt-get install postgresql")
	}
	dir := scratch(tb)
	data := filepath.Join(dir, "data")
	must(tb, os.Mkdir(data, 0o700))
	asUser, err := unprivileged(dir, data)
	if err != nil {
		tb.Skip(err)
	}
	init := exec.Command(initdb, "-D", data, "-U", "bench", "-A", "trust", "--no-sync")
	asUser(init)
	if out, err := init.CombinedOutput(); err != nil {
		tb.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(tb)
	url := "postgres://bench@127.0.0.1:" + port + "/postgres"
	ctx := context.Background()
	connect := func() (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
	cmd := exec.Command(server, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", dir)
	asUser(cmd)
	var c *pgx.Conn
	daemon(tb, cmd, func() (err error) {
		c, err = connect()
		return err
	})
	tb.Cleanup(func() { must(tb, c.Close(ctx)) })
	exec := func(sql string, args ...any) {
		tb.Helper()
		_, err := c.Exec(ctx, sql, args...)
		must(tb, err)
	}
	exec(drawSQL)
	sum := 0
	for i := range entries {
		sum += weight(i)
		exec("insert into entries values ($1, $2, $3, $4)", i, fmt.Sprint("item-", i), sum, stock)
	}
	return setup{
		open: func(tb testing.TB) connection {
			c, err := connect()
			must(tb, err)
			tb.Cleanup(func() { must(tb, c.Close(ctx)) })
			return postgresConnection{c}
		},
		drawn: func(tb testing.TB) (n int64) {
			must(tb, c.QueryRow(ctx, "select count(*) from history").Scan(&n))
			return n
		},
	}
}

type postgresConnection struct{ c *pgx.Conn }

// draw sends several draws as one call of a function that works by sets.
func (p postgresConnection) draw(ctx context.Context, ids, players []string) error {
	if len(ids) == 1 {
		var entry int
		return p.c.QueryRow(ctx, "select draw($1, $2)", ids[0], players[0]).Scan(&entry)
	}
	var made int
	err := p.c.QueryRow(ctx, "select draw_batch($1, $2)", ids, players).Scan(&made)
	if err == nil && made != len(ids) {
		err = fmt.Errorf("%d draws made, want %d", made, len(ids))
	}
	return err
}

func BenchmarkPostgres(top *testing.B) {
	s := startPostgres(top)
	for _, l := range []struct {
		name              string
		connections, each int
	}{{"unary", 1, 1}, {"unary", 16, 1}, {"unary", 50, 1}, {"batch", 1, batchSize}, {"batch", 2, batchSize}} {
		top.Run(fmt.Sprintf("sync=always/shape=%s/client=pgx/connections=%d/each=%d", l.name, l.connections, l.each), func(b *testing.B) { measure(b, s, l.connections, l.each) })
	}
}
