package chat

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
)

// Handler handles messages. All methods may be called concurrently.
type Handler struct {
	config    Config
	realm     Realm
	finder    *finder
	triggers  []trigger
	cooldowns *cooldowns
	activity  *activity

	stop   context.CancelFunc // ends the flusher
	closed sync.Once
	done   chan struct{} // the flusher has ended
	err    error         // of Close
}

// New returns a handler that sends commands to a realm. It reports activity from a goroutine of its own until Close.
// An error is a *kuji.Error with CodeInvalid, whose Field is the path of what is wrong in the YAML that [Parse] reads.
// Whether the catalog has what the actions name is not checked: it can change.
func New(realm Realm, config Config) (*Handler, error) {
	config.defaults()
	f := &faults{}
	triggers := config.check(f)
	if len(f.list) > 0 {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: f.list[0].Path, Message: f.list[0].Message}
	}
	find, err := newFinder(config.Triggers)
	if err != nil {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: "triggers", Message: "the phrases cannot be compiled", Err: err}
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &Handler{
		config: config, realm: realm, finder: find, triggers: triggers,
		cooldowns: newCooldowns(len(triggers), config.Cooldowns),
		activity: &activity{realm: realm, event: config.Activity, most: config.Gathered,
			known: newMemory[userKey, *player](config.Players)},
		stop: stop, done: make(chan struct{}),
	}
	go h.run(ctx)
	return h, nil
}

// run reports what is gathered again and again, until the context ends.
func (h *Handler) run(ctx context.Context) {
	defer close(h.done)
	ticker := time.NewTicker(h.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = h.activity.flush(context.Background()) // Stats has its error, and Close waits for it
		case <-ctx.Done():
			return
		}
	}
}

// Flush reports what is gathered now. Its error says what was not reported. What was certainly not, is gathered again.
func (h *Handler) Flush(ctx context.Context) error { return h.activity.flush(ctx) }

// Close reports what is gathered, and returns the error of that. Messages must not be handled any more.
func (h *Handler) Close() error {
	h.closed.Do(func() {
		h.stop()
		<-h.done
		h.err = h.activity.flush(context.Background())
	})
	return h.err
}

// MostOutcomes returns how many outcomes of draws, and tiers of quests, one message can have at most. A claim that does
// not say how many tiers counts as 100.
func (h *Handler) MostOutcomes() int {
	all := make([]int, len(h.triggers))
	for i := range h.triggers {
		for k := range h.triggers[i].do {
			all[i] += h.triggers[i].do[k].outcomes(h.triggers[i].words)
		}
	}
	slices.Sort(all)
	most := 0
	for _, n := range all[max(0, len(all)-h.config.Most):] {
		most += n
	}
	return most
}

// Stats are what a handler knows of itself.
type Stats struct {
	Gathered int    // players whose activity is not reported yet
	Lost     uint64 // messages whose activity was not reported, or may not have been
	Err      error  // of the last report; nil: it succeeded
}

// Stats returns what the handler knows of itself.
func (h *Handler) Stats() Stats {
	a := h.activity
	a.mu.Lock()
	defer a.mu.Unlock()
	return Stats{len(a.gathered), a.lost, a.err}
}

// Handle finds who wrote a message and what it starts, and carries that out as one batch: the first time, the player is
// registered; then come the actions of triggers, by priority. That there was a message is reported later.
//
// The same message again, by its platform and id, gets the first results again, for as long as the realm remembers
// request ids. Errors are *kuji.Error. With CodeInvalid the message is malformed. All others are those of Realm.DoAll:
// the same message can be handled again, and is carried out once.
func (h *Handler) Handle(ctx context.Context, m Message) (Reply, error) {
	if err := m.check(); err != nil {
		return Reply{}, err
	}
	if h.config.TimeOrdered && (m.At.Before(firstTime) || m.At.After(lastTime)) {
		return Reply{}, invalid("at", "%v; want the time at which the message was sent, as request ids carry it", m.At)
	}
	s := h.finder.memory.Get().(*search)
	defer h.finder.memory.Put(s)
	var reply Reply
	var p *player
	var full bool
	if found := h.finder.find(s, cut(m.Text, MaxText)); len(found) == 0 {
		p, full = h.activity.visit(&m)
	} else {
		var err error
		p = h.activity.seen(&m)
		if reply.Found, err = h.start(ctx, &m, p, s, found[:min(len(found), h.config.Most)]); err != nil {
			return Reply{}, err
		}
		full = h.activity.count(p)
	}
	if full {
		_ = h.activity.flush(ctx) // Stats has it; what was not reported is gathered again
	}
	reply.Player = p.id
	return reply, nil
}

// start carries out what was found.
func (h *Handler) start(ctx context.Context, m *Message, p *player, s *search, found []match) ([]Found, error) {
	all := make([]Found, len(found))
	var reqs []kuji.Request
	if !h.activity.isRegistered(p) {
		reqs = append(reqs, registration(p))
	}
	registers := len(reqs)
	at := m.At
	if at.IsZero() {
		at = h.config.Now()
	}
	key := keyOf(m)
	for i, hit := range found {
		t := &h.triggers[hit.trigger]
		f := &all[i]
		f.Trigger, f.Phrase = t.ID, h.finder.phrases[hit.phrase].text
		c := call{player: p.id, user: m.User, platform: m.Platform}
		if f.Word = t.read(&c, s.after(hit)); f.Word != "" {
			f.State = Unclear
			continue
		}
		if f.Ready = h.cooldowns.start(hit.trigger, t.Cooldown, p.id, key, at); !f.Ready.IsZero() {
			f.State = Cooling
			continue
		}
		for n := range t.do {
			reqs = append(reqs, t.do[n].request(h.requestID(m, t.ID, n), &c))
		}
	}
	if len(reqs) == registers {
		return all, nil // the player is registered with the next report
	}
	results, err := h.realm.DoAll(ctx, reqs)
	if err != nil {
		return nil, err
	}
	if registers > 0 && results[0].Err == nil {
		h.activity.register(p)
	}
	results = results[registers:]
	for i, hit := range found {
		if n := len(h.triggers[hit.trigger].do); all[i].State == Started {
			all[i].Results, results = results[:n:n], results[n:]
		}
	}
	return all, nil
}

// read reads the words after a phrase. It returns the name of one that is missing or cannot stand there, or nothing.
func (t *trigger) read(c *call, rest []byte) (unclear string) {
	if len(t.words) == 0 {
		return ""
	}
	texts := strings.Fields(string(rest))
	for i := range t.words {
		w := &t.words[i]
		written := w.Else
		if i < len(texts) {
			written = texts[i]
		}
		v, ok := w.read([]byte(written))
		if !ok {
			return w.Name
		}
		c.args = append(c.args, v)
	}
	return ""
}
