package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji/internal/step"
)

// database is a PostgreSQL server of a demo's own.
type database struct {
	dir  string // of its data
	url  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// databasePlaces are where distributions keep the programs of PostgreSQL, by version, off the path.
var databasePlaces = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	"/Library/PostgreSQL/*/bin", `C:\Program Files\PostgreSQL\*\bin`,
}

// databaseProgram returns the path of a program of the newest PostgreSQL on this machine; "": there is none.
func databaseProgram(name string) string {
	best, newest := "", -1.0
	for _, place := range databasePlaces {
		found, _ := filepath.Glob(filepath.Join(place, name+"*")) // fails only with a bad pattern
		for _, path := range found {
			if strings.TrimSuffix(filepath.Base(path), ".exe") != name {
				continue
			}
			version, _ := strconv.ParseFloat(strings.TrimLeft(filepath.Base(filepath.Dir(filepath.Dir(path))), "abcdefghijklmnopqrstuvwxyz-@"), 64)
			if version > newest {
				best, newest = path, version
			}
		}
	}
	if best == "" {
		best, _ = exec.LookPath(name) // "" says it
	}
	return best
}

// errNoDatabase is the error where PostgreSQL is not installed.
var errNoDatabase = refusedError{`PostgreSQL is not on this machine: no program initdb was found. Install it, for example with "apt-get install postgresql" or "brew install postgresql"`}

// startDatabase makes a database in a directory that is not there yet, and starts a server on it at a port of loopback.
func startDatabase(ctx context.Context, dir string, port int) (*database, error) {
	initdb, server := databaseProgram("initdb"), databaseProgram("postgres")
	if initdb == "" || server == "" {
		return nil, errNoDatabase
	}
	d := &database{dir: filepath.Join(dir, "data"), done: make(chan struct{})}
	password, file := rand.Text(), filepath.Join(dir, "password")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, []byte(password+"\n"), 0o600)); err != nil {
		return nil, err
	}
	attr, err := databaseUser(dir, file)
	if err != nil {
		return nil, err
	}
	makes := exec.CommandContext(ctx, initdb, "-D", d.dir, "-U", "kuji", "-A", "scram-sha-256", "--pwfile", file, "-E", "UTF8", "--no-locale")
	makes.Dir, makes.SysProcAttr = dir, attr
	if said, err := makes.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a database with %s: %w\n%s", initdb, err, said)
	}
	said, err := os.OpenFile(filepath.Clean(d.log()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close() // the server has its own handle
	d.cmd = exec.Command(server, "-D", d.dir, "-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(port), "-c", "unix_socket_directories=")
	d.cmd.Dir, d.cmd.SysProcAttr, d.cmd.Stdout, d.cmd.Stderr = dir, attr, said, said
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", server, err)
	}
	go func() {
		_ = d.cmd.Wait() // how it ended stands in its log
		close(d.done)
	}()
	d.url = (&url.URL{Scheme: "postgres", User: url.UserPassword("kuji", password), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/postgres", RawQuery: "sslmode=disable"}).String()
	if err := d.await(ctx); err != nil {
		d.kill()
		return nil, err
	}
	return d, nil
}

func (d *database) log() string { return filepath.Join(filepath.Dir(d.dir), "log") }

// await waits until the server says in its directory that it is ready.
func (d *database) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		lines, _ := os.ReadFile(filepath.Join(d.dir, "postmaster.pid")) // it comes with the server
		if all := strings.Fields(string(lines)); slices.Contains(all, "ready") {
			return nil
		}
		select {
		case <-d.done:
			return fmt.Errorf("PostgreSQL did not start:\n%s", tail(d.log()))
		default:
		}
		if step.Pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL is not ready: %w:\n%s", ctx.Err(), tail(d.log()))
		}
	}
}

// stop ends the server in order, and cuts its connections.
func (d *database) stop() error {
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.kill() // there are no signals
		return nil
	}
	select {
	case <-d.done:
		return nil
	case <-time.After(stopTimeout):
		d.kill()
		return fmt.Errorf("PostgreSQL did not stop within %v:\n%s", stopTimeout, tail(d.log()))
	}
}

// kill ends the server at once. Its other processes notice that and end.
func (d *database) kill() {
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		_ = d.cmd.Process.Kill() // fails only when it has ended already
	}
	select {
	case <-d.done:
	case <-time.After(stopTimeout):
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}

// version returns what the server calls itself.
func (d *database) version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, d.cmd.Path, "--version").Output()
	if err != nil {
		return "PostgreSQL"
	}
	return cmp.Or(strings.TrimSpace(strings.TrimPrefix(string(out), "postgres (PostgreSQL)")), "PostgreSQL")
}
