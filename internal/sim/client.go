package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji"
)

// client is a player's device or a game server. It asks, waits, loses patience, asks again under
// the same id, and repeats old requests much later.
type client struct {
	number int
	game   *game
	rng    *rand.Rand
	left   int // requests to make
	// gambles: most of its requests are about rounds. In a run, that is so of all clients or of none.
	gambles bool
	calls   []*call
	now     *call // waiting for its answer; nil: idle
}

// call is one request of a client, no matter how often it is sent.
type call struct {
	client    *client
	req       kuji.Request
	id        string // empty: sent once, and not again if its outcome is unknown
	malformed bool
	reused    bool // another request may have the same id
	answered  bool
	sent      int
	since     int // how many catalogs were applied when it was first sent
}

type message struct {
	call *call
	res  kuji.Result
	err  error
}

// ack is a result that the engine returned.
type ack struct {
	call  *call  // nil for what an administrator did
	kind  string // of that
	res   kuji.Result
	life  int
	lossy bool // under a relaxed policy
}

// refusal is a request that was refused because another one had its id.
type refusal struct {
	call  *call
	lossy bool
}

func newClient(cfg Config, number int, g *game) *client {
	c := &client{number: number, game: g, rng: stream(cfg.Seed, 1000+uint64(number)), left: cfg.Requests, gambles: cfg.Seed%4 == 0}
	if c.gambles && cfg.Requests > 4 {
		c.left += 12
	}
	return c
}

// todo counts what a client still has to do.
func (c *client) todo() int {
	if c.now != nil {
		return c.left + 1
	}
	return c.left
}

// act makes a client do its next thing.
func (c *client) act(w *world) {
	switch {
	case c.now != nil:
		if c.now.sent == 0 || w.network.IntN(4) == 0 {
			w.send(c.now)
		}
	case c.left > 0:
		c.left--
		c.now = c.next(w)
		w.send(c.now)
		if c.now != nil && c.now.id != "" && c.rng.IntN(10) == 0 {
			w.send(c.twin()) // at the same time, with the same id
		}
	case len(c.calls) > 0 && c.rng.IntN(8) == 0:
		w.send(c.calls[c.rng.IntN(len(c.calls))]) // much later
	}
}

// next makes the client's next request.
func (c *client) next(w *world) *call {
	k := &call{client: c, req: makeRequest(c.rng)}
	if c.gambles && c.rng.IntN(4) > 0 {
		k.req = aimed(c.rng, roundRequest(c.rng, players[c.rng.IntN(len(players))]), c.game.round)
	}
	n := len(c.calls)
	switch x := c.rng.IntN(40); {
	case x == 0:
		k.req, k.malformed = kuji.Draw{Player: "ann", Pool: "box", Count: -1}, true
	case x == 1 && n > 0: // one of its own ids, for another request
		k.id, k.reused = c.calls[c.rng.IntN(n)].id, true
	case x < 5: // an id that others use too, for the same or another request
		k.id, k.reused = w.newID(fmt.Sprintf("shared-%d", c.rng.IntN(4)), epoch), true
	case x < 8:
	default:
		k.id = w.newID(fmt.Sprintf("c%d-%d", c.number, n), w.clock+c.skew())
	}
	k.req = withID(k.req, k.id)
	c.calls = append(c.calls, k)
	return k
}

// skew returns how wrong the client's clock is now, in milliseconds.
func (c *client) skew() int64 {
	switch c.rng.IntN(8) {
	case 0:
		return c.rng.Int64N(2*60_000) - 60_000
	case 1:
		return c.rng.Int64N(2*3*3_600_000) - 3*3_600_000
	}
	return 0
}

// twin makes another request with the id of the one that the client waits for. Nobody waits for
// its answer.
func (c *client) twin() *call {
	k := &call{client: c, id: c.now.id, req: withID(makeRequest(c.rng), c.now.id), reused: true, answered: true}
	c.calls = append(c.calls, k)
	return k
}

// send puts a call on the network.
func (w *world) send(c *call) {
	copies := 1
	if w.cfg.Faults&Network != 0 && c.id != "" {
		switch w.network.IntN(10) {
		case 0:
			copies = 0
			w.fired(Network)
		case 1:
			copies = 2
			w.fired(Network)
		}
	}
	if c.id == "" && c.sent > 0 {
		c.client.now = nil // without an id, a client may not ask twice
		return
	}
	c.sent++
	w.note("client %d sends %T %q, %d copies", c.client.number, c.req, c.id, copies)
	for range copies {
		w.inbox = append(w.inbox, message{call: c})
	}
}

// take removes a message from a queue: the oldest, or any if the network does not keep the order.
func (w *world) take(queue *[]message) message {
	i := 0
	if w.cfg.Faults&Network != 0 {
		i = w.network.IntN(len(*queue))
	}
	m := (*queue)[i]
	*queue = append((*queue)[:i], (*queue)[i+1:]...)
	return m
}

