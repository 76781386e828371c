package rules_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// What the model knows of time zones, budgets, moments and codes, as docs/reference/catalog.md says.

// clock returns what the clocks of the catalog's zone show. While they are set back they stand still.
func (m *model) clock(now int64) int64 {
	shown, latest, offset := now, int64(0), int64(0)
	for i, o := range m.c.Zone.Offsets {
		if o.From*1000 > now {
			break
		}
		if i > 0 {
			latest = max(latest, o.From*1000+offset)
		}
		offset = o.Seconds * 1000
		shown = max(now+offset, latest)
	}
	return shown
}

// period numbers the hours, days, weeks and months that begin by what clocks show, with gaps.
func (m *model) period(per catalog.Per, now int64) int64 {
	const hour, day = 3_600_000, 86_400_000
	shown := m.clock(now)
	if per == catalog.PerHour {
		return shown / hour
	}
	today := max(0, shown-int64(m.c.Day.Begins)*60_000) / day * day
	switch date := time.UnixMilli(today).UTC(); per {
	case catalog.PerDay:
		return today
	case catalog.PerWeek:
		return today - (int64(date.Weekday())+13-int64(m.c.Day.Week))%7*day
	case catalog.PerMonth:
		return today - int64(date.Day()-1)*day
	}
	return 0
}

// over reports whether the hour, day, week or month of a steady time is over.
func (m *model) over(per catalog.Per, steady, now int64) bool {
	return m.period(per, max(0, steady-m.back)) < m.period(per, now)
}

// purse is what was spent of one item of a budget, and when something last was.
type purse struct {
	spent uint64
	last  int64
}

// part is one item of a budget.
type part struct {
	name string
	per  catalog.Per
	item string
	most uint64
}

// parts returns the budgets of a pool, item by item.
func parts(p *catalog.Pool) (all []part) {
	for _, b := range p.Budgets {
		per := map[catalog.Per]string{catalog.PerHour: "hour", catalog.PerDay: "day", catalog.PerWeek: "week", catalog.PerMonth: "month", catalog.PerForever: "forever"}[b.Per]
		for _, s := range b.Of {
			name := p.ID + "/budget/" + per + "/" + s.Item
			if b.Share != "" {
				name = "/budget/" + b.Share + "/" + per + "/" + s.Item
			}
			all = append(all, part{name, b.Per, s.Item, s.Quantity})
		}
	}
	return all
}

// costly reports whether a budget of its pool can rule out an entry.
func (m *model) costly(p *catalog.Pool, e *catalog.Entry) bool {
	return slices.ContainsFunc(parts(p), func(b part) bool { return m.mostOf(&e.Reward, b.item) > 0 })
}

// spent returns what was spent of a budget in the hour, day, week or month at hand.
func (k *chooser) spent(b part) uint64 {
	if was := k.purses[b.name]; !k.over(b.per, was.last, k.now) {
		return was.spent
	}
	return 0
}

// fits reports whether what an entry can give is left in every budget of its pool.
func (k *chooser) fits(p *catalog.Pool, e *catalog.Entry) bool {
	for _, b := range parts(p) {
		if n := k.mostOf(&e.Reward, b.item); n > 0 && k.spent(b)+n > b.most {
			k.met["beyond a budget"]++
			return false
		}
	}
	return true
}

