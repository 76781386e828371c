package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// notCreated is what the server logs when it cannot take part in a stream: the account, the stream, and why.
// The reason has the word corrupt in it if Raft's files are damaged.
const notCreated, corrupt = "Stream create failed for '%s > %s': %v", "corrupt"

// logger passes the server's messages on, and remembers the last failure. Good news is for debugging.
type logger struct {
	slog *slog.Logger
	dir  string // of the server

	mu   sync.Mutex
	last string
	end  error // what the server stopped for; nil: nothing
	// damaged are the streams whose Raft files the server could not read since it last started.
	damaged []string
}

func (l *logger) Noticef(format string, v ...any) { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Warnf(format string, v ...any) {
	l.slog.Warn(fmt.Sprintf(format, v...))
	if format == notCreated && len(v) == 3 && strings.Contains(fmt.Sprint(v[2]), corrupt) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.damaged = append(l.damaged, fmt.Sprint(v[1]))
	}
}

// unread reports whether the server could not read a stream's Raft files since it last started.
func (l *logger) unread(stream string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.damaged, stream)
}

// starts forgets what was damaged: the server is about to read it again.
func (l *logger) starts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged = nil
}

func (l *logger) Errorf(format string, v ...any) {
	message := fmt.Sprintf(format, v...)
	l.slog.Error(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = message
}

// Fatalf is what the server calls when it gives up. It expects the process to end, and does nothing more.
func (l *logger) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = cmp.Or(l.end, fmt.Errorf(format, v...))
}

// gaveUp returns what the server gave up for; nil if it did not.
func (l *logger) gaveUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		return nil
	}
	return fmt.Errorf("the server in %s gave up: %w", l.dir, l.end)
}

// failure returns what the server gave up for, or else the last failure.
func (l *logger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.end, errors.New(l.last))
}
