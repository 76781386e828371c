package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// answersAtOnce is from how many bytes on answers are sent, although more of the same pipeline follow.
const answersAtOnce = 64 << 10

// pipeline is what a connection has begun of the commands that arrived together.
type pipeline struct {
	arrived  time.Time
	until    time.Time // when its answers must be taken; zero: none was sent yet
	size     int       // in bytes
	larger   int       // bytes of a group that came before; see takeTurn
	entered  *access   // who the engine was asked for; nil: not yet
	refusal  error     // why nothing of the pipeline is asked of the engine
	turn     bool      // it has one of Server.bulk
	commands int       // asked of the engine
	work     int64     // taken from Server.work for answers that were not sent
	run      run
}

// run is commands in a row that become one batch.
type run struct {
	slots    []slot
	reqs     []kuji.Request
	results  []kuji.Result
	answers  []*kujiv1.Result // instead, of another server; nil: it answered nothing
	outcomes int64
	work     int64
}

// slot is one command of a run: the next of its requests, or refused.
type slot struct {
	cmd     *redisCommand
	request proto.Message
	size    int // in bytes
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
		if len(words) == 0 { // Redis answers nothing, and no client sends it: with a key, it counts too
			c.count(ended{size: n})
			c.leaving = c.tries.over() || c.leaving
			continue
		}
		c.handle(words, n)
		if c.isMuch() {
			c.transmit()
		}
	}
	c.flush()
	if c.broken != nil && !c.leaving {
		c.reject(nil, c.to-c.from, c.broken)
		c.leaving = true
	}
	if c.entered == nil {
		c.s.conns.touch(c.place)
	}
	c.send()
	c.exit()
	c.until = time.Time{}
}

// enter takes what a pipeline needs before the engine is asked, once: a part of its key's rate, of
// busy connections, memory and calls. A pipeline that is larger than one command can be takes turns
// with others, as a Batch does.
func (c *redisConn) enter() error {
	if c.entered == nil && c.refusal == nil {
		c.refusal = c.tryEnter()
	}
	if c.refusal == nil && max(c.size, c.larger) > c.s.o.Limits.RequestBytes {
		c.refusal = c.takeTurn()
	}
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
	c.entered, c.refusal, c.turn, c.commands, c.larger = nil, nil, false, 0, 0
}

// ask asks the engine for a request of the API: at once if it reads, otherwise with the run.
func (c *redisConn) ask(cmd *redisCommand, size int, m proto.Message) error {
	if err := c.enter(); err != nil {
		return err
	}
	c.commands += commandsIn(m)
	if err := c.entered.permit(m); err != nil {
		return err
	}
	if req := c.requestOf(m); req != nil {
		c.add(slot{cmd, m, size, nil}, req)
		return nil
	}
	c.flush()
	answer, err := c.look(m)
	if err != nil {
		return err
	}
	before := c.written()
	c.write(answer)
	c.count(ended{cmd: cmd, size: size, answered: c.written() - before})
	return nil
}

