package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Ranks: who stands where by what they have counted, and what is paid when a period has ended. The model keeps
// what each player has counted and in which order players moved, and sorts.

// ladder is what all players have in common of a counter that ranks them, or has ranked them.
type ladder struct {
	runs   int64  // the period that runs; 0: none has begun
	place  int    // which of two standings players count in. The other one is the last that ended
	ended  int64  // the last period that ended; 0: none has
	paying int64  // the period whose ranks are being paid; 0: none is
	paid   uint64 // how many of them are
	moves  uint64 // of all players so far
}

// ranker is a player in a standing.
type ranker struct {
	player string
	number int // of the player
	tally
}

// calendar follows a catalog that is put in force.
func (b *goalBook) calendar(c *catalog.Catalog) {
	b.day, b.seasons = c.Day, c.Seasons
	for i := range c.Counters {
		if one := &c.Counters[i]; one.Ranked.Is {
			b.ladders[tallyOf(one, "")] = b.ladders[tallyOf(one, "")]
		}
	}
}

// number returns the period of a counter at a time, and whether it runs: a season may be over.
func (b goalBook) number(c *catalog.Counter, now int64) (n int64, runs bool) {
	if c.Per.Per != catalog.PerSeason {
		return b.period(over(c), now), true
	}
	for _, s := range b.seasons {
		if (c.Per.Season == "" || c.Per.Season == s.ID) && s.Starts <= now && s.Starts > n {
			n, runs = s.Starts, now < s.Ends
		}
	}
	return n, runs
}

// present returns the period that a counter counts in, the standing that has it, and whether moves count. With
// ranks it is the same for all players: one that has begun goes on, and one that ended never runs again.
func (b goalBook) present(c *catalog.Counter, now int64) (period int64, place int, open bool) {
	n, open := b.number(c, now)
	l, ranks := b.ladders[tallyOf(c, "")]
	switch {
	case !ranks || over(c) == catalog.PerForever:
		return n, 0, open
	case l.runs > n:
		return l.runs, l.place, true
	case n > l.ended:
		return n, l.place, open
	}
	return n, 1 - l.place, false
}

// placed names a counter of a player in one of two standings.
func placed(c *catalog.Counter, player string, place int) string {
	if place > 0 {
		return tallyOf(c, player) + " again"
	}
	return tallyOf(c, player)
}

// ranks numbers a move, if it was one.
func (b goalBook) ranks(c *catalog.Counter, was tally, t *tally) {
	id := tallyOf(c, "")
	l, ranks := b.ladders[id]
	if !ranks || was.value == t.value && was.period == t.period {
		return
	}
	if t.move = 0; t.value > 0 {
		l.moves++
		t.move = l.moves
	}
	l.runs = max(l.runs, t.period)
	b.ladders[id] = l
}

// frozen reports whether what a counter has counted stands in a standing that changes no more.
func (t *trial) frozen(c *catalog.Counter) bool {
	_, ranks := t.goals.ladders[tallyOf(c, "")]
	_, _, open := t.goals.present(c, t.now)
	return ranks && c.Per.Per != catalog.PerForever && !open
}

// rankings judges what a model's players are paid for their ranks.
type rankings struct{ *model }

// standing sorts the players who have counted something in a period: the highest first, then who came first.
func (m rankings) standing(c *catalog.Counter, place int, period int64) (all []ranker) {
	for id, h := range m.players {
		if t := m.goals.tallies[placed(c, id, place)]; t.value > 0 && t.period == period {
			all = append(all, ranker{id, h.number, t})
		}
	}
	slices.SortFunc(all, func(a, b ranker) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.move, b.move), cmp.Compare(a.number, b.number))
	})
	return all
}

// frozen returns the standing of the last period of a counter that ended.
func (m rankings) frozen(c *catalog.Counter) []ranker {
	l := m.goals.ladders[tallyOf(c, "")]
	if l.ended == 0 {
		return nil
	}
	return m.standing(c, 1-l.place, l.ended)
}

// runs returns the period of a counter that somebody stands in and that has not ended, and its standing.
func (m rankings) runs(c *catalog.Counter) (period int64, standing []ranker) {
	l := m.goals.ladders[tallyOf(c, "")]
	if period = l.runs; period == 0 { // what was counted before anybody was ranked
		for id := range m.players {
			if t := m.goals.tallies[placed(c, id, l.place)]; t.value > 0 && t.period > l.ended {
				period = max(period, t.period)
			}
		}
	}
	return period, m.standing(c, l.place, period)
}

