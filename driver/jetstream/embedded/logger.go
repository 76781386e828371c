package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// notCreated is what the server logs when it cannot take part in a stream: the account, the stream,
// and why. The reason has the word corrupt in it if Raft's files are damaged.
const notCreated, corrupt = "Stream create failed for '%s > %s': %v", "corrupt"

// logger passes the server's messages on, and remembers failures. Good news is for debugging.
type logger struct {
	slog *slog.Logger
	dir  string // of the server

	mu   sync.Mutex
	last string // error
	end  error  // why the server gave up; nil: it did not
	// damaged has the streams whose Raft files the server could not read since it last started.
	damaged sync.Map
}

func (l *logger) Noticef(format string, v ...any) { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Warnf(format string, v ...any) {
	l.slog.Warn(fmt.Sprintf(format, v...))
	if format == notCreated && len(v) == 3 && strings.Contains(fmt.Sprint(v[2]), corrupt) {
		l.damaged.Store(fmt.Sprint(v[1]), true)
	}
}

func (l *logger) Errorf(format string, v ...any) {
	message := fmt.Sprintf(format, v...)
	l.slog.Error(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = message
}

// Fatalf is what the server calls when it gives up. Then it waits for the process to end.
func (l *logger) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = cmp.Or(l.end, fmt.Errorf(format, v...))
}

// gaveUp returns why the server gave up, or nil.
func (l *logger) gaveUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		return nil
	}
	return fmt.Errorf("the server in %s gave up: %w", l.dir, l.end)
}

// failure returns why the server gave up, or else the last error that it logged.
func (l *logger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.end, errors.New(l.last))
}
