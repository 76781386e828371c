package redis

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// answersAtOnce is how many bytes of answers may wait. More are sent before the pipeline ends.
const answersAtOnce = 64 << 10

// pipeline is what is under way of the commands that arrived together on a connection.
type pipeline struct {
	arrived  time.Time
	until    time.Time      // until when the client must take the answers; zero: none was sent yet
	size     int            // in bytes
	larger   int            // bytes of the largest Atomic so far: see enter
	entered  *access.Access // with which the engine was asked; nil: not yet
	refusal  error          // why the engine is asked for nothing more of the pipeline
	turn     bool           // it has one of Gate.Bulk
	commands int            // asked of the engine
	work     int64          // taken from Gate.Work for answers that were not sent
	counted  int64          // bytes of answers to commands that were counted
	run      run
}

// run is commands in a row that become one batch.
type run struct {
	slots    []slot
	commands []Command // those of the slots that were not refused
	answers  []Answer
	outcomes int64
	work     int64
}

// slot is a command that came. In a run, each slot without err stands for the next of commands.
type slot struct {
	cmd  *command // nil: there is no such command
	size int      // in bytes
	err  error
}

// answer carries out the whole commands and sends the answers.
func (c *conn) answer() {
	c.arrived, c.size = time.Now(), c.scanned-c.from
	for c.whole > 0 && !c.leaving && c.link.failed == nil {
		words, n, err := ParseCommand(c.buf[c.from:c.scanned], c.size, c.words)
		if err != nil { // scan has read it before
			panic(err)
		}
		c.from += n
		c.whole--
		if len(words) == 0 { // as Redis, no answer. It is a try: no client sends it
			c.count(slot{size: n}, 0, nil)
			c.tried()
			continue
		}
		c.handle(words, n)
		if c.isMuch() {
			c.transmit()
		}
	}
	c.flush()
	if c.broken != nil && !c.leaving {
		c.reject(slot{size: c.to - c.from, err: c.broken})
		c.leaving = true
	}
	if c.entered == nil {
		c.s.Gate.Conns.Touch(c.link.place)
	}
	c.send()
	c.exit()
	c.until = time.Time{}
}

// enter takes, once, what a pipeline needs before the engine is asked: a part of its key's rate, a
// busy connection, memory and a call. A large one takes turns, as a Batch does.
func (c *conn) enter() error {
	if c.entered == nil && c.refusal == nil {
		c.refusal = c.tryEnter()
	}
	if c.refusal == nil && max(c.size, c.larger) > c.s.Limits.RequestBytes {
		c.refusal = c.takeTurn()
	}
	return c.refusal
}

func (c *conn) tryEnter() error {
	if c.client.Access == nil {
		return errNoAuth
	}
	if !c.client.Renew() {
		c.client.Access = nil
		return errNoLongerValid
	}
	g, who := c.s.Gate, c.client.Access
	if refusal := g.Enter(c.link.place, who); refusal != nil {
		return refusal
	}
	if refusal := g.Calls.Take(who.Who, 1); refusal != nil {
		g.Leave(c.link.place, who.Who)
		return refusal
	}
	c.entered = who
	return nil
}

// takeTurn waits for a large pipeline's turn. It sends answers first: they give their memory back.
func (c *conn) takeTurn() error {
	if c.turn {
		return nil
	}
	c.flush()
	c.send()
	if err := c.s.Gate.Bulk.Wait(c.link.ctx, c.entered.Who, 1); err != nil {
		return err
	}
	c.turn = true
	return nil
}

// exit gives back what enter has taken.
func (c *conn) exit() {
	if a := c.entered; a != nil {
		c.s.Gate.Rates.Owe(a, c.commands-1)
		if c.turn {
			c.s.Gate.Bulk.Give(a.Who, 1)
		}
		c.s.Gate.Calls.Give(a.Who, 1)
		c.s.Gate.Leave(c.link.place, a.Who)
		c.s.Gate.GiveWork(a.Who, c.work)
	}
	c.work = 0
	c.entered, c.refusal, c.turn, c.commands, c.larger = nil, nil, false, 0, 0
}

// ask adds a command to the run, with which the engine is asked, if the client may send it.
func (c *conn) ask(a *arguments, one Command) error {
	if err := c.enter(); err != nil {
		return err
	}
	c.commands += message.Commands(one.Message)
	if err := c.entered.PermitCommand(c.realm, one.ID, one.Message); err != nil {
		return err
	}
	c.add(a.slot, one)
	return nil
}

// look answers a read at once, after the run that came before it.
func (c *conn) look(a *arguments, request proto.Message) error {
	if err := c.enter(); err != nil {
		return err
	}
	c.commands++
	if err := c.entered.Permit(request); err != nil {
		return err
	}
	c.flush()
	if _, ok := request.(*kujiv1.GetOddsRequest); ok {
		c.send() // a caller that waits for a turn holds no memory of Gate.Work
		if err := c.s.Gate.Odds.Wait(c.link.ctx, c.entered.Who, 1); err != nil {
			return err
		}
		defer c.s.Gate.Odds.Give(c.entered.Who, 1)
	}
	if err := c.takeWork(message.Work(request)); err != nil {
		return err
	}
	answer, err := c.s.Backend.Read(c.link.ctx, &c.client, c.realm, request)
	if err != nil {
		return err
	}
	c.write(answer)
	c.count(a.slot, 0, nil)
	return nil
}

