package sim

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// trial works out, member by member, how a command must end. It does not know what draws give, so it
// keeps the least and the most that each player can hold at each point.
type trial struct {
	*model
	sure    map[string]map[string]uint64 // without what the command's draws give
	upmost  map[string]map[string]uint64 // with the most that they can give
	posted  map[string]map[string]uint64 // what may be mailed, by player and item
	earlier []trialDraw                  // draws of the command so far, and tiers that it claims
	sight   goalBook                     // with what is certain before anything is drawn
	tiers   []int                        // how many each Claim of the command claims
	came    map[string]bool              // who got the starting grants in the command
	wrong   string                       // the subject of the failure, from the event
	limit   *kuji.Limit                  // the one that is reached
	lacks   []kuji.Lack                  // the items of which the player holds too few
}

// explained compares what an event says about its failure. The tests of the rules check when a limit
// resets.
func (t *trial) explained(rec kuji.Record) error {
	if !slices.Equal(rec.Lacks, t.lacks) {
		return fmt.Errorf("the player lacks %v, the model says %v", rec.Lacks, t.lacks)
	}
	got, want := rec.Limit, t.limit
	if (got != nil) != (want != nil) || got != nil && (got.Per != want.Per || got.Window != want.Window || got.Draws != want.Draws || got.Left != want.Left) {
		return fmt.Errorf("the limit is %+v, the model says %+v", got, want)
	}
	return nil
}

// short notes of which items a player holds less than needed.
func (t *trial) short(player string, need []kuji.Stack, pay string) {
	sure, _ := t.meet(player)
	t.lacks = nil
	for _, it := range need {
		if have := (prices{t.rulebook}).payable(sure, need, pay, it.Item); have < it.Quantity {
			t.lacks = append(t.lacks, kuji.Lack{Item: it.Item, Have: have, Need: it.Quantity})
		}
	}
}

// trialDraw is a draw that passed its checks.
type trialDraw struct {
	rec   kuji.Record
	pool  *catalog.Pool
	price []kuji.Stack
	free  int // draws
}

// meet returns the least and the most that a player can hold.
func (t *trial) meet(id string) (sure, most map[string]uint64) {
	if t.sure[id] != nil {
		return t.sure[id], t.upmost[id]
	}
	sure, most = map[string]uint64{}, map[string]uint64{}
	t.sure[id], t.upmost[id] = sure, most
	if h := t.players[id]; h != nil {
		for item, n := range h.items {
			sure[item], most[item] = n, n+h.held[item]
		}
	}
	return sure, most
}

// come gives a player the starting grants, once. If one does not fit, it says why.
func (t *trial) come(id string) (status kuji.Status, full string) {
	h := t.players[id]
	if t.came[id] || h != nil && !h.waits {
		return kuji.OK, ""
	}
	t.came[id] = true
	for _, s := range t.catalog.Start {
		if status := t.give(id, s, false); status != kuji.OK {
			return status, s.Item
		}
	}
	ledger{t.model, t.sight}.startsGained(id)
	return kuji.OK, ""
}

func (t *trial) take(player string, it kuji.Stack) bool {
	sure, most := t.meet(player)
	if sure[it.Item] < it.Quantity {
		return false
	}
	sure[it.Item] -= it.Quantity
	most[it.Item] -= it.Quantity
	return true
}

// give adds a gain that is sure. moves: it comes from another player.
func (t *trial) give(player string, it kuji.Stack, moves bool) kuji.Status {
	if status := t.fill(player, it, true, moves); status != kuji.OK {
		return status
	}
	if _, most := t.meet(player); most[it.Item] > kuji.MaxQuantity {
		return kuji.BalanceOverflow
	}
	return kuji.OK
}

