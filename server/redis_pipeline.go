package server

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// answersAtOnce is from how many bytes on answers are sent, although more of the same pipeline follow.
const answersAtOnce = 64 << 10

// pipeline is what a connection has begun of the commands that arrived together.
type pipeline struct {
	arrived  time.Time
	size     int     // in bytes
	entered  *access // who the engine was asked for; nil: not yet
	refusal  error   // why nothing of the pipeline is asked of the engine
	turn     bool    // it has one of Server.bulk
	commands int     // asked of the engine
	work     int64   // taken from Server.work for answers that were not sent
	run      run
}

// run is commands in a row that become one batch.
type run struct {
	slots    []slot
	reqs     []kuji.Request
	results  []kuji.Result
	outcomes int64
	work     int64
}

// slot is one command of a run: the next of its requests, or refused.
type slot struct {
	metrics *rpcMetrics
	request proto.Message
	err     error
}

// answer carries out the whole commands and sends the answers.
func (c *redisConn) answer() {
	c.arrived, c.size = time.Now(), c.scanned-c.from
	for c.whole > 0 && !c.leaving && c.failed == nil {
		words, n, err := parseCommand(c.buf[c.from:c.scanned], c.size, c.words)
		if err != nil { // scan has read it before
			panic(err)
		}
		c.from += n
		c.whole--
		if len(words) > 0 {
			c.handle(words)
		}
	}
	c.flush()
	if c.broken != nil && !c.leaving {
		c.refuse(c.broken, nil)
		c.leaving = true
	}
	if c.entered == nil {
		c.s.conns.touch(c.place)
	}
	c.send()
	c.exit()
}

// enter takes what a pipeline needs before the engine is asked, once: a part of its key's rate, of
// busy connections, memory and calls. A pipeline that is larger than one command can be takes turns
// with others, as a Batch does.
func (c *redisConn) enter() error {
	if c.entered != nil || c.refusal != nil {
		return c.refusal
	}
	c.refusal = c.tryEnter()
	return c.refusal
}

func (c *redisConn) tryEnter() error {
	if c.access == nil {
		return errNoAuth
	}
	if !c.renew() {
		c.access = nil
		return errNoLongerValid
	}
	s, who := c.s, c.access.who
	if err := s.checkRate(c.access); err != nil {
		return err
	}
	if !s.conns.begin(c.place, who) {
		return s.overloaded(who, s.conns.busy, "connections are busy")
	}
	if !s.memory.take(who, requestCost) {
		s.conns.end(c.place)
		return s.noMemory(who)
	}
	if !s.calls.take(who, 1) {
		s.memory.give(who, requestCost)
		s.conns.end(c.place)
		return s.overloaded(who, s.calls, "calls are being answered")
	}
	c.entered = c.access
	if c.size > s.o.Limits.RequestBytes {
		return c.takeTurn()
	}
	return nil
}

// takeTurn waits for the pipeline's turn among those that can be large. It sends what is ready first:
// whoever waits for a turn holds no work.
func (c *redisConn) takeTurn() error {
	if c.turn {
		return nil
	}
	c.flush()
	c.send()
	if err := c.s.bulk.wait(c.ctx, c.entered.who, 1); err != nil {
		return err
	}
	c.turn = true
	return nil
}

// exit gives back what enter has taken.
func (c *redisConn) exit() {
	if a := c.entered; a != nil {
		c.s.rates.owe(a, c.commands-1)
		if c.turn {
			c.s.bulk.give(a.who, 1)
		}
		c.s.calls.give(a.who, 1)
		c.s.memory.give(a.who, requestCost)
		c.s.conns.end(c.place)
		c.s.giveWork(a.who, c.work)
	}
	c.work = 0
	c.entered, c.refusal, c.turn, c.commands = nil, nil, false, 0
}

// ask asks the engine for a request of the API: at once if it reads, otherwise with the run.
func (c *redisConn) ask(cmd *redisCommand, m proto.Message) error {
	if err := c.enter(); err != nil {
		return err
	}
	c.commands++
	if err := c.entered.permit(m); err != nil {
		return err
	}
	if req := c.requestOf(m); req != nil {
		c.add(cmd, m, req)
		return nil
	}
	c.flush()
	answer, err := c.look(m)
	if err != nil {
		return err
	}
	c.write(answer)
	cmd.metrics.done("ok", time.Since(c.arrived))
	return nil
}

// requestOf translates a command for the engine. It returns nil for what reads.
func (c *redisConn) requestOf(m proto.Message) kuji.Request {
	note := kuji.Note{By: c.entered.name}
	switch m := m.(type) {
	case *kujiv1.DrawRequest:
		return drawOf(m.GetRequestId(), m)
	case *kujiv1.GrantRequest:
		return grantOf(m.GetRequestId(), m, note)
	case *kujiv1.ConsumeRequest:
		return consumeOf(m.GetRequestId(), m, note)
	case *kujiv1.TransferRequest:
		return transferOf(m.GetRequestId(), m, note)
	}
	return nil
}

// look reads something.
func (c *redisConn) look(m proto.Message) (proto.Message, error) {
	h := rewardService{c.s}
	if _, ok := m.(*kujiv1.GetOddsRequest); ok {
		if err := c.takeTurn(); err != nil {
			return nil, err
		}
	}
	if err := c.takeWork(workOf(m)); err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *kujiv1.GetPlayerRequest:
		res, err := h.GetPlayer(c.ctx, m)
		return res.GetPlayer(), err
	case *kujiv1.GetPoolRequest:
		res, err := h.GetPool(c.ctx, m)
		return res.GetPool(), err
	case *kujiv1.GetOddsRequest:
		res, err := h.GetOdds(c.ctx, m)
		return res.GetOdds(), err
	}
	return nil, fmt.Errorf("no Redis command asks for a %T", m)
}

