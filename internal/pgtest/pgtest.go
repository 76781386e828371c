//go:build unix

// Package pgtest runs PostgreSQL servers of one's own, if PostgreSQL is installed: one that all tests of a
// process share, each with a database of its own, and servers that a test may kill, fill and fail over.
// Only tests and the tools of tests import it. Only Start, Standby, Database and Away need a test.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled is the error of New if there is no PostgreSQL on this machine.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: apt-get install postgresql")

// patience is how long tests wait for a server: much longer than it takes on a busy machine.
const patience = 2 * time.Minute

// tool finds a program of PostgreSQL: distributions keep them off the path.
func tool(name string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// shared is the PostgreSQL server of this process's tests.
var shared struct {
	once   sync.Once
	server *Server // nil: there is none
	err    error
	n      atomic.Int32 // databases made
}

// Stop stops the server that the tests share, if it was started: call it at the end of TestMain.
func Stop() {
	if shared.server != nil {
		shared.server.Close()
	}
}

// Database returns the URL of an empty database in a PostgreSQL of the tests' own.
func Database(t testing.TB) string {
	t.Helper()
	ctx := within(t)
	shared.once.Do(func() { shared.server, shared.err = New(ctx, Options{}) })
	check(t, shared.err)
	name := fmt.Sprint("test", shared.n.Add(1))
	check(t, shared.server.Exec(ctx, "CREATE DATABASE "+name))
	return strings.Replace(shared.server.URL(), "/postgres?", "/"+name+"?", 1)
}

// Away makes a database, given by its URL, one that lets nobody in, and ends the connections to it. back
// undoes that.
func Away(t testing.TB, url string) (back func()) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	check(t, err)
	do := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			check(t, shared.server.Exec(t.Context(), sql))
		}
	}
	name := config.Database
	do("ALTER DATABASE "+name+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	return func() { t.Helper(); do("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true") }
}

// Start starts a server for one test, and removes it at the end of the test. The test is skipped if
// PostgreSQL is not installed, or cannot have a disk of its own that it asks for.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(within(t), o)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Standby starts a standby for one test: see [Server.NewStandby].
func Standby(t testing.TB, primary *Server, name string, o Options) *Server {
	t.Helper()
	s, err := primary.NewStandby(within(t), name, o)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// within returns a context with patience, and skips the test where it is to be short.
func within(t testing.TB) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it starts a PostgreSQL")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// check ends the test at an error, or skips it if this machine lacks what the test needs.
func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrNotInstalled), errors.Is(err, ErrNoDisk):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}