// member returns how a member must end.
func (t *trial) member(rec kuji.Record) (kuji.Status, string) {
	if rec.Kind == "redeem" {
		return t.redeemable(rec)
	}
	if isRound(rec.Kind) {
		return t.playing(rec)
	}
	if comes(rec) {
		if status, full := t.come(rec.Player); status != kuji.OK {
			return status, full
		}
	}
	switch rec.Kind {
	case "draw":
		return t.drawable(rec)
	case "claim":
		return t.claimable(rec)
	case "progress":
		ledger{t.model, t.sight}.reports(rec)
	case "set_counter":
		if c := t.counter(rec.Counter); t.frozen(c) {
			return kuji.Ended, c.ID
		}
	case "collect":
		if len((holdings{t.model}).collectable(rec.Player)) == 0 {
			return kuji.NothingToCollect, ""
		}
		return kuji.OK, "" // Items are what it gave
	}
	ledger{t.model, t.sight}.itemFacts(rec)
	for i, it := range rec.Items {
		if rec.Kind != "grant" && !t.take(rec.Player, it) {
			t.short(rec.Player, rec.Items[i:], "")
			return kuji.InsufficientItems, it.Item
		}
		to := rec.Player
		if rec.Kind == "transfer" {
			to = rec.To
		}
		if rec.Kind == "consume" {
			continue
		}
		if status := t.give(to, it, rec.Kind == "transfer"); status != kuji.OK {
			return status, it.Item
		}
	}
	return kuji.OK, ""
}

func (t *trial) drawable(rec kuji.Record) (kuji.Status, string) {
	p := t.pool(rec.Pool)
	switch {
	case p.StartsAt != 0 && t.now < p.StartsAt:
		return kuji.NotStarted, p.ID
	case p.EndsAt != 0 && t.now >= p.EndsAt:
		return kuji.Ended, p.ID
	case rec.Count > int(p.MaxCount):
		return kuji.CountTooLarge, p.ID
	}
	sure, _ := t.meet(rec.Player)
	if !t.fulfils(&p.When, p, rec.Player, sure, t.sight) {
		return kuji.NotEligible, p.ID
	}
	before, need := 0, uint64(rec.Count)*uint64(p.Rolls.Max)
	for _, e := range t.earlier {
		if e.rec.Player == rec.Player && e.rec.Pool == rec.Pool {
			before += e.rec.Count
		}
		if intersect(t.below(p), t.below(e.pool)) {
			need += uint64(e.rec.Count) * t.leaves(e.pool)
		}
	}
	for _, l := range p.Limits {
		if used := uint64(t.used(rec.Player, p, l) + before); used+uint64(rec.Count) > l.Draws {
			t.limit = &kuji.Limit{Per: l.Per, Window: l.Window, Draws: l.Draws, Left: l.Draws - min(l.Draws, used)}
			return kuji.LimitReached, p.ID
		}
	}
	d := trialDraw{rec: rec, pool: p}
	if rec.Kind == "draw" {
		d.free = t.freeDraws(p, rec)
		if status, subject := t.price(p, &d); status != kuji.OK {
			return status, subject
		}
	}
	for _, it := range d.price {
		t.take(rec.Player, it)
	}
	if !t.stocked(p, rec.Player, sure, need) {
		return kuji.SoldOut, p.ID
	}
	if status, full := t.overflows(p, rec.Player, uint64(rec.Count)); full != "" {
		return status, full
	}
	t.earlier = append(t.earlier, d)
	if rec.Kind == "draw" {
		ledger{t.model, t.sight}.stacks(rec.Player, d.price, ofSpends)
	}
	for range rec.Count {
		ledger{t.model, t.sight}.facts(rec.Player, 1, p.ID, ofDraws)
	}
	return kuji.OK, ""
}

// overflows adds the most that draws can give. If an item does not fit then, it says why.
func (t *trial) overflows(p *catalog.Pool, player string, draws uint64) (status kuji.Status, full string) {
	_, most := t.meet(player)
	for _, it := range t.catalog.Items {
		if it.Most == 0 && most[it.ID]+t.best(p, it.ID)*draws > kuji.MaxQuantity && (full == "" || it.ID == t.wrong) {
			full = it.ID // any of several will do
		}
	}
	if full != "" {
		return kuji.BalanceOverflow, full
	}
	for _, it := range t.catalog.Items {
		if it.Most == 0 {
			most[it.ID] += t.best(p, it.ID) * draws
		}
	}
	return t.fillAll(p, player, draws)
}