// requestOf translates a command for the engine. It returns nil for what reads.
func (c *redisConn) requestOf(m proto.Message) kuji.Request {
	note := kuji.Note{By: c.entered.name}
	switch m := m.(type) {
	case *kujiv1.DrawRequest:
		return drawOf(m.GetRequestId(), m)
	case *kujiv1.RedeemRequest:
		return redeemOf(m.GetRequestId(), m)
	case *kujiv1.RegisterRequest:
		return registerOf(m.GetRequestId(), m, note)
	case *kujiv1.AtomicRequest:
		return atomicOf(m.GetRequestId(), m.GetMembers(), note)
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
	if _, ok := m.(*kujiv1.GetOddsRequest); ok {
		c.send() // whoever waits for a turn holds no work
		if err := c.s.odds.wait(c.ctx, c.entered.who, 1); err != nil {
			return nil, err
		}
		defer c.s.odds.give(c.entered.who, 1)
	}
	if err := c.takeWork(workOf(m)); err != nil {
		return nil, err
	}
	var out proto.Message
	read := func(rewards readers) (err error) {
		out, err = look(c.ctx, rewards, m)
		return err
	}
	err := awayOf(c).answer(c.ctx, func() error { return read(rewardService{c.s}) },
		func(rewards kujiv1connect.RewardServiceClient) error { return read(rewards) })
	return out, err
}

// readers are what answers what commands read, here or at another server.
type readers interface {
	GetPlayer(context.Context, *kujiv1.GetPlayerRequest) (*kujiv1.GetPlayerResponse, error)
	GetPool(context.Context, *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error)
	GetOdds(context.Context, *kujiv1.GetOddsRequest) (*kujiv1.GetOddsResponse, error)
}

func look(ctx context.Context, rewards readers, m proto.Message) (proto.Message, error) {
	switch m := m.(type) {
	case *kujiv1.GetPlayerRequest:
		res, err := rewards.GetPlayer(ctx, m)
		return res.GetPlayer(), err
	case *kujiv1.GetPoolRequest:
		res, err := rewards.GetPool(ctx, m)
		return res.GetPool(), err
	case *kujiv1.GetOddsRequest:
		res, err := rewards.GetOdds(ctx, m)
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
	contract.Form{Stacks: true}.Write(&c.resp, answer.ProtoReflect())
}

// add adds a command to the run.
func (c *redisConn) add(cmd slot, req kuji.Request) {
	outcomes := outcomesOf(cmd.request)
	if len(c.run.reqs) == kuji.MaxBatch || c.run.outcomes+outcomes > MaxBatchOutcomes {
		c.flush()
	}
	r := &c.run
	r.slots = append(r.slots, cmd)
	r.reqs = append(r.reqs, req)
	r.outcomes += outcomes
	if r.work += workOf(cmd.request); len(r.reqs) > 1 {
		r.work += commandBytes
	}
}

// outcomesOf returns how many outcomes a request can have.
func outcomesOf(m proto.Message) (n int64) {
	switch m := m.(type) {
	case *kujiv1.DrawRequest:
		return asked(m.GetCount())
	case *kujiv1.RedeemRequest:
		return kuji.MaxRedeemTimes
	case *kujiv1.AtomicRequest:
		for _, one := range m.GetMembers() {
			n += drawn(one.GetDraw())
		}
	}
	return n
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
		slot := &r.slots[i]
		end, err, before := ended{cmd: slot.cmd, request: slot.request, size: slot.size}, slot.err, c.written()
		if err == nil {
			if err = failed; err == nil {
				var res *kujiv1.Result
				if res, err = r.result(next); err == nil {
					writeResult(c, slot.request, res)
					end.status = res.GetStatus()
				}
			}
			next++
		}
		if err != nil {
			end.failed = c.refuse(err, slot.request)
		}
		end.answered = c.written() - before
		c.count(end)
		if c.isMuch() { // a client that takes none makes the server hold no more
			c.transmit()
		}
	}
	c.run = run{slots: r.slots, reqs: r.reqs, results: r.results}
	c.run.clear()
}

// result returns how a request of the run ended, or why it was refused.
func (r *run) result(i int) (*kujiv1.Result, error) {
	switch res := &r.results[i]; {
	case r.answers != nil && r.answers[i] != nil:
		return r.answers[i], nil
	case res.Status == kuji.Refused:
		return nil, res.Err
	default:
		return resultProto(res), nil
	}
}

// writeResult writes how a command that was carried out ended.
func writeResult(c *redisConn, request proto.Message, res *kujiv1.Result) {
	if _, group := request.(*kujiv1.AtomicRequest); group {
		writeGroup(c, res)
		return
	}
	c.write(res)
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
	if cap(r.results) < len(r.reqs) {
		r.results = make([]kuji.Result, len(r.reqs))
	}
	r.results = r.results[:len(r.reqs)]
	return awayOf(c).answer(c.ctx, func() error {
		realm, err := c.s.realms.get(c.s.engine, c.realm)
		if err != nil {
			return err
		}
		err = c.s.doAll(c.ctx, c.entered, realm, r.reqs, r.results)
		if err == nil {
			c.s.metrics.all(r.results)
		}
		return err
	}, func(rewards kujiv1connect.RewardServiceClient) (err error) {
		return r.ask(c.ctx, rewards, c.realm)
	})
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
	kujiv1.Reason_REASON_FORMAT:          "FORMAT",
	kujiv1.Reason_REASON_OVERLOADED:      "OVERLOADED",
	kujiv1.Reason_REASON_UNKNOWN_OUTCOME: "UNKNOWN",
	kujiv1.Reason_REASON_FAILED:          "FAILED",
	kujiv1.Reason_REASON_CLOSED:          "CLOSED",
	kujiv1.Reason_REASON_CORRUPT:         "CORRUPT",
	kujiv1.Reason_REASON_CANCELED:        "CANCELED",
	kujiv1.Reason_REASON_UNAUTHENTICATED: "NOAUTH",
	kujiv1.Reason_REASON_FORBIDDEN:       "NOPERM",
	kujiv1.Reason_REASON_INTERNAL:        "INTERNAL",
	kujiv1.Reason_REASON_HISTORY:         "HISTORY",
}

// refuse writes the error of a command, and returns it as that of the API.
func (c *redisConn) refuse(err error, request proto.Message) *connect.Error {
	if re, ok := errors.AsType[*redisError](err); ok {
		c.fail(re.kind, re.text)
		return connect.NewError(re.code, cmp.Or(re.err, errors.New(re.text)))
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
	return ce
}

// ended says how a command ended.
type ended struct {
	cmd      *redisCommand // nil: there is no such command
	request  proto.Message // nil: it is about the connection, or was refused before
	size     int           // of the command in bytes
	answered int64         // bytes
	status   kujiv1.Status // of its result; 0: it has none
	failed   *connect.Error
}

// count counts and logs a command, as ServeHTTP does with a call.
func (c *redisConn) count(e ended) {
	s := c.s
	took := time.Since(c.arrived)
	method, label := noRedis, "ok"
	if e.failed != nil {
		label = codeLabel(e.failed.Code())
	}
	if e.cmd != nil {
		method = e.cmd.method
		e.cmd.metrics.done(label, took)
	} else {
		s.metrics.unrouted.done(label, 0)
	}
	if s.o.AccessLog == nil && e.failed == nil && !s.isSlow(took) {
		return
	}
	one := &call{method: method, access: passerby, peer: c.peer, start: c.arrived, took: took, reached: true, logged: logged{realm: c.realm, received: int64(e.size)}}
	if c.access != nil {
		one.access, one.key = c.access, c.access.name
	}
	if e.failed != nil {
		one.failed, one.code = e.failed, e.failed.Code()
	}
	if e.status != 0 {
		one.status = contract.Word(e.status)
	}
	s.logCall(one)
	if s.o.AccessLog != nil {
		s.o.AccessLog.call(one, 0, e.answered)
	}
}
