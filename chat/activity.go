package chat

import (
	"context"
	"strings"
	"sync"

	"github.com/kuji-dev/kuji"
)

// Players are found by what messages say of them, and what they did since the last report is gathered:
//
//	seen      finds the player of a message that starts something
//	count     gathers that there was this message, or that the player must be registered
//	visit     is both, for a message that starts nothing
//	flush     takes what is gathered, and sends it in as few batches as it fits into
//
// A report has no request id. If it is not known whether it was carried out, it is not sent again: nothing is counted
// twice. If it was not, it is gathered again.

// player is somebody who writes.
type player struct {
	id         string
	name       string // as first shown
	registered bool   // as far as is known
	pending    uint64 // messages that were not reported
	gathered   bool   // it is among those who have something to report
}

type userKey struct{ platform, user string }

// activity is who is there.
type activity struct {
	realm Realm
	event string // empty: none is reported
	most  int    // of gathered

	mu       sync.Mutex // over all below, and over players
	known    memory[userKey, *player]
	gathered []*player
	lost     uint64
	err      error // of the last flush; nil: it succeeded

	flushing sync.Mutex // one flush at a time
	taken    []taken
	reqs     []kuji.Request
}

// taken is what a flush reports of a player.
type taken struct {
	player    *player
	registers bool
	count     uint64
}

// seen returns the player of a message.
func (a *activity) seen(m *Message) *player {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(m)
}

// visit gathers a message. It returns its player, and whether as much is gathered as there is room for.
func (a *activity) visit(m *Message) (p *player, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p = a.find(m)
	return p, a.gather(p)
}

// find returns the player of a message. The caller holds mu.
func (a *activity) find(m *Message) *player {
	if p, ok := a.known.get(userKey{m.Platform, m.User}); ok {
		return p
	}
	id := m.Platform + ":" + m.User
	n := len(m.Platform)
	p := &player{id: id, name: cut(strings.ToValidUTF8(m.Name, "\ufffd"), kuji.MaxMetadata)}
	a.known.put(userKey{id[:n], id[n+1:]}, p)
	return p
}

// isRegistered reports whether a player is known to be registered.
func (a *activity) isRegistered(p *player) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p.registered
}

// register notes that players are registered.
func (a *activity) register(p *player) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.registered = true
}

// count gathers a message of a player who was seen.
func (a *activity) count(p *player) (full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gather(p)
}

// gather adds a message of a player, or that the player must be registered. The caller holds mu.
func (a *activity) gather(p *player) (full bool) {
	if a.event != "" {
		p.pending++
	}
	if !p.gathered && (p.pending > 0 || !p.registered) {
		p.gathered = true
		a.gathered = append(a.gathered, p)
	}
	return len(a.gathered) >= a.most
}

// flush reports what is gathered. Its error is the first of what was not reported.
func (a *activity) flush(ctx context.Context) error {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	a.take()
	var failed error
	for from := 0; from < len(a.taken); {
		n, err := a.report(ctx, from)
		if failed == nil {
			failed = err
		}
		from += n
	}
	clear(a.taken)
	a.taken = a.taken[:0]
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = failed
	return failed
}

// take takes what is gathered.
func (a *activity) take() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = a.taken[:0]
	for i, p := range a.gathered {
		a.taken = append(a.taken, taken{p, !p.registered, p.pending})
		p.pending, p.gathered = 0, false
		a.gathered[i] = nil
	}
	a.gathered = a.gathered[:0]
}

// report sends what was taken from one player on, as far as it fits into a batch, and returns for how many it did.
func (a *activity) report(ctx context.Context, from int) (n int, err error) {
	a.reqs = a.reqs[:0]
	for _, t := range a.taken[from:] {
		if len(a.reqs)+2 > kuji.MaxBatch {
			break
		}
		if t.registers {
			a.reqs = append(a.reqs, registration(t.player))
		}
		if t.count > 0 {
			a.reqs = append(a.reqs, kuji.Progress{Player: t.player.id, Event: a.event, N: t.count})
		}
		n++
	}
	var refused error
	results, err := a.realm.DoAll(ctx, a.reqs)
	clear(a.reqs)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.taken[from : from+n] {
		if err != nil {
			a.unreported(t, kuji.CodeOf(err) == kuji.CodeUnknownOutcome)
			continue
		}
		if t.registers {
			t.player.registered = results[0].Err == nil
			refused, results = first(refused, results[0].Err), results[1:]
		}
		if t.count > 0 {
			if results[0].Status != kuji.OK {
				a.lost += t.count
			}
			refused, results = first(refused, results[0].Err), results[1:]
		}
	}
	return n, first(err, refused)
}

// unreported gathers again what was not reported, unless it may have been, or there is no room.
func (a *activity) unreported(t taken, unknown bool) {
	p := t.player
	switch {
	case unknown:
		a.lost += t.count
	case p.gathered:
		p.pending += t.count
	case len(a.gathered) < a.most:
		p.pending, p.gathered = p.pending+t.count, true
		a.gathered = append(a.gathered, p)
	default:
		a.lost += t.count
	}
}

// registration is the request that registers a player.
func registration(p *player) kuji.Request {
	return kuji.Register{Player: p.id, Note: kuji.Note{Metadata: p.name}}
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
