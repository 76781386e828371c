package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands the server's messages on, and remembers the last failure.
type logger struct {
	slog *slog.Logger

	mu   sync.Mutex
	last string
}

func (l *logger) Noticef(format string, v ...any) { l.slog.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.slog.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.slog.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Errorf(format string, v ...any) { l.fail(fmt.Sprintf(format, v...)) }

// Fatalf is what the server calls before it stops by itself.
func (l *logger) Fatalf(format string, v ...any) { l.fail(fmt.Sprintf(format, v...)) }

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
