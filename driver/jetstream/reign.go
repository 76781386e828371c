package jetstream

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A stream's leader that steps down forgets the requests that it has not answered. A caller asks again when
// the servers say that they have elected another one:
//
//	$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.STREAM
//
// That comes before the new leader takes requests, and perhaps before the old one stops. A request in between
// gets no answer either: for a while after an election, no call waits for long. A message that gets lost only
// costs time.

const electedSubject = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."

const (
	// unsettled is how long after an election an answer may fail to come.
	unsettled = 2 * time.Second
	// unsettledAttempt is how long one attempt then waits for it.
	unsettledAttempt = 250 * time.Millisecond
)

// reigns are the streams whose leaders somebody has asked for something.
type reigns struct {
	ends context.Context // all of them end with it

	among    sync.Mutex // guards byStream
	byStream map[string]*reign
}

// reign is the time of one leader of a stream.
type reign struct {
	began time.Time // zero: before anybody asked
	life  context.Context
	end   context.CancelFunc
}

// of returns the reign of now.
func (r *reigns) of(stream string) *reign {
	r.among.Lock()
	defer r.among.Unlock()
	if r.byStream[stream] == nil {
		r.begin(stream, time.Time{})
	}
	return r.byStream[stream]
}

// elected ends a reign, if anybody has asked for something in it, and begins the next one.
func (r *reigns) elected(stream string) {
	r.among.Lock()
	defer r.among.Unlock()
	if old := r.byStream[stream]; old != nil {
		r.begin(stream, time.Now())
		old.end()
	}
}

// begin begins a reign. The caller holds among.
func (r *reigns) begin(stream string, at time.Time) {
	next := &reign{began: at}
	next.life, next.end = context.WithCancel(r.ends)
	if r.byStream == nil {
		r.byStream = map[string]*reign{}
	}
	r.byStream[stream] = next
}

// watch makes the driver learn of elections, of streams whose names begin with a prefix. A user of an
// external server who may not listen to them waits longer.
func (r *reigns) watch(conn *nats.Conn, prefix string) error {
	_, err := conn.Subscribe(electedSubject+"*", func(msg *nats.Msg) {
		if stream := strings.TrimPrefix(msg.Subject, electedSubject); strings.HasPrefix(stream, prefix) {
			r.elected(stream)
		}
	})
	return err
}

// under returns a context for one request to a stream's leader, bounded by limit and by the next election.
func (r *reigns) under(ctx context.Context, stream string, limit time.Duration) (context.Context, context.CancelFunc) {
	now := r.of(stream)
	if time.Since(now.began) < unsettled {
		limit = min(limit, unsettledAttempt)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(now.life, cancel)
	return ctx, func() { stop(); cancel() }
}
