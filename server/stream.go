package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A stream of draws, in short:
//
//	the reader:    take a free batch, receive into it, start it   → started
//	the answerer:  take the next started batch, wait until it is durable,
//	               send its answer, give it back                  → free
//
// One goroutine starts all batches, in the order in which they arrive. There are
// Limits.StreamBatches of them. While all are in use the reader stops, and HTTP/2's flow control
// stops the client.

// drawStream is one StreamDraws call.
type drawStream struct {
	pass    // the reader's alone
	call    *call
	conn    connect.StreamingHandlerConn
	free    chan *drawBatch
	started chan *drawBatch
	ends    streamEnds
	reading watch
	writing watch
	// unnamed is set once a draw without a request id was started. From then on a client must not
	// blindly repeat after an unknown outcome.
	unnamed atomic.Bool
}

// streamError is an error that ended a stream.
type streamError struct {
	err   error
	named bool // every draw that was started has a request id
}

func (e *streamError) Error() string { return e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

var (
	errDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down; batches without an answer were not carried out"}
	errMoved    = &kuji.Error{Code: kuji.CodeClosed, Message: "another node leads the realm of this batch: open another stream for it; batches without an answer were not carried out"}
	errRevoked  = withDetail(connect.NewError(connect.CodeUnauthenticated, errors.New("the API key is no longer valid for this stream; batches without an answer were not carried out")),
		&kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_UNAUTHENTICATED})
)

func (h rewardService) StreamDraws(ctx context.Context, bidi *connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.w == nil {
		return errors.New("the stream did not come through ServeHTTP")
	}
	return newDrawStream(h.s, c, bidi.Conn()).run(ctx)
}

func newDrawStream(s *Server, c *call, conn connect.StreamingHandlerConn) *drawStream {
	n := s.o.Limits.StreamBatches
	st := &drawStream{
		pass: newPass(s, c.access), call: c, conn: conn,
		free: make(chan *drawBatch, n), started: make(chan *drawBatch, n),
	}
	for range n {
		st.free <- new(drawBatch)
	}
	return st
}

// run serves the stream to its end.
func (st *drawStream) run(ctx context.Context) error {
	st.s.metrics.streams.Inc()
	defer st.s.metrics.streams.Dec()
	release, err := st.takeTimeouts()
	if err != nil {
		return err
	}
	defer release()

	var answering sync.WaitGroup
	var answered error
	reading, stopReading := context.WithCancel(ctx) // ends when an answer fails
	defer stopReading()
	answering.Go(func() { answered = st.answerAll(ctx, stopReading) })
	err = st.readAll(reading)
	close(st.started)
	answering.Wait()
	if answered != nil {
		err = answered // it is about an earlier batch
	}
	if err == nil {
		return nil
	}
	return &streamError{err: err, named: !st.unnamed.Load()}
}

// takeTimeouts replaces the timeouts of the whole call by timeouts for each batch, and lets a
// drain end the stream.
func (st *drawStream) takeTimeouts() (release func(), err error) {
	if err := st.ends.open(st.call.w); err != nil {
		return nil, fmt.Errorf("setting the timeouts of a stream: %w", err)
	}
	l := &st.s.o.Limits
	st.reading.start(l.IdleTimeout, st.ends.stopReading)
	st.writing.start(l.WriteTimeout, st.ends.stopWriting)
	stop := context.AfterFunc(st.s.stopping, st.ends.stopReading)
	return func() {
		stop()
		st.reading.stop()
		st.writing.stop()
		st.ends.close()
	}, nil
}

// readAll starts batches until the stream ends. It returns nil if the client ended it.
func (st *drawStream) readAll(ctx context.Context) error {
	for {
		var b *drawBatch
		select {
		case b = <-st.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := st.receive(b); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := st.start(ctx, b); err != nil {
			return err
		}
		st.started <- b // has room for all
	}
}

// receive reads the next batch.
func (st *drawStream) receive(b *drawBatch) error {
	st.reading.arm()
	err := st.conn.Receive(&b.request)
	late := st.reading.disarm()
	switch {
	case st.s.stopping.Err() != nil:
		return errDraining
	case late && err != nil:
		return &kuji.Error{Code: kuji.CodeCanceled, Err: context.DeadlineExceeded,
			Message: fmt.Sprintf("no complete batch arrived within %v, the longest that a stream may be idle", st.s.o.Limits.IdleTimeout)}
	case err != nil:
		return err
	case !st.stillAllowed(st.call.endpoint.role):
		return errRevoked
	}
	b.arrived = time.Now()
	return miscount(&b.request)
}

// admit checks what a batch asks for, and counts it. A stream that is too fast for its key's rate
// waits, and the client with it.
func (st *drawStream) admit(ctx context.Context, b *drawBatch) error {
	a := st.access
	if err := a.permit(&b.request); err != nil {
		return err
	}
	for wait := st.s.rates.take(a); wait > 0; wait = st.s.rates.take(a) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-st.s.stopping.Done():
			timer.Stop()
			return errDraining
		}
		if timer.Stop(); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	st.s.rates.owe(a, commandsIn(&b.request)-1)
	return ctx.Err()
}

