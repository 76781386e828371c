package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

type counterValue = store.CounterValue

// A limit counts a player's draws from a pool, in counters of its own. withinLimits checks it, and
// count counts. Free draws and guesses of codes are counted in the same way. The counters hold:
//
//	forever                 all draws so far
//	hour, day, week, month  the time of the last draw <<drawBits | the draws in that hour, day, week or month
//	window                  several counters, in no order: a time <<drawBits | the draws that count
//	                        until this time is a window ago
//
// Hours, days, weeks and months are those that clocks in the catalog's zone show: see zone.go. The times in
// counters are steady: time stamps plus how far the clock was set back in all (store.State.Back). So
// setting the clock back gives nobody a draw and takes none away. A midnight that the stamps pass
// twice begins a day each time: the draws of the day before, replaced in the counter, do not return.
//
// A window of at most exactDraws draws is exact: each request has a counter. A larger one is divided
// into steps. The draws of a step share a counter, and all count as late as the last of them. So a
// draw may count up to one step too long, but no window has more draws than declared, and there are
// few counters.
const (
	drawBits     = 18 // steady times have 46 bits: see MaxTime
	maxStepDraws = catalog.MaxTimedDraws
	exactDraws   = 64
	steps        = 64
	windowWidth  = 72 // counters of a window: room for exactDraws, or for the steps and both ends
)

// counting counts the draws of the command at hand in limits.
type counting struct {
	stocks
	usedOf  []uint64             // of each limit of the draw that is checked
	sets    []set                // counters that draws will set
	window  []store.CounterValue // scratch memory of countersOf
	stopped view.Limit           // the limit that was reached, with LimitReached
}

// MaxTime is the latest time stamp, in Unix milliseconds. It is in the year 2527. A steady time can
// be later, by store.MaxBack: then it still fits in 46 bits.
const MaxTime = 1<<(64-drawBits) - 1 - store.MaxBack

// Instant is a time stamp, in the catalog's zone.
type Instant struct {
	Zone Zone
	Now  int64
	Back int64 // see store.State.Back
}

// counts reports whether the draws in a counter count now. The limit must not be forever.
func (m Instant) counts(l *Limit, counter uint64) bool {
	last := int64(counter >> drawBits)
	if l.Per == catalog.PerWindow {
		return last > m.Now+m.Back-l.Window
	}
	return m.lasts(l.Per, last)
}

// counterName returns the name of a limit's counters: the same in every catalog in which the pool
// has a limit over the same time.
func counterName(of string, l *Limit) string {
	switch l.Per {
	case catalog.PerForever:
		return of
	case catalog.PerWindow:
		return fmt.Sprintf("%s/%dms", of, l.Window)
	}
	return of + "/" + l.Per.String()
}

// withinLimits reports whether a pool's limits allow a player n more draws. It leaves what is used of
// each limit in usedOf, for count.
func (r *counting) withinLimits(pt *Pool, player uint32, n uint64) bool {
	r.usedOf = r.usedOf[:0]
	for i := range pt.Limits {
		l := &pt.Limits[i]
		used := r.used(l, player)
		if used+n > l.Draws {
			r.stopped = r.instant().Limit(l, r.countersOf(l, player))
			return false
		}
		r.usedOf = append(r.usedOf, used)
	}
	return true
}

// used returns how many draws of a limit a player has used at this point of the command.
func (r *counting) used(l *Limit, player uint32) uint64 {
	if l.Per == catalog.PerForever {
		return r.counter(player, l.Counter)
	}
	used, _ := r.instant().used(l, r.countersOf(l, player))
	return used
}

// count counts n draws of a player in all limits of a pool. Call withinLimits first.
func (r *counting) count(pt *Pool, player uint32, n uint64) {
	for i := range pt.Limits {
		if l := &pt.Limits[i]; l.Per == catalog.PerWindow {
			r.countWindow(l, player, n)
		} else {
			r.setCounter(player, l.Counter, l.value(r.usedOf[i]+n, r.steady))
		}
	}
}

// value returns the counter, of no window, of n draws, the last one at a steady time.
func (l *Limit) value(n uint64, steady int64) uint64 {
	if l.Per == catalog.PerForever {
		return n
	}
	return uint64(steady)<<drawBits | n
}