// takeWork takes memory for answers. It sends earlier ones first, so that they hold none.
func (c *conn) takeWork(n int64) (err error) {
	if c.work > 0 {
		c.send()
	}
	c.work, err = c.s.Gate.TakeWork(c.link.ctx, c.entered.Who, n)
	return err
}

// write writes a message.
func (c *conn) write(m proto.Message) {
	contract.Form{Stacks: true}.Write(&c.resp, m.ProtoReflect())
}

// add adds a command to the run.
func (c *conn) add(s slot, one Command) {
	outcomes := message.Outcomes(one.Message)
	if len(c.run.commands) == kuji.MaxBatch || c.run.outcomes+outcomes > contract.MaxBatchOutcomes {
		c.flush()
	}
	r := &c.run
	r.slots = append(r.slots, s)
	r.commands = append(r.commands, one)
	r.outcomes += outcomes
	if r.work += message.Work(one.Message); len(r.commands) > 1 {
		r.work += message.CommandBytes
	}
}

// flush carries out the run and answers it.
func (c *conn) flush() {
	r := &c.run
	if len(r.slots) == 0 {
		return
	}
	failed := c.runAll()
	next := 0
	for _, s := range r.slots {
		if s.err != nil { // nothing was asked of the engine
			c.count(s, 0, c.refuse(s.err, nil))
		} else {
			one, answer := r.commands[next], Answer{Err: failed}
			if failed == nil {
				answer = r.answers[next]
			}
			if answer.Err != nil {
				c.count(s, 0, c.refuse(answer.Err, one))
			} else {
				c.count(s, c.writeResult(one, answer.Result), nil)
			}
			next++
		}
		if c.isMuch() { // a client that reads no answers must not make them pile up here
			c.transmit()
		}
	}
	r.clear()
}

// writeResult writes how a command ended: of EXEC, each member's result, with the group's receipt and its part of a hold.
func (c *conn) writeResult(one Command, res *kujiv1.Result) kujiv1.Status {
	if _, atomic := one.Message.(*kujiv1.Atomic); !atomic {
		c.write(res)
		return res.GetStatus()
	}
	c.List(len(res.GetMembers()))
	for i, m := range res.GetMembers() {
		m.Receipt, m.Replayed = res.GetReceipt(), res.GetReplayed()
		if h := res.GetHold(); h != nil && i < len(h.GetParts()) {
			m.Hold = &kujiv1.Hold{Hold: h.GetHold(), State: h.GetState(), Refund: h.GetRefund(), AskedUnixMs: h.GetAskedUnixMs(), UntilUnixMs: h.GetUntilUnixMs(),
				Parts: h.GetParts()[i : i+1]}
		}
		c.write(m)
	}
	return res.GetStatus()
}

// runAll carries out the commands of the run. The error is that of all.
func (c *conn) runAll() error {
	r := &c.run
	if len(r.commands) == 0 {
		return nil
	}
	if err := c.takeWork(r.work); err != nil {
		return err
	}
	if cap(r.answers) < len(r.commands) {
		r.answers = make([]Answer, len(r.commands))
	}
	r.answers = r.answers[:len(r.commands)]
	client := c.client
	client.Access = c.entered
	return c.s.Backend.Do(c.link.ctx, &client, c.realm, r.commands, r.answers)
}

// keptRun is the longest run whose memory a connection keeps for the next run.
const keptRun = 16

// clear empties the run.
func (r *run) clear() {
	if cap(r.slots) > keptRun {
		*r = run{}
		return
	}
	clear(r.slots)
	clear(r.commands)
	clear(r.answers)
	*r = run{slots: r.slots[:0], commands: r.commands[:0], answers: r.answers[:0]}
}

// Kind returns the first word of an error: its reason in capitals, but for three that are shorter.
func Kind(reason kujiv1.Reason) string {
	switch reason {
	case kujiv1.Reason_REASON_UNAUTHENTICATED:
		return "NOAUTH"
	case kujiv1.Reason_REASON_FORBIDDEN:
		return "NOPERM"
	case kujiv1.Reason_REASON_UNKNOWN_OUTCOME:
		return "UNKNOWN"
	case kujiv1.Reason_REASON_UNSPECIFIED:
		reason = kujiv1.Reason_REASON_INTERNAL
	}
	return strings.ToUpper(strings.ReplaceAll(contract.Word(reason), "_", ""))
}

// refuse writes the error of a command, and returns the API's form of it.
func (c *conn) refuse(err error, about any) *connect.Error {
	if named, ok := errors.AsType[*namedError](err); ok {
		c.fail(named.kind, named.text)
		return connect.NewError(named.code, cmp.Or(named.err, errors.New(named.text)))
	}
	ce := c.s.Backend.Error(err, about)
	var reason kujiv1.Reason
	for _, d := range ce.Details() {
		if v, err := d.Value(); err == nil {
			if detail, ok := v.(*kujiv1.ErrorDetail); ok {
				reason = detail.GetReason()
			}
		}
	}
	c.fail(Kind(reason), ce.Message())
	return ce
}

// count counts and logs a command whose answer, with a status or an error, was just written.
func (c *conn) count(s slot, status kujiv1.Status, failed *connect.Error) {
	e := Ended{Realm: c.realm, Arrived: c.arrived, Size: s.size, Answered: c.written() - c.counted, Status: status, Failed: failed}
	if s.cmd != nil {
		e.Command = s.cmd.name
	}
	c.counted = c.written()
	c.s.Backend.Ended(&c.client, &e)
}
