//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/internal/proxy"
)

// Options say what a server is like.
type Options struct {
	Dir      string            // where it gets a directory of its own; "": where temporary files are
	Settings map[string]string // of postgresql.conf
	TCP      bool              // it listens on an address of this machine as well as on a socket
	Fsync    bool              // it waits for the disk. What a kill loses is the same without
	Password string            // of its user, kuji; "": whoever is on this machine may come in
	Disk     int64             // its data is on a disk of its own of so many bytes; 0: it is not
	WALApart bool              // the log is not on that disk
}

// Server is a PostgreSQL server. Its methods must not be called concurrently, but for those about it that
// change nothing: Exec, Value, URL, Address.
type Server struct {
	place
	primary *Server // of a standby
	name    string  // of a standby
	paused  int     // the process that a paused standby gets its log from; 0: it is not paused

	mu      sync.Mutex
	process *os.Process   // nil: it does not run
	ended   chan struct{} // closed when process has ended
}

// New makes a server with an empty database called postgres, and starts it.
func New(ctx context.Context, o Options) (*Server, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", s.data(), "-U", "kuji", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}
	if o.Disk != 0 {
		args = append(args, "--wal-segsize=1")
	}
	if o.WALApart {
		args = append(args, "--waldir", filepath.Join(s.dir, "wal"))
	}
	err = s.keepPassword(&args)
	if err == nil {
		_, err = s.Run(ctx, "initdb", args...)
	}
	if err == nil {
		err = s.install()
	}
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the directories of a server.
func prepare(o Options) (s *Server, err error) {
	if tool("initdb") == "" || tool("postgres") == "" {
		return nil, ErrNotInstalled
	}
	s = &Server{place: place{o: o, settings: map[string]string{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.sockets, err = os.MkdirTemp("", "kuji-pg"); err != nil {
		return nil, err
	}
	s.dir = s.sockets
	if o.Dir != "" {
		if s.dir, err = os.MkdirTemp(o.Dir, "kuji-pg"); err != nil {
			return nil, err
		}
	}
	if o.Disk != 0 {
		if err := os.Mkdir(s.disk(), 0o700); err != nil {
			return nil, err
		}
		if err := mount(s.disk(), o.Disk); err != nil {
			return nil, err
		}
	}
	if s.user, err = unprivileged(s.sockets, s.dir, s.disk()); err != nil {
		return nil, err
	}
	port := "5432"
	if o.TCP {
		addresses, err := proxy.Addresses(1)
		if err != nil {
			return nil, err
		}
		s.address = addresses[0]
		_, port, _ = net.SplitHostPort(s.address)
	}
	s.defaults(port)
	return s, nil
}

// quote returns a text as PostgreSQL's files and statements have it.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Address returns the host and port at which the server listens; "": there is none.
func (s *Server) Address() string { return s.address }

// URL returns the URL of the server's first database. With addresses, these stand in it in place of the
// server's own: of a proxy to the server, for example, or of the server and its standby.
func (s *Server) URL(addresses ...string) string {
	u := url.URL{Scheme: "postgres", User: url.User("kuji"), Path: "/postgres", RawQuery: "sslmode=disable"}
	if s.o.Password != "" {
		u.User = url.UserPassword("kuji", s.o.Password)
	}
	switch {
	case len(addresses) > 0:
		u.Host = strings.Join(addresses, ",")
	case s.address != "":
		u.Host = s.address
	default:
		u.RawQuery = "host=" + s.sockets + "&port=" + s.settings["port"]
	}
	return u.String()
}

// connect connects by the socket.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("user=kuji dbname=postgres host=" + s.sockets + " port=" + s.settings["port"])
	if err != nil {
		return nil, err
	}
	config.Password = s.o.Password
	return pgx.ConnectConfig(ctx, config)
}

// Exec runs a statement on a connection of its own.
func (s *Server) Exec(ctx context.Context, sql string, args ...any) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql, args...)
	return err
}

// Value returns the one value, as text, of a query on a connection of its own. "" stands for null as well.
func (s *Server) Value(ctx context.Context, sql string) (string, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	var value *string
	if err := c.QueryRow(ctx, "SELECT ("+sql+")::text").Scan(&value); err != nil || value == nil {
		return "", err
	}
	return *value, nil
}

// Until waits until the value of a query is what is wanted.
func (s *Server) Until(ctx context.Context, want, sql string) error {
	for {
		got, err := s.Value(ctx, sql)
		if err == nil && got == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: got %q, %v; want %q", sql, got, err, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Set changes settings that can be changed while the server runs. If it runs, they hold when Set returns,
// for all of its processes.
func (s *Server) Set(ctx context.Context, settings map[string]string) error {
	maps.Copy(s.settings, settings)
	if err := s.write(); err != nil {
		return err
	}
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	const read = "SELECT pg_conf_load_time()"
	before, err := s.Value(ctx, read)
	if err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	// A new connection has what the server has read, and the server has told its other processes before.
	if err := s.Until(ctx, "true", read+" > "+quote(before)); err != nil {
		return err
	}
	return s.checkpoint(ctx)
}

// SetSync sets the standbys that commits wait for, as synchronous_standby_names has them; "": none.
func (s *Server) SetSync(ctx context.Context, names string) error {
	return s.Set(ctx, map[string]string{"synchronous_standby_names": names})
}

// checkpoint makes the process that tells the others whether commits wait for a standby read the settings:
// it does so before it begins a checkpoint, but perhaps not before one that it begins now.
func (s *Server) checkpoint(ctx context.Context) error {
	for range 2 {
		if err := s.Exec(ctx, "CHECKPOINT"); err != nil {
			return err
		}
	}
	return nil
}