// setCounter sets a counter for the rest of the command, as an effect of the current draw.
func (r *counting) setCounter(player, counter uint32, value uint64) {
	r.values.put(valueKey(player, counterKey|counter), value)
	r.sets = append(r.sets, set{counter, value})
}

// countersOf returns a player's counters of a limit at this point of the command, ascending.
func (r *counting) countersOf(l *Limit, player uint32) []counterValue {
	if l.Per != catalog.PerWindow {
		r.window = append(r.window[:0], counterValue{Counter: l.Counter, Value: r.counter(player, l.Counter)})
		return r.window
	}
	r.window = r.state.Counters(player, l.Counter, l.Counter+windowWidth-1, r.window[:0])
	for _, s := range r.sets { // by earlier draws of the command, perhaps for another player
		if s.counter < l.Counter || s.counter >= l.Counter+windowWidth {
			continue
		}
		if v, mine := r.values.get(valueKey(player, counterKey|s.counter)); mine {
			r.window = putCounter(r.window, s.counter, v)
		}
	}
	return r.window
}

// putCounter sets a counter in an ascending list. The value 0 removes it.
func putCounter(all []counterValue, counter uint32, value uint64) []counterValue {
	switch i, found := searchCounter(all, counter); {
	case found && value == 0:
		return slices.Delete(all, i, i+1)
	case found:
		all[i].Value = value
	case value != 0:
		return slices.Insert(all, i, counterValue{Counter: counter, Value: value})
	}
	return all
}

// countWindow adds n draws to a window limit: to the newest counter if its step is the same, else
// to one that no longer counts, else to a free one. It clears at most one that no longer counts.
func (r *counting) countWindow(l *Limit, player uint32, n uint64) {
	now, all := r.instant(), r.countersOf(l, player)
	over, more, newest := -1, -1, -1
	free := l.Counter // the first counter not in use
	for i, c := range all {
		if c.Counter == free {
			free++
		}
		switch time := c.Value >> drawBits; {
		case now.counts(l, c.Value):
			if newest < 0 || time > all[newest].Value>>drawBits {
				newest = i
			}
		case over < 0:
			over = i
		default:
			more = i
		}
	}
	v := uint64(r.steady)<<drawBits | n
	gone := more
	switch {
	case newest >= 0 && l.Draws > exactDraws && l.step(all[newest].Value) == l.step(v):
		r.setCounter(player, all[newest].Counter, v+all[newest].Value&maxStepDraws)
		gone = over
	case over >= 0:
		r.setCounter(player, all[over].Counter, v)
	default:
		if free == l.Counter+windowWidth {
			free = r.joinStep(l, player, all)
		}
		r.setCounter(player, free, v)
	}
	if gone >= 0 {
		r.setCounter(player, all[gone].Counter, 0)
	}
}

// joinStep merges two counters of one step, and returns the one that this frees. All counters can be
// in use after a catalog raised an exact limit to one that counts in steps, or after draws were set by
// hand one by one. Two of them share a step: a window has fewer steps than counters.
func (r *counting) joinStep(l *Limit, player uint32, all []counterValue) (free uint32) {
	for i, late := range all {
		for _, early := range all[:i] {
			if l.step(late.Value) != l.step(early.Value) {
				continue
			}
			if early.Value>>drawBits > late.Value>>drawBits {
				late, early = early, late
			}
			r.setCounter(player, late.Counter, late.Value+early.Value&maxStepDraws)
			return early.Counter
		}
	}
	panic("rules: a window has more steps than counters")
}

// step returns the number of the step that a counter's time is in.
func (l *Limit) step(counter uint64) int64 {
	return int64(counter>>drawBits) / ((l.Window + steps - 1) / steps)
}

// setLimitKind is a SetLimit: an administrator sets by hand what a player has used of a limit.
type setLimitKind struct{ noted }

// LimitSet is what a SetLimit asks for.
type LimitSet struct {
	Per     catalog.Per // which of the pool's limits
	Window  int64       // of a limit over a window, milliseconds
	Used    uint64
	Allowed uint64 // draws that the limit allowed then; only in events, for their readers
}

func (setLimitKind) same(c, o *Command) bool {
	a, b := c.Limit, o.Limit
	return a.Per == b.Per && a.Window == b.Window && a.Used == b.Used
}

