package admission

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Ends lets any goroutine cut the reading or writing end of a stream during the call.
type Ends struct {
	mu      sync.Mutex
	conn    *http.ResponseController // nil before and after the call
	writing Watch
}

// Open replaces the call's timeouts by one for each Send. Close must come before the call ends.
func (e *Ends) Open(w http.ResponseWriter, send time.Duration) error {
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		return fmt.Errorf("setting the timeouts of a stream: %w", err)
	}
	e.mu.Lock()
	e.conn = c
	e.mu.Unlock()
	e.writing = NewWatch(send, e.StopWriting)
	return nil
}

// Send calls a function that sends a message. It fails if the client does not take it in time.
func (e *Ends) Send(send func() error) error {
	e.writing.Arm()
	defer e.writing.Disarm()
	return send()
}

// StopReading makes reads that wait for the client fail, and all that follow.
func (e *Ends) StopReading() { e.stop((*http.ResponseController).SetReadDeadline) }

// StopWriting makes writes to the client fail, and all that follow.
func (e *Ends) StopWriting() { e.stop((*http.ResponseController).SetWriteDeadline) }

func (e *Ends) stop(set func(*http.ResponseController, time.Time) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		_ = set(e.conn, time.Unix(1, 0)) // not supported: nothing to cut. Open fails then
	}
}

// Close forgets the call's writer, which must not be used afterwards.
func (e *Ends) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn = nil
}

// Watch calls a function if something takes too long.
type Watch struct {
	timer *time.Timer
	limit time.Duration
}

// NewWatch returns a watch that is not armed.
func NewWatch(limit time.Duration, late func()) Watch {
	w := Watch{time.AfterFunc(limit, late), limit}
	w.timer.Stop()
	return w
}

func (w *Watch) Arm() { w.timer.Reset(w.limit) }

// Disarm stops the watch. It reports whether the function was called.
func (w *Watch) Disarm() (late bool) { return !w.timer.Stop() }
