package admission

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// Ends lets any goroutine cut the reading or writing end of a stream during the call.
type Ends struct {
	mu   sync.Mutex
	conn *http.ResponseController // nil before and after the call
}

// Open removes the timeouts of the whole call.
func (e *Ends) Open(w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	e.mu.Lock()
	e.conn = c
	e.mu.Unlock()
	return nil
}

// StopReading ends what the server waits for.
func (e *Ends) StopReading() { e.stop((*http.ResponseController).SetReadDeadline) }

// StopWriting ends what the server sends.
func (e *Ends) StopWriting() { e.stop((*http.ResponseController).SetWriteDeadline) }

func (e *Ends) stop(set func(*http.ResponseController, time.Time) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		_ = set(e.conn, time.Unix(1, 0)) // cannot fail: Open has set it before
	}
}

// Close must be called before the handler returns. Its writer must not be used afterwards.
func (e *Ends) Close() {
	e.mu.Lock()
	e.conn = nil
	e.mu.Unlock()
}

// Watch calls a function if something takes too long.
type Watch struct {
	timer *time.Timer
	limit time.Duration
}

func (w *Watch) Start(limit time.Duration, late func()) {
	w.limit = limit
	w.timer = time.AfterFunc(limit, late)
	w.timer.Stop()
}

func (w *Watch) Arm() { w.timer.Reset(w.limit) }

// Disarm stops the watch. It reports whether the function was called.
func (w *Watch) Disarm() (late bool) { return !w.timer.Stop() }

func (w *Watch) Stop() { w.timer.Stop() }
