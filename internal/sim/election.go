package sim

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/internal/election"
)

// Nodes of a cluster say on a board who leads which realm. Package election decides; here whole clusters of
// it run. Messages to and from the board get lost, arrive late, or twice, and answers get lost after the
// board was written. Nodes pause, are cut off, die and start again. Their clocks run at different rates,
// and jump. Realms take time to open, lead and close, and may fail to.
//
// At every moment, at most one node holds a realm's lease and leads it. A board never says that two nodes
// lead a realm. A node that is drained or stops takes nothing. After the faults, each realm comes to the
// node that should lead it, a node whose clock is off leads nothing, and a node that stops hands over
// before its lease ends.

// electorate is one such run.
type electorate struct {
	rng    *rand.Rand
	now    time.Duration // since the run began, as nobody in it knows it
	queue  happenings
	count  int // of what has been queued
	voters []*voter
	realms []string
	epochs map[string]uint64 // how many epochs each realm's log has
	calm   bool              // the faults have ended
	tail   []string
	trace  uint64

	board struct {
		data    []byte
		version int
	}
	Election ElectionReport
}

// ElectionReport counts what runs did.
type ElectionReport struct {
	Looks, Leads, Closes, Lost, Late, Double, Unanswered, Conflicts, Silent, Kills, Cuts, Pauses, Jumps, Drains, Handovers, Deposed int

	Trace uint64 // of everything that happened
}

// Add sums up runs.
func (r *ElectionReport) Add(o ElectionReport) {
	r.Looks += o.Looks
	r.Leads += o.Leads
	r.Closes += o.Closes
	r.Lost += o.Lost
	r.Late += o.Late
	r.Double += o.Double
	r.Unanswered += o.Unanswered
	r.Conflicts += o.Conflicts
	r.Silent += o.Silent
	r.Kills += o.Kills
	r.Cuts += o.Cuts
	r.Pauses += o.Pauses
	r.Jumps += o.Jumps
	r.Drains += o.Drains
	r.Handovers += o.Handovers
	r.Deposed += o.Deposed
}

