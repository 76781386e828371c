package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// logFlags say what a server writes about itself and about requests.
type logFlags struct {
	format, level string
	slow          time.Duration
	access        string
}

func (l *logFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&l.format, "log-format", "", "how the log on standard error is written: text or json (default text, with --json json)")
	flags.StringVar(&l.level, "log-level", "info", "lowest level to log: debug, info, warn or error")
	flags.DurationVar(&l.slow, "slow-requests", 100*time.Millisecond, "log each request that takes as long; 0: none")
	flags.StringVar(&l.access, "access-log", "", "`file` that gets one line of JSON for each call, or - for standard output; SIGHUP opens it again")
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (l *logFlags) logger(a *app) (*slog.Logger, error) {
	level, ok := logLevels[l.level]
	if !ok {
		return nil, usagef("--log-level %q: expected debug, info, warn or error", l.level)
	}
	if err := atLeast("slow-requests", l.slow, 0); err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: level}
	switch {
	case l.json(a):
		return slog.New(slog.NewJSONHandler(a.stderr, o)), nil
	case l.format == "text", l.format == "":
		return slog.New(slog.NewTextHandler(a.stderr, o)), nil
	}
	return nil, usagef("--log-format %q: expected text or json", l.format)
}

// json reports whether each line of the log is JSON.
func (l *logFlags) json(a *app) bool { return l.format == "json" || l.format == "" && a.json }

// accessCloseTimeout is how long the last lines of the access log may take.
const accessCloseTimeout = 5 * time.Second

// openAccess opens the access log, nil if there shall be none. reopen opens its file again, once it was moved.
func (l *logFlags) openAccess(a *app, log *slog.Logger) (access *server.AccessLog, reopen, closeLog func() error, err error) {
	if l.access == "" {
		return nil, nothing, nothing, nil
	}
	file := &logFile{name: l.access, to: a.stdout}
	if reopen = nothing; l.access != "-" {
		reopen = file.reopen
	}
	if err := reopen(); err != nil {
		return nil, nil, nil, usagef("--access-log: %w", err)
	}
	access = server.NewAccessLog(file, log)
	return access, reopen, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), accessCloseTimeout)
		defer cancel()
		return errors.Join(access.Close(ctx), file.close())
	}, nil
}

// logFile is a file that is written at its end.
type logFile struct {
	name string

	mu   sync.Mutex
	to   io.Writer
	file io.Closer // nil: to is another's
}

// Write implements [io.Writer].
func (f *logFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to.Write(p)
}

// reopen opens the file of that name, or makes one that only this user can read.
func (f *logFile) reopen() error {
	file, err := os.OpenFile(filepath.Clean(f.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.replace(file, file)
}

func (f *logFile) close() error { return f.replace(nil, nil) }

// replace closes the file before it. Without a writer, the file before it gets the errors of a late write.
func (f *logFile) replace(to io.Writer, file io.Closer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	if f.file = file; to != nil {
		f.to = to
	}
	if old == nil {
		return nil
	}
	return old.Close()
}

// namedRealms is the most realms that one line names.
const namedRealms = 20

// life logs the start and the end of a server.
type life struct {
	log   *slog.Logger
	began time.Time
	ends  time.Time // when it was told to stop; zero: it was not
	why   string    // it stops
}

// beginLife logs that a server starts, and with which settings that are not the default, without secrets.
func beginLife(log *slog.Logger, data string, flags *pflag.FlagSet) *life {
	var settings []any
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"data", "config"}, f.Name) {
			settings = append(settings, slog.Any(f.Name, shown(f)))
		}
	})
	log.Info("starting", "version", version(), "pid", os.Getpid(), "data", data, slog.Group("settings", settings...))
	return &life{log: log, began: time.Now(), why: "it could not start"}
}

// serving logs that the server is ready.
func (l *life) serving(ready *readyJSON) {
	l.log.Info("serving", "address", ready.Address, "url", ready.URL, "sync", ready.Sync, "start_seconds", time.Since(l.began).Seconds())
}

// stopping logs why the server stops.
func (l *life) stopping(why string) {
	l.why, l.ends = why, time.Now()
	l.log.Info("stopping", "why", why)
}

// end logs that the server has stopped.
func (l *life) end(err error) {
	attrs := []any{"why", l.why, "up_seconds", time.Since(l.began).Seconds()}
	if !l.ends.IsZero() {
		attrs = append(attrs, "stop_seconds", time.Since(l.ends).Seconds())
	}
	if err != nil {
		l.log.Error("stopped", append(attrs, "error", err)...)
		return
	}
	l.log.Info("stopped", attrs...)
}

// noteOpened names the realms, and those that are stopped, or lack their newest snapshot or a seed.
func noteOpened(engine *kuji.Engine, log *slog.Logger) error {
	realms, err := openRealms(engine)
	if err != nil {
		return err
	}
	names := each(realms, (*kuji.Realm).Name)
	log.Info("realms are open", "number", len(names), "realms", names[:min(len(names), namedRealms)])
	for _, realm := range realms {
		stats := realm.Stats()
		if stopped := realm.Err(); stopped != nil {
			log.Error("the realm can only be read", "realm", realm.Name(), "error", stopped)
		}
		if stats.SnapshotErr != nil { // nothing is lost, but verify finds the damaged file until somebody removes it
			log.Warn("the newest snapshot is damaged: the realm was opened without it", "realm", realm.Name(), "error", stats.SnapshotErr)
		}
		if stats.SeedsErr != nil {
			log.Warn("the seeds of some epochs are lost", "realm", realm.Name(), "error", stats.SeedsErr)
		}
	}
	return nil
}