func (setLimitKind) barred() bool  { return false }
func (setLimitKind) alone() string { return "an atomic group cannot set a limit" }

func (setLimitKind) form(c *Command) *CommandError {
	if err := checkPool(c.Pool); err != nil {
		return err
	}
	s, most, longest := c.Limit, uint64(maxStepDraws), int64(0)
	switch s.Per {
	case catalog.PerForever:
		most = MaxQuantity
	case catalog.PerDay, catalog.PerWeek, catalog.PerMonth:
	case catalog.PerWindow:
		longest = catalog.MaxWindow.Milliseconds()
	default:
		return malformed("per", "%v; want forever, day, week, month or window", s.Per)
	}
	switch least := min(longest, 1); {
	case s.Window < least || s.Window > longest:
		return malformed("window_ms", "%d; want %d to %d of a limit per %v", s.Window, least, longest, s.Per)
	case s.Used > most:
		return malformed("used", "%d; at most %d are allowed", s.Used, most)
	case c.Note == nil || c.Note.Reason == "":
		return malformed("reason", "empty; want a reason of 1 to %d bytes", MaxReason)
	}
	return nil
}

func (setLimitKind) resolve(f *Finder, c *Command) *CommandError {
	switch c.pool = f.pool(c.Pool); {
	case c.pool == nil:
		return f.unknown("pool", "pool", c.Pool)
	case c.pool.limit(c.Limit) != nil:
		return nil
	case c.Limit.Per == catalog.PerWindow:
		return malformed("window_ms", "pool %q has no limit over %d ms in catalog version %d", c.Pool, c.Limit.Window, f.Version)
	}
	return malformed("per", "pool %q has no limit per %v in catalog version %d", c.Pool, c.Limit.Per, f.Version)
}

func (pt *Pool) limit(s *LimitSet) *Limit {
	i := slices.IndexFunc(pt.Limits, func(l Limit) bool { return l.Per == s.Per && l.Window == s.Window })
	if i < 0 {
		return nil
	}
	return &pt.Limits[i]
}

func (setLimitKind) write(r *drawing, c *Command) {
	player := c.who(&r.Sight)
	r.turn(player)
	r.setUsed(c.pool.limit(c.Limit), player, c.Limit.Used)
	for _, s := range r.sets {
		r.w.Change(store.Set, s.counter, s.value)
	}
}

// setUsed sets what a player has used of a limit to n draws. Added draws count as made now. In a
// window the latest draws are taken away first, so nobody waits longer for the others.
func (r *counting) setUsed(l *Limit, player uint32, n uint64) {
	if l.Per != catalog.PerWindow {
		v := uint64(0)
		if n > 0 {
			v = l.value(n, r.steady)
		}
		r.setCounter(player, l.Counter, v)
		return
	}
	used := r.used(l, player)
	if used < n {
		r.countWindow(l, player, n-used)
	}
	for used > n {
		latest := slices.MaxFunc(r.countersOf(l, player), func(a, b counterValue) int { return cmp.Compare(a.Value, b.Value) })
		drop := min(used-n, latest.Value&maxStepDraws)
		used -= drop
		if latest.Value -= drop; latest.Value&maxStepDraws == 0 {
			latest.Value = 0
		}
		r.setCounter(player, latest.Counter, latest.Value)
	}
}

// ask writes the pool's number, the limit's per (1 byte), its window in milliseconds, the draws
// that it allows, and those used. All but per are varints.
func (setLimitKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(c.pool.Num))
	r.w.Buf = append(r.w.Buf, byte(c.Limit.Per))
	r.w.Uint(uint64(c.Limit.Window))
	r.w.Uint(c.pool.limit(c.Limit).Draws)
	r.w.Uint(c.Limit.Used)
}

func (setLimitKind) asked(a *asked, c *Command) {
	c.Pool = a.name("the pool", a.state.PoolID)
	s := &LimitSet{Per: catalog.Per(a.Byte("a limit"))}
	s.Window = int64(a.Uint("a window", uint64(catalog.MaxWindow.Milliseconds())))
	s.Allowed = a.Uint("the draws allowed", math.MaxUint64)
	s.Used = a.Uint("the draws used", MaxQuantity)
	c.Limit = s
}