// happening is something that happens at a time: to a node in one of its lives, or to nobody.
type happening struct {
	at     time.Duration
	number int
	to     *voter
	life   int
	do     func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// after queues something that happens to a node, or to nobody, in a while.
func (e *electorate) after(d time.Duration, to *voter, do func()) {
	h := happening{at: e.now + d, number: e.count, to: to, do: do}
	if to != nil {
		h.life = to.life
	}
	e.count++
	heap.Push(&e.queue, h)
}

// between draws a time.
func (e *electorate) between(least, most time.Duration) time.Duration {
	return least + time.Duration(e.rng.Int64N(int64(most-least)))
}

// brief draws a time that is often very short.
func (e *electorate) brief(most time.Duration) time.Duration {
	if e.rng.IntN(2) == 0 {
		most = 5 * time.Millisecond
	}
	return e.between(time.Millisecond, most)
}

// chance draws something that happens in so many of 1000 cases, while there are faults.
func (e *electorate) chance(of1000 int) bool { return !e.calm && e.rng.IntN(1000) < of1000 }

func (e *electorate) note(format string, args ...any) {
	line := fmt.Sprintf("%9.3f ", e.now.Seconds()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x%s", e.trace, line)
	e.trace = h.Sum64()
	if len(e.tail) == 200 {
		e.tail = append(e.tail[:0], e.tail[100:]...)
	}
	e.tail = append(e.tail, line)
}

func (e *electorate) fail(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

// RunElection simulates one seed.
func RunElection(seed uint64) (rep ElectionReport, failure error) {
	e := &electorate{rng: stream(seed, 11), epochs: map[string]uint64{}}
	defer func() {
		rep = e.Election
		rep.Trace = e.trace
		if r := recover(); r != nil {
			err := fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			if b, ok := r.(broken); ok {
				err = b.err
			}
			failure = fmt.Errorf("seed %d: %w; again with:\n  go test ./internal/sim -run 'TestElection$' -seed %d\n%s", seed, err, seed, strings.Join(e.tail, "\n"))
		}
	}()
	for i := range []int{1, 3, 3, 3, 3, 5}[e.rng.IntN(6)] {
		e.voters = append(e.voters, &voter{e: e, name: fmt.Sprintf("n%d", i+1)})
	}
	for i := range 1 + e.rng.IntN(6) {
		e.realms = append(e.realms, fmt.Sprintf("r%d", i))
	}
	for _, v := range e.voters {
		e.after(e.between(0, 3*time.Second), nil, v.start)
	}
	e.run()
	return e.Election, nil
}

// step lets the next thing happen.
func (e *electorate) step() {
	h := heap.Pop(&e.queue).(happening)
	e.now = max(e.now, h.at)
	v := h.to
	switch {
	case v == nil:
	case h.life != v.life:
		return // that life is over
	case e.now < v.paused:
		h.at = v.paused
		heap.Push(&e.queue, h)
		return
	}
	h.do()
	if v != nil && v.up {
		e.alone(v)
	}
}

// until lets things happen until a condition holds, for a time at most, and reports whether it does.
func (e *electorate) until(most time.Duration, good func() bool) bool {
	for end := e.now + most; e.now < end; {
		if good() {
			return true
		}
		next := min(e.now+100*time.Millisecond, end)
		for len(e.queue) > 0 && e.queue[0].at <= next {
			e.step()
		}
		e.now = next
	}
	return good()
}

// alone checks that nobody else holds what a node holds.
func (e *electorate) alone(v *voter) {
	v.holding = v.core.Holding()
	if leads := v.core.Board().Nodes[v.name].Leads; v.core.Left() && len(leads) > 0 {
		e.fail("node %s has given up everything, and leads %v", v.name, leads)
	}
	for _, realm := range v.holding.Realms() {
		if !v.holds(realm) {
			continue
		}
		for _, other := range e.voters {
			if other != v && other.holds(realm) {
				e.fail("nodes %s and %s hold realm %s at the same time", v.name, other.name, realm)
			}
		}
	}
}

// write writes the board if it has a version, and judges it.
func (e *electorate) write(by *voter, version int, data []byte) bool {
	if e.board.version != version {
		e.Election.Conflicts++
		return false
	}
	e.board.version, e.board.data = version+1, data
	var b struct {
		Nodes map[string]struct{ Leads []string }
	}
	if err := json.Unmarshal(data, &b); err != nil {
		e.fail("node %s writes %q: %w", by.name, data, err)
	}
	leads := map[string]string{}
	for _, v := range e.voters {
		for _, realm := range b.Nodes[v.name].Leads {
			if other := leads[realm]; other != "" {
				e.fail("node %s writes that nodes %s and %s lead realm %s", by.name, other, v.name, realm)
			}
			leads[realm] = v.name
		}
	}
	if e.chance(50) {
		e.after(e.brief(50*time.Millisecond), nil, func() { e.isolate(by) })
	}
	return true
}

// isolate cuts a node off just after it has written. The others look at once, and again when their patience ends:
// then the leases that they may take have just ended.
func (e *electorate) isolate(v *voter) {
	if e.calm {
		return
	}
	e.Election.Cuts++
	v.cut = true
	e.note("%s is cut off", v.name)
	for _, other := range e.voters {
		if other != v && other.up {
			e.after(0, other, other.poked)
			e.after(e.brief(100*time.Millisecond)+other.real(v.ttl), other, other.poked)
		}
	}
}

// run is one run: faults, calm, and a node that stops.
func (e *electorate) run() {
	for end := e.now + e.between(20*time.Second, 40*time.Second); e.now < end; {
		e.strike()
		e.until(e.between(200*time.Millisecond, 2*time.Second), func() bool { return false })
	}
	calm := e.now
	e.settle()
	// A node that failed to lead a realm leaves it to others for up to 48 s after as many faults.
	if !e.until(75*time.Second, e.led) {
		e.fail("nobody leads %v, 75 s after the last fault", e.unled())
	}
	if !e.until(75*time.Second, e.spread) {
		e.fail("realms are not led by the nodes that should: %s", e.wrong())
	}
	e.until(calm+30*time.Second-e.now, func() bool { return e.now >= calm+30*time.Second })
	if e.wrong() != "" {
		e.fail("realms move without need: %s", e.wrong())
	}
	e.handOver()
}

// strike makes something go wrong.
func (e *electorate) strike() {
	v := e.voters[e.rng.IntN(len(e.voters))]
	if leader := e.holder(e.realms[e.rng.IntN(len(e.realms))]); leader != nil && e.rng.IntN(2) == 0 {
		v = leader
	}
	switch n := e.rng.IntN(10); {
	case n < 2 && v.up:
		e.Election.Kills++
		v.kill()
		e.after(e.between(0, 8*time.Second), nil, v.start)
	case n < 5:
		e.Election.Cuts++
		v.cut = !v.cut
		e.note("%s is cut off: %v", v.name, v.cut)
	case n < 6 && v.up:
		e.Election.Pauses++
		v.pause(e.between(0, 9*time.Second))
	case n < 8:
		e.Election.Jumps++
		v.skew = time.Duration(e.rng.IntN(5)-2) * e.between(0, time.Minute)
		e.note("the clock of %s is %v ahead", v.name, v.skew)
	case n < 9 && v.up:
		e.Election.Drains++
		v.drain(!v.core.Drained())
	default:
		v.cut = false
	}
}

// settle ends the faults. Of several nodes, one may stay away, and another one drained or with a clock
// that is off. The others' clocks are less apart than a node's must be to lead again.
func (e *electorate) settle() {
	e.calm = true
	e.note("the faults end")
	for _, v := range e.voters {
		v.cut, v.paused, v.skew = false, e.now, e.between(-2*time.Second, 2*time.Second)
		if !v.up {
			v.start()
		}
		v.drain(false)
	}
	if len(e.voters) == 1 {
		return
	}
	order := e.rng.Perm(len(e.voters))
	switch v := e.voters[order[0]]; e.rng.IntN(4) {
	case 0:
		v.kill()
		v.gone, v.away = true, true
	case 1:
		v.drain(true)
		v.away = true
	case 2:
		v.skew = []time.Duration{-time.Hour, -30 * time.Second, 30 * time.Second, time.Hour}[e.rng.IntN(4)]
		v.away = true
		if e.rng.IntN(2) == 0 {
			v.kill()
			v.start()
		}
		e.note("the clock of %s stays %v ahead", v.name, v.skew)
	}
}

// holder returns the node that holds a realm.
func (e *electorate) holder(realm string) *voter {
	for _, v := range e.voters {
		if v.holds(realm) {
			return v
		}
	}
	return nil
}

// unled returns the realms that nobody holds, or a node that should not.
func (e *electorate) unled() []string {
	return slices.DeleteFunc(slices.Clone(e.realms), func(realm string) bool {
		v := e.holder(realm)
		return v != nil && !v.away
	})
}

func (e *electorate) led() bool    { return len(e.unled()) == 0 }
func (e *electorate) spread() bool { return e.wrong() == "" }

// wrong names realms that are not held by the node that is first in rank for them.
func (e *electorate) wrong() string {
	var can []string
	for _, v := range e.voters {
		if !v.away {
			can = append(can, v.name)
		}
	}
	var wrong []string
	for _, realm := range e.realms {
		is := ""
		if v := e.holder(realm); v != nil {
			is = v.name
		}
		if want := election.First(can, realm); is != want {
			wrong = append(wrong, fmt.Sprintf("%s by %q in place of %s", realm, is, want))
		}
	}
	return strings.Join(wrong, ", ")
}

// handOver stops the node that leads most. Each realm has another leader before a lease could have ended.
func (e *electorate) handOver() {
	led := map[*voter]int{}
	var v *voter
	others := 0
	for _, realm := range e.realms {
		led[e.holder(realm)]++
	}
	for _, one := range e.voters {
		if v == nil || led[one] > led[v] {
			v = one
		}
		if !one.away {
			others++
		}
	}
	e.note("%s stops", v.name)
	began := e.now
	v.stop()
	if !e.until(10*time.Second, func() bool { return v.core.Left() }) {
		e.fail("node %s does not come to give everything up", v.name)
	}
	v.away = true
	if others == 1 {
		return
	}
	if !e.until(began+election.Hold(v.ttl)-e.now, e.led) {
		e.fail("nobody leads %v, %v after node %s began to stop", e.unled(), e.now-began, v.name)
	}
	e.Election.Handovers++
}
