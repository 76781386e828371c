package jetstream

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A stream's leader that steps down forgets the requests that it has not answered. A caller asks
// again when the servers say that they have elected another one:
//
//	$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.STREAM
//
// They say so before the new leader takes requests, and perhaps before the old one stops. A request
// in between gets no answer either. So no call waits long for some time after an election. If the
// message is lost, the caller only loses time.

const electedSubject = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."

const (
	unsettled        = 2 * time.Second        // after an election, an answer may fail to come for so long
	unsettledAttempt = 250 * time.Millisecond // how long one attempt then waits for it
)

// reigns has the streams whose leaders were asked for something.
type reigns struct {
	ends context.Context // all reigns end with it

	among    sync.Mutex // guards byStream
	byStream map[string]*reign
}

// reign is the time of one leader of a stream.
type reign struct {
	began time.Time // zero: before the first request
	life  context.Context
	end   context.CancelFunc
}

// of returns a stream's present reign.
func (r *reigns) of(stream string) *reign {
	r.among.Lock()
	defer r.among.Unlock()
	if r.byStream[stream] == nil {
		r.begin(stream, time.Time{})
	}
	return r.byStream[stream]
}

// elected ends a stream's reign and begins the next one, if its leader was asked for something.
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
	r.byStream[stream] = next
}

// watch listens for elections of leaders of streams whose names begin with prefix. A user of an
// external server who may not listen to them waits longer.
func (r *reigns) watch(conn *nats.Conn, prefix string) error {
	_, err := conn.Subscribe(electedSubject+"*", func(msg *nats.Msg) {
		if stream := strings.TrimPrefix(msg.Subject, electedSubject); strings.HasPrefix(stream, prefix) {
			r.elected(stream)
		}
	})
	return err
}

// under returns a context for one request to a stream's leader, until limit or the next election.
func (r *reigns) under(ctx context.Context, stream string, limit time.Duration) (context.Context, context.CancelFunc) {
	now := r.of(stream)
	if time.Since(now.began) < unsettled {
		limit = min(limit, unsettledAttempt)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(now.life, cancel)
	return ctx, func() { stop(); cancel() }
}
