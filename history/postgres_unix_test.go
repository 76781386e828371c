//go:build unix

package history

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

// targets are the databases to test with: a function for each that returns an empty one.
func targets(t *testing.T) map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "history", "h.db") },
		"postgres": func(t *testing.T) string { return postgresServer(t) },
	}
}

// postgresTool finds a program of PostgreSQL: distributions keep them off the path.
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

// shared is the PostgreSQL server of this process's tests.
var shared struct {
	once sync.Once
	url  string // "": there is none
	why  string
	stop func()
	n    atomic.Int32 // databases made
}

func TestMain(m *testing.M) {
	if file := os.Getenv("KUJI_HISTORY_CHILD"); file != "" {
		runChild(file)
		return
	}
	m.Run()
	if shared.stop != nil {
		shared.stop()
	}
}

// postgresServer returns the URL of an empty database in a PostgreSQL of the tests' own.
func postgresServer(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: SQLite takes the same way")
	}
	shared.once.Do(func() { shared.why = startPostgres() })
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

// startPostgres starts the server, or says why there is none.
func startPostgres() (why string) {
	initdb, ctl := postgresTool("initdb"), postgresTool("pg_ctl")
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