// over reports whether the period of a counter must end now.
func (m rankings) over(c *catalog.Counter) bool {
	if !c.Ranked.Is || c.Per.Per == catalog.PerForever {
		return false
	}
	period, standing := m.runs(c)
	if len(standing) == 0 {
		return false
	}
	if c.Per.Per != catalog.PerSeason {
		return m.goals.period(c.Per.Per, m.now) > period
	}
	return m.seasonEnds(c, period) <= m.now
}

// seasonEnds returns when a season ends, 0 if the catalog has it no more.
func (m rankings) seasonEnds(c *catalog.Counter, starts int64) int64 {
	for _, s := range m.catalog.Seasons {
		if c.Per.Season == s.ID && s.Starts <= starts || c.Per.Season == "" && s.Starts == starts {
			return s.Ends
		}
	}
	return 0
}

// ends returns when a standing of a season, or of all time, ends. 0: it does not, or it has ended.
func (m rankings) ends(c *catalog.Counter, ended bool) int64 {
	if ended || c.Per.Per != catalog.PerSeason {
		return 0
	}
	return m.seasonEnds(c, m.goals.ladders[tallyOf(c, "")].runs)
}

// unpaid returns how many ranks of the last standing are still to be paid.
func (m rankings) unpaid(c *catalog.Counter) uint64 {
	l := m.goals.ladders[tallyOf(c, "")]
	if n := len(c.Ranked.Rewards); n > 0 && l.paying > 0 {
		last := min(uint64(c.Ranked.Rewards[n-1].To), uint64(len(m.frozen(c))))
		return last - min(last, l.paid)
	}
	return 0
}

// first returns the first counter whose period must end now, nil if there is none.
func (m rankings) first() *catalog.Counter {
	if m.catalog == nil {
		return nil
	}
	for i := range m.catalog.Counters {
		if c := &m.catalog.Counters[i]; m.over(c) {
			return c
		}
	}
	return nil
}

// told returns the number that the engine has for a period. The model counts days and weeks from 0, and months
// from the year 0.
func told(c *catalog.Counter, period int64) uint64 {
	switch c.Per.Per {
	case catalog.PerMonth:
		return uint64(period - 1970*12)
	case catalog.PerSeason:
		return uint64(period)
	}
	return uint64(period + 1)
}

// step judges an event that ends a period or pays some ranks, and carries it out. Ends come first, in the order of
// the catalog, each after the ranks of the period before.
func (m rankings) step(rec kuji.Record) error {
	d := rec.Due
	c := m.counter(d.Counter)
	if c == nil || !c.Ranked.Is || d.Swept || len(d.Players) > 0 {
		return fmt.Errorf("%+v was settled; the catalog ranks nobody by that", *d)
	}
	if first := m.first(); first != nil && first.ID != c.ID {
		return fmt.Errorf("%+v was settled; the period of %s must end first", *d, first.ID)
	}
	if d.From == 0 {
		return m.end(c, d)
	}
	before := m.balances()
	err := m.pay(c, rec)
	if err == nil {
		err = m.changed(before, rec)
	}
	return err
}

// end judges the end of a period.
func (m rankings) end(c *catalog.Counter, d *kuji.Due) error {
	id := tallyOf(c, "")
	l := m.goals.ladders[id]
	period, standing := m.runs(c)
	switch {
	case !m.over(c) || told(c, period) != d.Period || uint64(len(standing)) != d.Count:
		return fmt.Errorf("%+v has ended; the model says that %d players are in period %d of %s, and it is over: %v", *d, len(standing), told(c, period), c.ID, m.over(c))
	case period <= l.ended:
		return fmt.Errorf("period %d of %s has ended before", d.Period, c.ID)
	case m.unpaid(c) > 0:
		return fmt.Errorf("period %d of %s has ended, and %d ranks of the one before are not paid", d.Period, c.ID, m.unpaid(c))
	}
	l.ended, l.place, l.paying, l.paid = period, 1-l.place, 0, 0
	if len(c.Ranked.Rewards) > 0 {
		l.paying = period
	}
	if l.runs, _ = m.goals.number(c, m.now); l.runs <= period {
		l.runs = 0
	}
	m.goals.ladders[id] = l
	return nil
}

// mostPaid is the most ranks that an event pays.
const mostPaid = 64