// deliver brings a message to the engine.
func (l *life) deliver() {
	w := l.w
	if len(w.inbox) == 0 || !l.up() {
		return
	}
	c := w.take(&w.inbox).call
	w.note("deliver %q of client %d", c.id, c.client.number)
	s := l.of(c.client)
	if s.realm == nil {
		return // the realm is not open: nobody answers
	}
	if c.sent <= 1 {
		c.since = s.applied
	}
	if w.schedule.IntN(10) == 0 && !l.within {
		all, err := s.realm.DoAll(context.Background(), []kuji.Request{c.req, c.req})
		if err != nil {
			s.reply(c, kuji.Result{}, err)
			return
		}
		for _, res := range all {
			s.reply(c, res, res.Err)
		}
		return
	}
	told := false
	l.waiting++
	s.realm.Submit(c.req, func(res kuji.Result, err error) {
		if told {
			w.fail("the outcome of %q was told twice", c.id)
		}
		told = true
		l.waiting--
		s.reply(c, res, err)
	})
}

// reply records what the engine returns and sends it to the client.
func (s *session) reply(c *call, res kuji.Result, err error) {
	w := s.w
	w.note("told %q: %v %v %v", c.id, res, res.Outcomes, kuji.CodeOf(err))
	if err != nil {
		s.told(err, c)
	} else {
		if c.malformed {
			w.fail("a malformed request was carried out: %v", res)
		}
		if s.poisoned && !res.Replayed { // a durable answer is returned again even then, and must survive
			w.fail("%q was answered %v after the realm had stopped", c.id, res)
		}
		if res.Receipt.Realm != s.name {
			w.fail("%q was answered by %s, and sent to %s", c.id, res.Receipt.Realm, s.name)
		}
		if latest := s.clock.latest(w); !res.Replayed && res.Receipt.Time > latest {
			w.fail("%q is stamped %d; the clock leads to %d at most", c.id, res.Receipt.Time, latest)
		}
		s.mustSurvive(res.Receipt.Position)
		if of := res.Round(); of != nil {
			s.round = of.Number
		}
		w.report.Acked++
		if res.Replayed {
			w.report.Replayed++
		}
		s.acks = append(s.acks, ack{call: c, res: res, life: s.l.number, lossy: s.l.policy != kuji.SyncAlways})
	}
	if w.cfg.Faults&Network != 0 && w.network.IntN(8) == 0 && c.id != "" {
		return // lost
	}
	w.outbox = append(w.outbox, message{call: c, res: res, err: err})
}

// answer brings a message to its client.
func (w *world) answer() {
	if len(w.outbox) == 0 {
		return
	}
	m := w.take(&w.outbox)
	c := m.call
	code := kuji.CodeOf(m.err)
	w.note("client %d hears of %q: %v", c.client.number, c.id, code)
	known := m.err == nil || code == kuji.CodeInvalid || code == kuji.CodeIDReused || code == kuji.CodeTooOld
	// The next catalog may have what is not there now, so the id stays usable.
	known = known || code == kuji.CodeNotFound && w.network.IntN(2) == 0
	full := code == kuji.CodeOverloaded && w.network.IntN(8) == 0 // it has asked often enough: it gives up for now
	if !known && c.id != "" && !full {
		return // it will ask again
	}
	c.answered = c.answered || known || full
	if c.client.now == c {
		c.client.now = nil
	}
}

// read is a view that was shown, and what was acknowledged at that time.
type read struct {
	position uint64
	player   string
	pool     string
	seen     bool // false: not found
	holds    kuji.PlayerView
	stocks   kuji.PoolView
	codes    *codesRead
	ranks    *ranksRead
	open     bool // rounds are those that are open
	rounds   []kuji.RoundView
}

// read looks at a player or a pool, without waiting.
func (s *session) read() {
	w := s.w
	if s.realm == nil {
		return
	}
	if w.schedule.IntN(6) == 0 {
		s.readCodes()
		return
	}
	if w.schedule.IntN(4) == 0 {
		s.readRanks()
		return
	}
	if w.schedule.IntN(6) == 0 {
		readRounds(s)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	rd := read{position: s.realm.Stats().Position}
	var err error
	if w.schedule.IntN(2) == 0 {
		rd.player = players[w.schedule.IntN(len(players))]
		rd.holds, err = s.realm.Player(ctx, rd.player)
		w.note("player %s: %v at %d, %v", rd.player, rd.holds.Items, rd.holds.Position, kuji.CodeOf(err))
	} else {
		rd.pool = []string{"open", "box", "paid", "chain"}[w.schedule.IntN(4)]
		rd.stocks, err = s.realm.Pool(ctx, rd.pool)
		w.note("pool %s: %v at %d, %v", rd.pool, rd.stocks.Entries, rd.stocks.Position, kuji.CodeOf(err))
	}
	rd.seen = err == nil
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeCanceled && errors.Is(err, context.Canceled):
		return
	case code == kuji.CodeFailed && s.excused():
		s.poisoned = true
		return
	case err != nil && code != kuji.CodeNotFound:
		w.fail("a read failed without a cause: %w", err)
	}
	if max(rd.holds.Position, rd.stocks.Position) > rd.position {
		w.fail("a read shows position %d, only %d is durable", max(rd.holds.Position, rd.stocks.Position), rd.position)
	}
	s.mustSurvive(rd.position)
	w.report.Reads++
	s.reads = append(s.reads, rd)
}