// used returns how much of a limit a player has used before the command.
func (m *model) used(player string, p *catalog.Pool, l catalog.PlayerLimit) (n int) {
	h := m.players[player]
	if h == nil {
		return 0
	}
	for _, at := range h.draws[limit{p.ID, l.Per, l.Window}] {
		if at > since(m, l) {
			n++
		}
	}
	return n
}

// freeDraws returns how many of the draws that a player asks for are free.
func (t *trial) freeDraws(p *catalog.Pool, rec kuji.Record) int {
	if p.Free.Per == 0 {
		return 0
	}
	used := 0
	if h := t.players[rec.Player]; h != nil {
		for _, at := range h.free[limit{pool: p.ID, per: p.Free.Per}] {
			if at > since(t.model, catalog.PlayerLimit{Per: p.Free.Per}) {
				used++
			}
		}
	}
	for _, e := range t.earlier {
		if e.rec.Player == rec.Player && e.rec.Pool == rec.Pool {
			used += e.free
		}
	}
	return min(rec.Count, max(0, int(p.Free.Draws)-used))
}

// price chooses what a draw costs a player who has d.free free draws: the first offer that they can
// pay and that takes the item they want to pay with. Of two such offers, the one that uses fewer free
// draws wins unless it costs more of some item.
func (t *trial) price(p *catalog.Pool, d *trialDraw) (status kuji.Status, subject string) {
	if len(p.Price) > 0 && d.rec.Count == d.free || len(p.Price) == 0 && d.rec.Pay == "" {
		return kuji.OK, ""
	}
	sure, _ := t.meet(d.rec.Player)
	most := d.free
	status, subject = kuji.PriceNotOffered, d.rec.Pay
	offer := func(price []kuji.Stack, free int) {
		wanted, short, dearer := d.rec.Pay == "", "", false
		for _, it := range price {
			wanted = wanted || slices.Contains([]string{it.Item, ""}, d.rec.Pay) || slices.Contains(t.kin(it.Item), d.rec.Pay)
			if short == "" && (prices{t.rulebook}).payable(sure, price, d.rec.Pay, it.Item) < it.Quantity {
				short = it.Item
			}
			dearer = dearer || !slices.ContainsFunc(d.price, func(o kuji.Stack) bool { return o.Item == it.Item && o.Quantity >= it.Quantity })
		}
		switch {
		case !wanted:
		case short == "" && (status != kuji.OK || free < most && !dearer):
			d.price, d.free, status, subject, t.lacks = price, free, kuji.OK, "", nil
		case short != "" && status == kuji.PriceNotOffered: // of several that cost too much, the first one counts
			status, subject = kuji.InsufficientItems, short
			t.short(d.rec.Player, price, d.rec.Pay)
		}
	}
	singles := p.Price
	if !p.PriceBy.Empty() {
		singles = nil
		offer(t.bill(p, d.rec.Player, most, d.rec.Count), most)
	}
	for _, b := range p.Bundles {
		if int(b.Draws) == d.rec.Count-most {
			offer(times(b.Price, 1), most)
		}
	}
	for _, one := range singles {
		offer(times(one, uint64(d.rec.Count-most)), most)
	}
	for _, b := range p.Bundles {
		if free := d.rec.Count - int(b.Draws); 0 <= free && free < most {
			offer(times(b.Price, 1), free)
		}
	}
	d.price = prices{t.rulebook}.takes(sure, d.price, d.rec.Pay)
	return status, subject
}

func times(price []catalog.Stack, n uint64) (all []kuji.Stack) {
	for _, s := range price {
		all = append(all, kuji.Stack{Item: s.Item, Quantity: s.Quantity * n})
	}
	return all
}
