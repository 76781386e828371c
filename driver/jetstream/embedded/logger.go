package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands the server's messages on, and remembers the last failure.
type logger struct {
	slog *slog.Logger
	dir  string // of the server

	mu   sync.Mutex
	last string
	end  error // what the server stopped for; nil: nothing
}

func (l *logger) Noticef(format string, v ...any) { l.slog.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.slog.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Errorf(format string, v ...any) { l.fail(fmt.Sprintf(format, v...)) }

// Fatalf is what the server calls when it gives up. It expects that the process ends there, and does
// nothing more by itself.
func (l *logger) Fatalf(format string, v ...any) {
	message := fmt.Sprintf(format, v...)
	l.fail(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = cmp.Or(l.end, errors.New(message))
}

// fatal returns why the server gave up, or nil if it did not.
func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// gaveUp is fatal with the directory of the server.
func (l *logger) gaveUp() error {
	if err := l.fatal(); err != nil {
		return fmt.Errorf("the server in %s gave up: %w", l.dir, err)
	}
	return nil
}

func (l *logger) fail(message string) {
	l.slog.Error(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = message
}

func (l *logger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.New(l.last)
}