// pay judges the payment of some ranks.
func (m rankings) pay(c *catalog.Counter, rec kuji.Record) error {
	id, d, left := tallyOf(c, ""), rec.Due, m.unpaid(c)
	l := m.goals.ladders[id]
	if d.From != l.paid+1 || d.Period != told(c, l.paying) || d.Count > min(left, mostPaid) || uint64(len(rec.Claims)) < d.Count {
		return fmt.Errorf("%+v was paid with %d claims; the model says %d ranks are left of period %d of %s, after the first %d",
			*d, len(rec.Claims), left, told(c, l.paying), c.ID, l.paid)
	}
	m.movers = map[string]bool{}
	reached, standing := questing(m).reached(), m.frozen(c)
	for i, claim := range rec.Claims[:d.Count] {
		rank := l.paid + uint64(i) + 1
		who := standing[rank-1].player
		if claim.Counter != c.ID || claim.Rank != rank || claim.Player != who {
			return fmt.Errorf("rank %d of %s is that of %s, and %+v was paid", rank, c.ID, who, claim)
		}
		at := slices.IndexFunc(c.Ranked.Rewards, func(p catalog.Prize) bool { return rank <= uint64(p.To) })
		if err := m.prize(&c.Ranked.Rewards[at].Reward, claim); err != nil {
			return fmt.Errorf("rank %d of %s, %s: %w", rank, c.ID, who, err)
		}
	}
	l = m.goals.ladders[id] // a reward may be what the counter counts
	if l.paid += d.Count; d.Count == left {
		l.paying, l.paid = 0, 0
	}
	m.goals.ladders[id] = l
	return questing(m).fires(rec, rec.Claims[d.Count:], reached)
}

// prize judges what a player got for a rank. What was due for the player goes first.
func (m rankings) prize(w *catalog.Reward, claim kuji.Claimed) error {
	h, p := m.players[claim.Player], rewardPool("rank", w)
	m.lapse(h)
	stocked := m.stocked(p, claim.Player, h.items, 1)
	if claim.Missed {
		if len(claim.Items)+len(claim.Codes)+len(claim.Via) > 0 || stocked && m.roomy(p, h) {
			return fmt.Errorf("%+v was missed; it is there: %v, and fits: %v", claim, stocked, m.roomy(p, h))
		}
		return nil
	}
	if !stocked {
		return fmt.Errorf("%+v was given, and may not be there", claim)
	}
	k := walk{model: m.model, player: claim.Player, h: h, now: &kuji.Outcome{Entry: "rank", Items: claim.Items, Codes: claim.Codes}}
	for _, via := range claim.Via {
		k.steps = append(k.steps, drawnEntry{name: via})
	}
	err := k.give(w)
	if err == nil {
		err = k.finish()
	}
	if err == nil && len(k.steps) > 0 {
		err = fmt.Errorf("%s was drawn and belongs to nothing", k.steps[0].name)
	}
	return err
}

// roomy reports whether what a pool gives is far from what a player can hold.
func (m rankings) roomy(p *catalog.Pool, h *holder) bool {
	for _, it := range m.catalog.Items {
		n := m.best(p, it.ID)
		if n > 0 && (it.Most > 0 || n+h.items[it.ID] > kuji.MaxQuantity/1000 || len(h.lots[it.ID])+int(n) > mostLots/2) {
			return false
		}
	}
	return true
}

// lapse takes what should have gone.
func (m rankings) lapse(h *holder) {
	holdings(m).expire(h)
	for item, u := range h.lots {
		n := uint64(0)
		for at, q := range u {
			if at > 0 && at <= m.steady() {
				n += q
			}
		}
		if n > 0 {
			holdings(m).spends(h, item, n)
		}
	}
}

// balances returns what all players hold, by player and item.
func (m rankings) balances() map[[2]string]uint64 {
	all := map[[2]string]uint64{}
	for id, h := range m.players {
		for item, n := range h.items {
			all[[2]string{id, item}] = n
		}
	}
	return all
}

// changed checks that an event says what it has changed, and nothing else.
func (m rankings) changed(before map[[2]string]uint64, rec kuji.Record) error {
	deltas := map[[2]string]int64{}
	for of, n := range m.balances() {
		if n != before[of] {
			deltas[of] = int64(n - before[of])
		}
	}
	for _, ch := range rec.Changes {
		of := [2]string{ch.Player, ch.Item}
		if m.players[ch.Player].grew(ch.Item) { // see sums
			delete(deltas, of)
			continue
		}
		if ch.Delta != deltas[of] {
			return fmt.Errorf("%s got %d %s, the model says %d", ch.Player, ch.Delta, ch.Item, deltas[of])
		}
		delete(deltas, of)
	}
	if len(deltas) > 0 {
		return fmt.Errorf("the model says that also %v was paid", deltas)
	}
	return nil
}

