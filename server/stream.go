package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/message"
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

// draws answers StreamDraws.
type draws struct {
	limits   *Limits
	keys     *access.Keys
	stopping context.Context
	gate     *admission.Gate
	shares   *shares
	metrics  *metrics
	journal  *journal
}

// drawBatch is one batch of a stream. Its memory is reused for one batch after another.
type drawBatch struct {
	message.Draws
	arrived time.Time
	commit  kuji.Commit
	work    int64 // taken from Gate.Work
}

// drawStream is one StreamDraws call.
type drawStream struct {
	access.Pass // the reader's alone
	*draws
	call    *call
	conn    connect.StreamingHandlerConn
	free    chan *drawBatch
	started chan *drawBatch
	ends    admission.Ends
	reading admission.Watch // armed while a batch is awaited
	// unnamed: a draw without an id was started. After an unknown outcome no client may repeat.
	unnamed atomic.Bool
}

// streamError is an error that ended a stream.
type streamError struct {
	err   error
	named bool // every draw that was started has a request id
}

func (e *streamError) Error() string { return e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

// Repeatable reports whether everything that was sent can be sent again safely.
func (e *streamError) Repeatable() bool { return e.named }

var (
	errDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down; batches without an answer were not carried out"}
	errMoved    = &kuji.Error{Code: kuji.CodeClosed, Message: "another node leads the realm of this batch: open another stream for it; batches without an answer were not carried out"}
	errRevoked  = contract.Refused(connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED,
		errors.New("the API key is no longer valid for this stream; batches without an answer were not carried out"))
)

func (h *draws) StreamDraws(ctx context.Context, bidi *connect.BidiStream[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]) error {
	return h.serve(ctx, callOf(ctx), bidi.Conn())
}

// serve serves a stream to its end.
func (h *draws) serve(ctx context.Context, c *call, conn connect.StreamingHandlerConn) error {
	n := h.limits.StreamBatches
	st := &drawStream{
		Pass: access.NewPass(h.keys, c.access), draws: h, call: c, conn: conn,
		free: make(chan *drawBatch, n), started: make(chan *drawBatch, n),
	}
	for range n {
		st.free <- new(drawBatch)
	}
	st.metrics.streams.Add(1)
	defer st.metrics.streams.Add(-1)
	if err := st.ends.Open(&st.call.answer, st.limits.WriteTimeout); err != nil {
		return err
	}
	defer st.ends.Close()
	st.reading = admission.NewWatch(st.limits.IdleTimeout, st.ends.StopReading)
	defer context.AfterFunc(st.stopping, st.ends.StopReading)()

	var answering sync.WaitGroup
	var answered error
	reading, stopReading := context.WithCancel(ctx) // ends when an answer fails
	defer stopReading()
	answering.Go(func() { answered = st.answerAll(ctx, stopReading) })
	err := st.readAll(reading)
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

// readAll starts batches until the stream ends. It returns nil if the client ended it.
func (st *drawStream) readAll(ctx context.Context) error {
	for {
		var b *drawBatch
		select {
		case b = <-st.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch err := st.receive(b); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
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
	st.reading.Arm()
	err := st.conn.Receive(&b.Request)
	late := st.reading.Disarm()
	switch {
	case st.stopping.Err() != nil:
		return errDraining
	case late && err != nil:
		return &kuji.Error{Code: kuji.CodeCanceled, Err: context.DeadlineExceeded,
			Message: fmt.Sprintf("no complete batch arrived within %v, the longest that a stream may be idle", st.limits.IdleTimeout)}
	case err != nil:
		return err
	case !st.StillMay(st.call.endpoint.role):
		return errRevoked
	}
	b.arrived = time.Now()
	return miscount(&b.Request)
}

// admit checks what a batch asks for, and counts it. A stream that is too fast waits.
func (st *drawStream) admit(ctx context.Context, b *drawBatch) error {
	a := st.Access
	if err := a.Permit(&b.Request); err != nil {
		return err
	}
	for wait := st.gate.Rates.Take(a); wait > 0; wait = st.gate.Rates.Take(a) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		case <-st.stopping.Done():
			return errDraining
		}
	}
	st.gate.Rates.Owe(a, message.Commands(&b.Request)-1)
	return ctx.Err()
}

// start decides a batch's draws and queues them for the log.
func (st *drawStream) start(ctx context.Context, b *drawBatch) error {
	st.call.about(&b.Request)
	if err := st.hold(ctx, b); err != nil {
		return err
	}
	if err := st.admit(ctx, b); err != nil {
		return err
	}
	if err := b.Build(); err != nil {
		return err
	}
	realm, err := st.shares.realms.get(b.Request.GetRealm())
	if err != nil {
		return err
	}
	if b.work, err = st.gate.TakeWork(ctx, st.call.access.Who, b.Size); err != nil {
		return err
	}
	if !b.Named {
		st.unnamed.Store(true)
	}
	if b.commit, err = realm.StartAll(ctx, b.Requests, b.Results); err != nil {
		st.release(b)
	}
	return err
}

// hold checks that this server answers a batch. The first one decides for the whole stream.
func (st *drawStream) hold(ctx context.Context, b *drawBatch) error {
	c := st.call
	switch {
	case !c.shared:
		return nil
	case c.held != "": // it is not the first
		if !st.shares.cluster.Holds(cmp.Or(b.Request.GetRealm(), DefaultRealm)) {
			return errMoved
		}
		return nil
	}
	if err := st.shares.hold(ctx, &b.Request); err != nil {
		return err
	}
	c.body.decided = true
	return nil
}

func (st *drawStream) release(b *drawBatch) {
	st.gate.GiveWork(st.call.access.Who, b.work)
	b.work = 0
	b.Clear()
}

// answerAll answers batches as they become durable. It drops the rest after an error.
func (st *drawStream) answerAll(ctx context.Context, stopReading func()) error {
	var failed error
	for b := range st.started {
		if failed == nil {
			if failed = st.answer(ctx, b); failed != nil {
				stopReading()
				st.ends.StopReading()
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
			st.journal.panicked(st.call.endpoint.procedure, p)
			err = message.ErrPanic
		}
	}()
	if err := b.commit.Wait(ctx); err != nil {
		return err
	}
	if err := st.ends.Send(func() error { return st.conn.Send(b.Response()) }); err != nil {
		return err
	}
	st.metrics.all(b.Results)
	took := time.Since(b.arrived)
	st.call.endpoint.metrics.latency.Observe(took.Seconds())
	st.call.messages++
	st.call.units += int64(len(b.Results))
	if st.journal.isSlow(took) {
		st.journal.logSlow(st.call, cmp.Or(b.Request.GetRealm(), DefaultRealm), codeLabel(0), took)
	}
	return nil
}