// start decides a batch's draws and queues them for the log.
func (st *drawStream) start(ctx context.Context, b *drawBatch) error {
	st.call.about(&b.request)
	if err := st.hold(ctx, b); err != nil {
		return err
	}
	if err := st.admit(ctx, b); err != nil {
		return err
	}
	if err := b.build(); err != nil {
		return err
	}
	realm, err := st.s.realms.get(st.s.engine, b.request.GetRealm())
	if err != nil {
		return err
	}
	if b.work, err = st.s.takeWork(ctx, st.call.access.who, b.size); err != nil {
		return err
	}
	if !b.named {
		st.unnamed.Store(true)
	}
	if b.commit, err = realm.StartAll(ctx, b.reqs, b.results); err != nil {
		st.release(b)
	}
	return err
}

// hold checks that this server answers a batch. The first one of a stream may be for another server: the
// whole stream is then.
func (st *drawStream) hold(ctx context.Context, b *drawBatch) error {
	c := st.call
	switch {
	case !c.shared:
		return nil
	case c.held != "": // it is not the first
		if !st.s.o.Cluster.Holds(cmp.Or(b.request.GetRealm(), DefaultRealm)) {
			return errMoved
		}
		return nil
	}
	if err := st.s.hold(ctx, &b.request); err != nil {
		return err
	}
	c.first.decide()
	return nil
}

func (st *drawStream) release(b *drawBatch) {
	st.s.giveWork(st.call.access.who, b.work)
	b.work = 0
	b.clear()
}

// answerAll answers batches as they become durable. After an error it drops the rest and returns
// the error.
func (st *drawStream) answerAll(ctx context.Context, stopReading func()) error {
	var failed error
	for b := range st.started {
		if failed == nil {
			if failed = st.answer(ctx, b); failed != nil {
				stopReading()
				st.ends.stopReading()
			}
		}
		st.release(b)
		if failed == nil {
			st.free <- b // has room for all
		}
	}
	return failed
}

// answer sends the answer to one batch.
func (st *drawStream) answer(ctx context.Context, b *drawBatch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			st.s.logPanic(st.call.endpoint.procedure, p)
			err = errPanic
		}
	}()
	if err := b.commit.Wait(ctx); err != nil {
		return err
	}
	st.writing.arm()
	err = st.conn.Send(drawsResponse(b.draws, b.results))
	st.writing.disarm()
	if err != nil {
		return err
	}
	st.s.metrics.all(b.results)
	took := time.Since(b.arrived)
	st.call.endpoint.metrics.latency.Observe(took.Seconds())
	st.call.messages++
	st.call.units += int64(len(b.results))
	if st.s.isSlow(took) {
		st.s.logSlow(st.call, cmp.Or(b.request.GetRealm(), DefaultRealm), codeLabel(0), took)
	}
	return nil
}

// streamEnds lets any goroutine cut the reading or writing end of a stream during the call.
type streamEnds struct {
	mu   sync.Mutex
	conn *http.ResponseController // nil before and after the call
}

// open removes the timeouts of the whole call.
func (e *streamEnds) open(w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	e.mu.Lock()
	e.conn = c
	e.mu.Unlock()
	return nil
}

func (e *streamEnds) stopReading() { e.stop((*http.ResponseController).SetReadDeadline) }
func (e *streamEnds) stopWriting() { e.stop((*http.ResponseController).SetWriteDeadline) }

func (e *streamEnds) stop(set func(*http.ResponseController, time.Time) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		_ = set(e.conn, time.Unix(1, 0)) // cannot fail: open has set it before
	}
}

// close must be called before the handler returns. Its writer must not be used afterwards.
func (e *streamEnds) close() {
	e.mu.Lock()
	e.conn = nil
	e.mu.Unlock()
}

// watch calls a function if something takes too long.
type watch struct {
	timer *time.Timer
	limit time.Duration
}

func (w *watch) start(limit time.Duration, late func()) {
	w.limit = limit
	w.timer = time.AfterFunc(limit, late)
	w.timer.Stop()
}

func (w *watch) arm() { w.timer.Reset(w.limit) }

// disarm stops the watch. It reports whether the function was called.
func (w *watch) disarm() (late bool) { return !w.timer.Stop() }

func (w *watch) stop() { w.timer.Stop() }