// ranksRead is a standing that was shown.
type ranksRead struct {
	query kuji.RanksQuery
	view  kuji.RanksView
	code  kuji.Code
}

// readRanks looks at a standing, without waiting.
func (s *session) readRanks() {
	w := s.w
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	q := kuji.RanksQuery{Counter: rankedCounters[w.schedule.IntN(len(rankedCounters))], Ended: w.schedule.IntN(3) == 0, Most: w.schedule.IntN(6)}
	switch w.schedule.IntN(3) {
	case 0:
		q.Player = players[w.schedule.IntN(len(players))]
	case 1:
		q.From = w.schedule.Uint64N(5)
	}
	rd := read{position: s.realm.Stats().Position, ranks: &ranksRead{query: q}}
	view, err := s.realm.Ranks(ctx, q)
	rd.ranks.view, rd.ranks.code = view, kuji.CodeOf(err)
	w.note("ranks %+v: %+v, %v", q, view, rd.ranks.code)
	switch code := rd.ranks.code; {
	case code == kuji.CodeCanceled && errors.Is(err, context.Canceled):
		return
	case code == kuji.CodeFailed && s.excused():
		s.poisoned = true
		return
	case err != nil && code != kuji.CodeNotFound && code != kuji.CodeInvalid:
		w.fail("a standing cannot be read: %w", err)
	}
	if view.Position > rd.position {
		w.fail("a standing shows position %d, only %d is durable", view.Position, rd.position)
	}
	w.report.Reads++
	s.reads = append(s.reads, rd)
}

// stand compares a standing with the model.
func (m rankings) stand(rd *ranksRead) error {
	var want []ranker
	c, code := m.counter(rd.query.Counter), kuji.Code(0)
	switch {
	case c == nil:
		code = kuji.CodeNotFound
	case !c.Ranked.Is:
		code = kuji.CodeInvalid
	case rd.query.Ended:
		want = m.frozen(c)
	default:
		l := m.goals.ladders[tallyOf(c, "")]
		if c.Per.Per != catalog.PerForever && l.runs == 0 && l.moves == 0 {
			return nil // the clock says which period that is
		}
		want = m.standing(c, l.place, l.runs)
	}
	of, from := len(want), max(int(rd.query.From), 1)-1
	most := cmp.Or(rd.query.Most, kuji.DefaultRanks)
	to := from + most
	if id := rd.query.Player; id != "" && code == 0 {
		at := slices.IndexFunc(want, func(r ranker) bool { return r.player == id })
		if from, to = max(0, at-(most-1)/2), at+most/2+1; at < 0 {
			code = kuji.CodeNotFound
		}
	}
	same := rd.code == code && (code != 0 || int(rd.view.Of) == of)
	if code != 0 {
		from, to = 0, 0
	}
	from, to = min(from, of), min(to, of)
	same = same && len(rd.view.Ranks) == to-from
	for i := 0; same && i < to-from; i++ {
		same = rd.view.Ranks[i] == kuji.RankView{Rank: uint64(from + i + 1), Player: want[from+i].player, Value: want[from+i].value}
	}
	if code == 0 && of > 0 && (rd.query.Ended || over(c) == catalog.PerForever || c.Per.Per == catalog.PerSeason) {
		same = same && rd.view.Ends == m.ends(c, rd.query.Ended)
	}
	if !same {
		return fmt.Errorf("%+v shows %+v %v, the model says %v %v", rd.query, rd.view, rd.code, want, code)
	}
	return nil
}