// takeWork takes what answers need. It sends earlier ones first: whoever waits for work holds none.
func (c *redisConn) takeWork(n int64) (err error) {
	if c.work > 0 {
		c.send()
	}
	c.work, err = c.s.takeWork(c.ctx, c.entered.who, n)
	return err
}

// write writes an answer.
func (c *redisConn) write(answer proto.Message) {
	m := answer.ProtoReflect()
	c.s.replies[m.Descriptor().FullName()].message(&c.resp, m)
	if len(c.out) >= answersAtOnce {
		c.transmit()
	}
}

// add adds a command to the run.
func (c *redisConn) add(cmd *redisCommand, m proto.Message, req kuji.Request) {
	outcomes := int64(0)
	if d, ok := m.(*kujiv1.DrawRequest); ok {
		outcomes = asked(d.GetCount())
	}
	if len(c.run.reqs) == kuji.MaxBatch || c.run.outcomes+outcomes > MaxBatchOutcomes {
		c.flush()
	}
	r := &c.run
	r.slots = append(r.slots, slot{cmd.metrics, m, nil})
	r.reqs = append(r.reqs, req)
	r.outcomes += outcomes
	if r.work += outcomes * outcomeBytes; len(r.reqs) > 1 {
		r.work += commandBytes
	}
}

// flush carries out the run and answers it.
func (c *redisConn) flush() {
	r := &c.run
	if len(r.slots) == 0 {
		return
	}
	failed := c.carryOut()
	next := 0
	for i := range r.slots {
		slot, err := &r.slots[i], r.slots[i].err
		if err == nil {
			if err = failed; err == nil {
				if res := &r.results[next]; res.Status == kuji.Refused {
					err = res.Err
				} else {
					c.write(resultProto(res))
				}
			}
			next++
		}
		label := "ok"
		if err != nil {
			label = c.refuse(err, slot.request)
		}
		slot.metrics.done(label, time.Since(c.arrived))
	}
	c.run = run{slots: r.slots, reqs: r.reqs, results: r.results}
	c.run.clear()
}

// carryOut carries out the requests of the run. The error is that of all.
func (c *redisConn) carryOut() error {
	r := &c.run
	if len(r.reqs) == 0 {
		return nil
	}
	if err := c.takeWork(r.work); err != nil {
		return err
	}
	realm, err := c.s.realms.get(c.s.engine, c.realm)
	if err != nil {
		return err
	}
	if cap(r.results) < len(r.reqs) {
		r.results = make([]kuji.Result, len(r.reqs))
	}
	r.results = r.results[:len(r.reqs)]
	commit, err := realm.StartAll(c.ctx, r.reqs, r.results)
	if err == nil {
		err = commit.Wait(c.ctx)
	}
	if err == nil {
		c.s.metrics.all(r.results)
	}
	return err
}

// keptRun is how long a run is whose memory a connection keeps for the next.
const keptRun = 16

// clear empties the run.
func (r *run) clear() {
	if cap(r.slots) > keptRun {
		*r = run{}
		return
	}
	clear(r.slots)
	clear(r.reqs)
	clear(r.results)
	r.slots, r.reqs, r.results = r.slots[:0], r.reqs[:0], r.results[:0]
}

// redisKinds are the first words of errors.
var redisKinds = map[kujiv1.Reason]string{
	kujiv1.Reason_REASON_INVALID:         "INVALID",
	kujiv1.Reason_REASON_NOT_FOUND:       "NOTFOUND",
	kujiv1.Reason_REASON_ID_REUSED:       "IDREUSED",
	kujiv1.Reason_REASON_TOO_OLD:         "TOOOLD",
	kujiv1.Reason_REASON_CONFLICT:        "CONFLICT",
	kujiv1.Reason_REASON_OVERLOADED:      "OVERLOADED",
	kujiv1.Reason_REASON_UNKNOWN_OUTCOME: "UNKNOWN",
	kujiv1.Reason_REASON_FAILED:          "FAILED",
	kujiv1.Reason_REASON_CLOSED:          "CLOSED",
	kujiv1.Reason_REASON_CORRUPT:         "CORRUPT",
	kujiv1.Reason_REASON_CANCELED:        "CANCELED",
	kujiv1.Reason_REASON_UNAUTHENTICATED: "NOAUTH",
	kujiv1.Reason_REASON_FORBIDDEN:       "NOPERM",
	kujiv1.Reason_REASON_INTERNAL:        "INTERNAL",
}

// refuse writes the error of a command and returns its label for metrics.
func (c *redisConn) refuse(err error, request proto.Message) (label string) {
	if re, ok := errors.AsType[*redisError](err); ok {
		c.fail(re.kind, re.text)
		return codeLabel(re.code)
	}
	ce := c.s.connectError(err, request)
	kind := "INTERNAL"
	for _, d := range ce.Details() {
		if v, err := d.Value(); err == nil {
			if detail, ok := v.(*kujiv1.ErrorDetail); ok {
				kind = cmp.Or(redisKinds[detail.GetReason()], kind)
			}
		}
	}
	c.fail(kind, ce.Message())
	return codeLabel(ce.Code())
}