// open returns the budgets that what an entry gives comes from, each once: those of its pool, and of
// the entries on the way to it.
func (k *chooser) open(p *catalog.Pool, e *catalog.Entry) []part {
	all := slices.Clone(k.paying)
	for _, b := range parts(p) {
		if k.mostOf(&e.Reward, b.item) > 0 && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// pay takes what is given from the budgets that it comes from.
func (k *chooser) pay(item string, n uint64) {
	for _, b := range k.paying {
		if b.item != item {
			continue
		}
		k.met["spent"]++
		k.purses[b.name] = purse{k.spent(b) + n, k.now + k.back}
		if !slices.Contains(k.paid, b.name) {
			k.paid = append(k.paid, b.name)
		}
	}
}

// tallies returns the effects of the budgets that a draw has spent from.
func (k *chooser) tallies() (lines []string) {
	for _, name := range k.paid {
		lines = append(lines, fmt.Sprint("tally ", name, " ", k.purses[name].spent))
		if last := k.purses[name].last; last != k.before[name].last {
			lines = append(lines, fmt.Sprint("tally ", name, "+1 ", last))
		}
	}
	return lines
}

// come is how far the moments of an entry are decided.
type come struct {
	until  int64
	n, due uint64
}

// weighted returns the milliseconds between a pool's start and a time, each as often as its hour
// weighs, hour by hour.
func (m *model) weighted(p *catalog.Pool, e *catalog.Entry, to int64) (sum uint64) {
	place := time.UTC
	if m.c.Zone.Name != "" {
		var err error
		if place, err = time.LoadLocation(m.c.Zone.Name); err != nil {
			panic(err)
		}
	}
	const hour = 3_600_000
	for at := p.StartsAt; at < min(to, p.EndsAt); {
		t := time.UnixMilli(at).In(place)
		end := at + hour - int64(t.Minute()*60_000+t.Second()*1000+t.Nanosecond()/1_000_000)
		if _, change := t.ZoneBounds(); !change.IsZero() {
			end = min(end, change.UnixMilli())
		}
		end = min(end, to, p.EndsAt)
		weight := uint64(1)
		for _, w := range e.Moments.Weights {
			if during(t, w.When) {
				weight *= w.Weight
			}
		}
		sum += weight * uint64(end-at)
		at = end
	}
	return sum
}

// during reports whether a time is in a range of hours, such as 19-23, or on a day, such as sat or
// mon-fri.
func during(t time.Time, when string) bool {
	first, last, ranged := strings.Cut(when, "-")
	if hour, err := strconv.Atoi(first); err == nil {
		end, err := strconv.Atoi(last)
		if err != nil {
			panic(err)
		}
		return t.Hour() >= hour && t.Hour() < end
	}
	if !ranged {
		last = first
	}
	day := func(name string) int { return strings.Index("montuewedthufrisatsun", name) / 3 }
	today := (int(t.Weekday()) + 6) % 7
	return today >= day(first) && today <= day(last)
}

// arrive decides which moments of an entry have come.
func (k *chooser) arrive(p *catalog.Pool, e *catalog.Entry) {
	name := p.ID + "/moments/" + e.ID
	was := k.moments[name]
	total := k.weighted(p, e, p.EndsAt)
	if k.now <= was.until || k.now < p.StartsAt || total == 0 {
		return
	}
	from, to := k.weighted(p, e, was.until), k.weighted(p, e, k.now)
	// came reports whether a moment between a and b has come.
	came := func(a, b uint64) bool { return to >= b || to > a && k.tape.below(b-a) < to-a }
	n, count := was.n, uint64(e.Moments.Count)
	slot := func(half uint64) uint64 { return total * half / (2 * count) } // the test's totals are small
	switch e.Moments.Spread {
	case catalog.SpreadEven:
		for n < count && slot(2*n+1) < to {
			n++
		}
	case catalog.SpreadSlots:
		for n < count && slot(2*n) < to && came(max(from, slot(2*n)), slot(2*n+2)) {
			n++
		}
	case catalog.SpreadRandom:
		for i := was.n; i < count; i++ {
			if came(from, total) {
				n++
			}
		}
	}
	due := was.due + n - was.n
	if n > was.n {
		k.met[map[catalog.Spread]string{catalog.SpreadEven: "even", catalog.SpreadSlots: "slots", catalog.SpreadRandom: "random"}[e.Moments.Spread]]++
	}
	if n > was.n && e.Moments.Pass && due > 1 { // they pass when the next one comes
		k.met["passed"]++
		due = 1
	}
	k.moments[name] = come{k.now, n, due}
	k.lines = append(k.lines, fmt.Sprint("tally ", name, " ", k.now))
	if n > was.n {
		k.lines = append(k.lines, fmt.Sprint("tally ", name, "+1 ", n), fmt.Sprint("tally ", name, "+2 ", due))
	}
}

// won returns the entry of a pool that a moment makes certain, nil for none. due is the group of a
// guarantee that must be hit now, or nil.
func (k *chooser) won(p *catalog.Pool, due []string) *catalog.Entry {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Moments.Count > 0 {
			k.arrive(p, e)
		}
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		name := p.ID + "/moments/" + e.ID
		at := k.moments[name]
		left, _ := k.left(p, e)
		switch {
		case e.Moments.Count == 0, at.due == 0, left == 0, due != nil && !in(e, due):
			continue
		case !k.fits(p, e):
			k.met["waits for a budget"]++
			continue
		case !k.hasCodes(e):
			k.met["waits for a code"]++
			continue
		}
		at.due--
		k.moments[name] = at
		k.lines = append(k.lines, fmt.Sprint("tally ", name, "+2 ", at.due))
		return e
	}
	return nil
}

// hasCodes reports whether every list that an entry gives a code of has one left.
func (m *model) hasCodes(e *catalog.Entry) bool {
	for _, list := range e.Reward.Codes {
		if m.given[list] >= len(m.codes[list]) {
			m.met["no code"]++
			return false
		}
	}
	return true
}

// tallied returns the names of the realm's counters by number.
func (m *model) tallied(state *store.State) map[uint32]string {
	all := map[uint32]string{}
	add := func(name string, width uint32) {
		first, ok := state.CounterNum(name)
		for i := uint32(0); ok && i < width; i++ {
			if all[first+i] = name; i > 0 {
				all[first+i] = fmt.Sprint(name, "+", i)
			}
		}
	}
	for i := range m.c.Pools {
		p := &m.c.Pools[i]
		add(p.ID+"/refills", 1)
		for _, b := range parts(p) {
			add(b.name, 2)
		}
		for j := range p.Entries {
			add(p.ID+"/moments/"+p.Entries[j].ID, 3)
		}
	}
	return all
}

// imports imports codes in both.
func (m *model) imports(r *realm, pick picker) {
	r.t.Helper()
	list := []string{"alpha", "beta"}[pick("list", 2)]
	var codes []string
	for range 1 + pick("codes", 4) {
		codes = append(codes, fmt.Sprint(list, pick("code", 60)))
	}
	event, added, err := rules.Import(r.state, list, codes)
	if err != nil {
		r.t.Fatal(err)
	}
	before := len(m.codes[list])
	for _, code := range codes {
		if !slices.Contains(m.codes[list], code) {
			m.codes[list] = append(m.codes[list], code)
		}
	}
	if want := len(m.codes[list]) - before; added != want {
		r.t.Fatalf("%d of %v were added to %s, the model says %d", added, codes, list, want)
	}
	if event != nil {
		r.apply(event)
		r.check()
	}
}

// checkCodes compares what lists have given.
func (m *model) checkCodes(r *realm) {
	r.t.Helper()
	for list, want := range m.codes {
		num, ok := r.state.CodeListNum(list)
		if !ok {
			r.t.Fatalf("no list %s", list)
		}
		left, _ := r.state.CodesLeft(num)
		if given := r.state.CodesGiven(num); int(given) != m.given[list] || int(left) != len(want)-m.given[list] {
			r.t.Fatalf("list %s has given %d and has %d, the model says %d of %d", list, given, left, m.given[list], len(want))
		}
	}
}

// setBackBy sets the clock back in both.
func (m *model) setBackBy(r *realm, ms int64) {
	r.setBack(r.now - ms)
	m.back += ms
}

// TestModelOfCampaigns sees to it that the model met every rule of campaigns often.
func TestModelOfCampaigns(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(40) {
		pick := seeded(seed)
		r, m := newRealm(t, seed), newModel()
		m.met = met
		for n := range 250 {
			if n%50 == 0 {
				yaml := randomCatalog(pick)
				r.put(yaml)
				m.put(parse(t, yaml))
			}
			r.now += int64(pick("time", 6_000_000))
			switch pick("else", 30) {
			case 0, 1:
				m.imports(r, pick)
			case 2:
				m.setBackBy(r, int64(1+pick("back", 2*86_400_000)))
			}
			cmd := draw(fmt.Sprint("p", pick("player", 4)), []string{"splash", "splash", "tour", "q0", "q3"}[pick("pool", 5)], 1+pick("count", 4))
			if pick("group", 4) == 0 {
				cmd = group(cmd, draw("p1", "splash", 2), draw("p2", "tour", 1))
			}
			wantNoChoice(r, &cmd, n%16 == 0)
			m.step(r, cmd)
		}
		m.compare(r)
		m.compare(r.replay())
	}
	for _, what := range []string{"beyond a budget", "spent", "even", "slots", "random", "passed", "waits for a budget", "waits for a code", "code", "no code"} {
		if met[what] < 20 {
			t.Errorf("%q was met %d times: the test is too small", what, met[what])
		}
	}
}
