//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// NewStandby makes a copy of the server that follows it, and starts it. Its name is what SetSync takes.
// Commits do not wait for it before SetSync.
func (s *Server) NewStandby(ctx context.Context, name string, o Options) (*Server, error) {
	o.Password = s.o.Password
	b, err := prepare(o)
	if err != nil {
		return nil, err
	}
	b.primary, b.name = s, name
	if err := b.copy(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// copy copies the primary and starts the copy.
func (s *Server) copy(ctx context.Context) error {
	from := fmt.Sprintf("host=%s port=%s user=kuji application_name=%s", s.primary.sockets, s.primary.settings["port"], s.name)
	if s.o.Password != "" {
		from += " password=" + s.o.Password
	}
	args := []string{"-D", s.data(), "-d", from, "-X", "stream", "-c", "fast", "--no-sync"}
	if s.o.WALApart {
		args = append(args, "--waldir", filepath.Join(s.dir, "wal"))
	}
	if _, err := s.Run(ctx, "pg_basebackup", args...); err != nil {
		return err
	}
	name := filepath.Join(s.data(), "standby.signal")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	// What a change of a primary's own settings needs stands in its log, and a standby must have as much.
	settings := maps.Clone(s.settings)
	maps.Copy(s.settings, s.primary.settings)
	maps.Copy(s.settings, settings)
	s.settings["synchronous_standby_names"], s.settings["primary_conninfo"] = "", from
	if err := errors.Join(s.own(name), s.install()); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Promote makes a standby a primary, with what it has got so far.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.Exec(ctx, "SELECT pg_promote(false)"); err != nil {
		return err
	}
	return s.Until(ctx, "false", "SELECT pg_is_in_recovery()")
}

// Following waits until a standby gets its primary's log as it is written.
func (s *Server) Following(ctx context.Context) error {
	return s.primary.Until(ctx, "streaming", "SELECT state FROM pg_stat_replication WHERE application_name = "+quote(s.name))
}

// CatchUp waits until a standby has all that its primary has now, and shows it.
func (s *Server) CatchUp(ctx context.Context) error {
	at, err := s.primary.Value(ctx, "SELECT pg_current_wal_insert_lsn()")
	if err != nil {
		return err
	}
	return s.Until(ctx, "true", "SELECT pg_last_wal_replay_lsn() >= "+quote(at)+"::pg_lsn")
}

// Pause makes a standby fall back: its primary sends it nothing more of its log until Resume. What is
// written from now on is not on the standby if the primary is killed.
func (s *Server) Pause(ctx context.Context) error {
	if stands, err := s.stands(); stands || err != nil {
		return err
	}
	if err := s.Following(ctx); err != nil {
		return err
	}
	pid, err := s.primary.Value(ctx, "SELECT pid FROM pg_stat_replication WHERE application_name = "+quote(s.name))
	if err != nil {
		return err
	}
	if s.paused, err = strconv.Atoi(pid); err != nil {
		return err
	}
	if err := syscall.Kill(s.paused, syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		if stands, err := s.stands(); stands || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d does not stand still: %w", s.paused, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// stands reports whether the process that is to stand still does.
func (s *Server) stands() (bool, error) {
	if s.paused == 0 {
		return false, nil
	}
	all, err := processes()
	return all[s.paused].is("T"), err
}

// Resume undoes Pause. If the primary was killed meanwhile, nothing is to undo.
func (s *Server) Resume() error {
	stands, err := s.stands()
	if err == nil && stands {
		err = syscall.Kill(s.paused, syscall.SIGCONT)
	}
	s.paused = 0
	return err
}