// seen compares the ranks in a player's view with the model. A period may be over by the clock and not by the log.
func (m rankings) seen(v kuji.PlayerView) error {
	for _, got := range v.Counters {
		c := m.counter(got.ID)
		if c == nil || !c.Ranked.Is || got.Value == 0 && got.Rank == 0 && c.Per.Per != catalog.PerForever {
			continue
		}
		l := m.goals.ladders[tallyOf(c, "")]
		if m.goals.tallies[placed(c, v.ID, l.place)].period > l.runs { // from before anybody was ranked, by a clock that was ahead
			continue
		}
		ok := got.Value == 0 && got.Rank == 0 && m.goals.counts(c, v.ID, m.now) == 0
		for _, standing := range [][]ranker{m.standing(c, l.place, l.runs), m.frozen(c)} {
			at := slices.IndexFunc(standing, func(r ranker) bool { return r.player == v.ID })
			ok = ok || at >= 0 && got.Value == standing[at].value && got.Rank == uint64(at+1)
		}
		if !ok && (c.Per.Per == catalog.PerForever || l.moves > 0) {
			return fmt.Errorf("%s has rank %d with %d of %s, the model says %v or %v", v.ID, got.Rank, got.Value, got.ID, m.standing(c, l.place, l.runs), m.frozen(c))
		}
	}
	return nil
}

var rankedCounters = []string{"score", "score", "peak", "kinds", "purse", "total", "laps", "wins"}

// seasonsText writes seasons that begin and end during a run. A later catalog may move one.
func seasonsText(r *rand.Rand, pf func(string, ...any)) {
	const hour = int64(3_600_000)
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04") }
	first := int64(epoch) - epoch%hour - 2*hour
	pf("seasons:")
	for i := range int64(8) {
		starts := first + i*8*hour
		ends := starts + (2+r.Int64N(3)*2)*hour
		if r.IntN(12) == 0 {
			starts += hour
		}
		pf("  s%d: {starts: %s, ends: %s}", i, at(starts), at(ends))
	}
}

// ranksText writes counters that rank players.
func ranksText(r *rand.Rand, pf func(string, ...any)) {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	pf("  score: {of: {progress: [wins, damage]}, per: %s%s}", one("season", "season", "season", "day"), rankedText(r, true))
	if per := one("forever", "day", "season"); per == "forever" {
		pf("  peak: {of: {progress: damage}, highest: true%s}", rankedText(r, false))
	} else {
		pf("  peak: {of: {progress: [damage, boss]}, highest: true, per: %s%s}", per, rankedText(r, true))
	}
	pf("  kinds: {of: {progress: boss}, distinct: %d, per: %s%s}", 2+r.IntN(3), one("week", "day", "month"), rankedText(r, true))
	pf("  purse: {of: {gains: [gold, shield], spends: gem}, per: day, most: {per: week, count: %d}%s}", 10+r.IntN(40), rankedText(r, true))
	pf("  total: {of: {progress: [wins, damage], draws: open}%s}", rankedText(r, false))
	pf("  laps: {of: {draws: [hand, box]}, per: {season: s%d}%s}", r.IntN(3), rankedText(r, true))
}

// rankedText says whether a counter ranks players, and what they get for their ranks.
func rankedText(r *rand.Rand, rewards bool) string {
	switch n := r.IntN(8); {
	case n == 0:
		return ""
	case n < 3 || !rewards:
		return ", ranked: true"
	}
	return ", ranked: {rewards: " + prizesText(r) + "}"
}

// prizesText writes rewards by rank. Some run out, and some do not fit.
func prizesText(r *rand.Rand) string {
	last := fmt.Sprintf("{items: {cash: %d}}", []uint64{1, 1 << 51, 1 << 52}[r.IntN(3)])
	rewards := []string{
		"{items: {gem: {min: 1, max: 3}}}", "{items: {gold: 2, shield: 1}}", "[{items: {key: 1}}, {pool: five}]", "{pool: box}", "{items: {gold: 1}}", last,
	}
	text, to := "", 0
	for range 1 + r.IntN(3) {
		to += 1 + []int{0, 1, 2, 12, 30, 80}[r.IntN(6)]
		text += fmt.Sprintf(", {to: %d, reward: %s}", to, rewards[r.IntN(len(rewards))])
	}
	return "[" + text[2:] + "]"
}

// crowdRequest lets more players count than one step of what is due pays.
func crowdRequest(r *rand.Rand) kuji.Request {
	var all kuji.Atomic
	events := [][]string{{"wins", "wins"}, {"damage", "damage"}, {"boss", "boss"}, {"wins", "damage"}}[r.IntN(4)]
	for i := range []int{20, 70, 70}[r.IntN(3)] {
		event := events[r.IntN(2)]
		all.Members = append(all.Members, kuji.Progress{Player: fmt.Sprint("crowd", i), Event: event, N: 1 + r.Uint64N(3), Key: "a"})
	}
	return all
}
