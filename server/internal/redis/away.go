package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// In a cluster, what a Redis client asks of a realm that this server does not lead becomes a call of
// the API, with the client's key, and goes the way of all others: see [Cluster]. A run becomes a Batch.

// away is the way to whoever leads a realm that this server does not.
type away struct {
	cluster Cluster // nil: there is none, and this server leads all
	realm   string
	peer    string // the client's address
	secret  string // its key or token
}

func awayOf(c *redisConn) away { return away{c.s.o.Cluster, c.realm, c.peer, c.secret} }

// answer has this server answer, or the one that leads the realm. If the realm stops meanwhile, and
// nothing has happened here, that is another one.
func (a away) answer(ctx context.Context, here func() error, there func(kujiv1connect.RewardServiceClient) error) error {
	if a.cluster == nil {
		return here()
	}
	if a.cluster.Holds(a.realm) {
		if err := here(); !stoppedBefore(err) {
			return err
		}
	}
	err := there(kujiv1connect.NewRewardServiceClient(a, "http://127.0.0.1"))
	if ce, ok := errors.AsType[*connect.Error](err); err != nil && (!ok || len(ce.Details()) == 0) && ctx.Err() == nil {
		// No server says so: it may have happened.
		return &kuji.Error{Code: kuji.CodeUnknownOutcome, Message: "the connection to the leader was lost: send the same request id again"}
	}
	return err
}

// turnKey marks a call of a pipeline that has had its turn here, if it needed one. Should this server lead by
// now, the call must not wait for another one, which only other pipelines could give back.
type turnKey struct{}

// Do implements [connect.HTTPClient].
func (a away) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.RemoteAddr = int64(len(body)), a.peer
	if a.secret != "" {
		r.Header.Set("Authorization", "Bearer "+a.secret)
	}
	w := &heard{header: http.Header{}, status: http.StatusOK}
	a.cluster.Elsewhere(w, r.WithContext(context.WithValue(r.Context(), turnKey{}, true)), a.realm)
	return &http.Response{StatusCode: w.status, ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r}, nil
}

// heard is an answer that is kept. It is as large as what the call asks for, which Server.work counts.
type heard struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *heard) Header() http.Header         { return w.header }
func (w *heard) WriteHeader(status int)      { w.status = status }
func (w *heard) Write(p []byte) (int, error) { return w.body.Write(p) }

// ask asks another server for the run.
func (r *run) ask(ctx context.Context, rewards kujiv1connect.RewardServiceClient, realm string) error {
	m := &kujiv1.BatchRequest{Realm: realm}
	for i := range r.slots {
		if slot := &r.slots[i]; slot.err == nil {
			m.Commands = append(m.Commands, commandOf(slot.request))
		}
	}
	res, err := rewards.Batch(ctx, m)
	if err != nil {
		return err
	}
	if len(res.GetResults()) != len(r.results) {
		return fmt.Errorf("%d answers to %d commands", len(res.GetResults()), len(r.results))
	}
	r.answers = make([]*kujiv1.Result, len(r.results))
	for i, one := range res.GetResults() {
		if one.GetStatus() == kujiv1.Status_STATUS_REFUSED {
			r.results[i] = kuji.Result{Status: kuji.Refused, Err: refusalSaid(one.GetError())}
			continue
		}
		if r.answers[i], err = singleResult(res, one); err != nil {
			return err
		}
	}
	return nil
}

// commandOf returns a request as a command of a batch.
func commandOf(m proto.Message) *kujiv1.Command {
	out := &kujiv1.Command{RequestId: m.(interface{ GetRequestId() string }).GetRequestId()} // all that change something have one
	switch m := m.(type) {
	case *kujiv1.RedeemRequest:
		out.Command = &kujiv1.Command_Redeem{Redeem: &kujiv1.Redeem{Player: m.GetPlayer(), Code: m.GetCode()}}
		return out
	case *kujiv1.AtomicRequest:
		out.Command = &kujiv1.Command_Atomic{Atomic: &kujiv1.Atomic{Members: m.GetMembers()}}
		return out
	}
	switch m := memberOf(m).GetCommand().(type) {
	case *kujiv1.Member_Draw:
		out.Command = &kujiv1.Command_Draw{Draw: m.Draw}
	case *kujiv1.Member_Register:
		out.Command = &kujiv1.Command_Register{Register: m.Register}
	case *kujiv1.Member_Grant:
		out.Command = &kujiv1.Command_Grant{Grant: m.Grant}
	case *kujiv1.Member_Consume:
		out.Command = &kujiv1.Command_Consume{Consume: m.Consume}
	case *kujiv1.Member_Transfer:
		out.Command = &kujiv1.Command_Transfer{Transfer: m.Transfer}
	}
	return out
}

// singleResult returns a result of a batch as that of a call alone.
func singleResult(b *kujiv1.BatchResponse, one *kujiv1.BatchResult) (*kujiv1.Result, error) {
	out := &kujiv1.Result{
		Status: one.GetStatus(), Subject: one.GetSubject(), Members: one.GetMembers(), Replayed: one.GetReplayed(),
		Paid: one.GetPaid(), Redeemed: one.GetRedeemed(), Limit: one.GetLimit(), Lacks: one.GetLacks(),
	}
	draws := one.GetOutcomeDraws()
	if int(one.GetReceipt()) >= len(b.GetReceipts()) || len(draws) > 0 && len(draws) != len(one.GetOutcomes()) {
		return nil, errors.New("a result of a batch refers to what is not there")
	}
	out.Receipt = proto.CloneOf(b.GetReceipts()[one.GetReceipt()])
	out.Receipt.Index = one.GetIndex()
	for i, at := range one.GetOutcomes() {
		if int(at) >= len(b.GetOutcomes()) {
			return nil, errors.New("a result of a batch refers to what is not there")
		}
		o := b.GetOutcomes()[at]
		o = &kujiv1.Outcome{Entry: o.GetEntry(), Items: o.GetItems(), Via: o.GetVia(), Codes: o.GetCodes(), Draw: uint32(i)}
		if len(draws) > 0 {
			o.Draw = draws[i]
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

// refusalSaid returns the error of a command of a batch, as far as its answer says it.
func refusalSaid(d *kujiv1.ErrorDetail) error {
	text := "the command was refused"
	if v := d.GetViolations(); len(v) > 0 {
		text = v[0].GetDescription()
		if v[0].GetField() != "" {
			text = v[0].GetField() + ": " + text
		}
	}
	code := connect.CodeInternal
	for _, a := range codeAnswers {
		if a.reason == d.GetReason() {
			code = a.code
		}
	}
	return withDetail(connect.NewError(code, errors.New(text)), d)
}
