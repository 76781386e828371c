//go:build unix

// Package pgtest runs a PostgreSQL of the tests' own, if one is installed. Only tests import it.
package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

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
	once sync.Once
	url  string // "": there is none
	why  string
	stop func()
	n    atomic.Int32 // databases made
}

// Stop stops the server, if it was started: call it at the end of TestMain.
func Stop() {
	if shared.stop != nil {
		shared.stop()
	}
}

// Database returns the URL of an empty database in a PostgreSQL of the tests' own.
func Database(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: SQLite takes the same way")
	}
	shared.once.Do(func() { shared.why = start() })
	if shared.url == "" {
		t.Skip(shared.why)
	}
	name := fmt.Sprint("test", shared.n.Add(1))
	c, err := pgx.Connect(t.Context(), shared.url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), "CREATE DATABASE "+name)
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(shared.url, "/postgres?", "/"+name+"?", 1)
}

// Away makes a database, given by its URL, one that lets nobody in, and ends the connections to it. back
// undoes that.
func Away(t *testing.T, url string) (back func()) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	do := func(statements ...string) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), shared.url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		for _, sql := range statements {
			if _, err := c.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := config.Database
	do("ALTER DATABASE "+name+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	return func() { t.Helper(); do("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true") }
}

// start starts the server, or says why there is none.
func start() (why string) {
	initdb, ctl := tool("initdb"), tool("pg_ctl")
	if initdb == "" || ctl == "" {
		return "PostgreSQL is not installed: apt-get install postgresql"
	}
	dir, err := os.MkdirTemp("", "kuji-pg") // short, for the name of a socket
	if err != nil {
		return err.Error()
	}
	shared.stop = func() { os.RemoveAll(dir) }
	asUser, err := unprivileged(dir)
	if err != nil {
		return err.Error()
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) error {
		cmd := exec.Command(name, args...)
		asUser(cmd)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		return nil
	}
	if err := run(initdb, "-D", data, "-U", "kuji", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"); err != nil {
		return err.Error()
	}
	if err := run(ctl, "-D", data, "-w", "-s", "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses='' -c fsync=off -k "+dir, "start"); err != nil {
		return err.Error()
	}
	shared.stop = func() {
		_ = run(ctl, "-D", data, "-w", "-s", "-m", "immediate", "stop")
		os.RemoveAll(dir)
	}
	shared.url = "postgres://kuji@/postgres?host=" + dir
	return ""
}

// unprivileged returns what makes a command run as a user that PostgreSQL accepts, which root is not.
func unprivileged(dir string) (func(*exec.Cmd), error) {
	if os.Getuid() != 0 {
		return func(*exec.Cmd) {}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, err
		}
		return func(cmd *exec.Cmd) {
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
