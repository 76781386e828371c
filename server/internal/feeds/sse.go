package feeds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Server-sent events are StreamEvents for browsers: a GET whose query is the request, and an answer
// that EventSource reads. An event's data is an Event as JSON. The id after the events of a message
// is the message's next, which a browser that lost the connection sends as Last-Event-ID, to
// continue there.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html

// Path is where browsers ask for events.
const Path = "/events"

// retryMillis is how long a browser waits before it connects again.
const retryMillis = 2000

// TokenParameter is where EventSource, which sets no headers, has a player's token (RFC 6750, 2.3).
// It takes no key: addresses end up in logs.
const TokenParameter = "access_token"

// Asked reads what a browser asks for.
func Asked(r *http.Request) (*kujiv1.StreamEventsRequest, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badQuery("is malformed: %v", err)
	}
	req, from := &kujiv1.StreamEventsRequest{}, r.Header.Get("Last-Event-ID")
	for name, values := range query {
		if len(values) > 1 {
			return nil, badQuery("has %q %d times, want it once", name, len(values))
		}
		switch v := values[0]; name {
		case "realm":
			req.Realm = v
		case "player":
			req.Player = v
		case "pool":
			req.Pool = v
		case "from":
			if from == "" { // a browser that comes back says more
				from = v
			}
		case TokenParameter:
		default:
			return nil, badQuery("has %.40q, want realm, from, player or pool", name)
		}
	}
	if from != "" {
		n, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return nil, badQuery("says from %.40q, want a position: a number from 0 on", from)
		}
		req.From = &n
	}
	return req, nil
}

func badQuery(format string, args ...any) *connect.Error {
	return contract.Refused(connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID, fmt.Errorf("the query "+format, args...))
}

// Writer writes messages of StreamEvents as server-sent events.
type Writer struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	Begun bool // something was sent
	buf   bytes.Buffer
}

// NewWriter returns a writer of an answer.
func NewWriter(w http.ResponseWriter) *Writer {
	return &Writer{w: w, flush: http.NewResponseController(w)}
}

// Send sends a message.
func (o *Writer) Send(m *kujiv1.StreamEventsResponse) error {
	o.buf.Reset()
	if !o.Begun {
		o.Begun = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // so that a proxy passes events on as they come
		fmt.Fprintf(&o.buf, "retry: %d\n", retryMillis)
	}
	for i, e := range m.GetEvents() {
		data, err := contract.AppendJSON(nil, e)
		if err != nil {
			return err
		}
		if i == len(m.GetEvents())-1 {
			fmt.Fprintf(&o.buf, "id: %d\n", m.GetNext())
		}
		fmt.Fprintf(&o.buf, "data: %s\n\n", data) // JSON of one line
	}
	if len(m.GetEvents()) == 0 { // only the id: no event for the page
		fmt.Fprintf(&o.buf, "id: %d\n\n", m.GetNext())
	}
	if _, err := o.w.Write(o.buf.Bytes()); err != nil {
		return gone(err)
	}
	return gone(o.flush.Flush())
}

// End says why the stream ends. The browser connects again, and is told by a status if it may not.
func (o *Writer) End(ce *connect.Error) {
	data, err := json.Marshal(map[string]string{"code": ce.Code().String(), "message": ce.Message()})
	if err != nil {
		return
	}
	fmt.Fprintf(o.w, "event: end\ndata: %s\n\n", data)
}

// gone is the error of a stream whose client takes nothing any more.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(context.Canceled, err)
}
