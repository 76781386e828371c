package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Quests: what is reached, what a claim must give, and which ones must have claimed themselves.

// taken is how many tiers of a quest a player has claimed, in a period.
type taken struct {
	tiers  int
	period int64
}

// claimsOf names what a player has claimed of a quest. If it begins again at other times, that is another thing.
func claimsOf(q *catalog.Quest, player string) string {
	return fmt.Sprint(q.ID, " ", q.Per, " of ", player)
}

func (b goalBook) claimed(q *catalog.Quest, player string, now int64) int {
	t := b.quests[claimsOf(q, player)]
	if t.period < b.period(q.Per.Per, now) {
		return 0
	}
	return t.tiers
}

func (b goalBook) claim(q *catalog.Quest, player string, tiers int, now int64) {
	id := claimsOf(q, player)
	b.quests[id] = taken{tiers, max(b.quests[id].period, b.period(q.Per.Per, now))}
}

// quest returns a quest, nil if the catalog does not have it.
func (r rulebook) quest(id string) *catalog.Quest {
	for i := range r.catalog.Quests {
		if r.catalog.Quests[i].ID == id {
			return &r.catalog.Quests[i]
		}
	}
	return nil
}

// tierPool is a pool whose one entry gives the reward of a tier.
func tierPool(q *catalog.Quest, tier int) *catalog.Pool {
	return rewardPool(fmt.Sprint("quest ", q.ID, " ", tier), &q.Steps()[tier].Reward)
}

// rewardPool is a pool whose one entry gives a reward.
func rewardPool(id string, w *catalog.Reward) *catalog.Pool {
	return &catalog.Pool{
		ID: id, Mode: catalog.ModeWeighted, Rolls: catalog.Rolls{Min: 1, Max: 1}, MaxCount: 1, WeightScale: 1,
		Entries: []catalog.Entry{{ID: "reward", Weight: 1, Stock: catalog.Stock{Unlimited: true}, Reward: *w}},
	}
}

// claimable returns how a Claim must end.
func (t *trial) claimable(rec kuji.Record) (status kuji.Status, subject string) {
	q := t.quest(rec.Quest)
	sure, _ := t.meet(rec.Player)
	if !t.fulfils(&q.When, nil, rec.Player, sure, t.sight) {
		return kuji.NotReached, q.ID
	}
	claimed, n := t.sight.claimed(q, rec.Player, t.now), 0
	if claimed >= len(q.Steps()) {
		return kuji.AlreadyClaimed, q.ID
	}
	for i := claimed; i < len(q.Steps()) && (rec.Count == 0 || n < rec.Count); i++ {
		if status, subject = t.tier(q, i, rec.Player, sure); status != kuji.OK {
			break
		}
		n++
		status, subject = kuji.NotReached, q.ID // if the quest has no more tiers than these
	}
	if n == 0 || n < rec.Count {
		return status, subject
	}
	t.sight.claim(q, rec.Player, claimed+n, t.now)
	t.tiers = append(t.tiers, n)
	return kuji.OK, ""
}

// tier returns why a tier cannot be claimed. If it can, its reward counts for what comes later.
func (t *trial) tier(q *catalog.Quest, tier int, player string, sure map[string]uint64) (kuji.Status, string) {
	if !(ledger{t.model, t.sight}).stand(q.Steps()[tier].Needs, player) {
		return kuji.NotReached, q.ID
	}
	p, need := tierPool(q, tier), uint64(1)
	for _, e := range t.earlier {
		if intersect(t.below(p), t.below(e.pool)) {
			need += uint64(e.rec.Count) * t.leaves(e.pool)
		}
	}
	if !t.stocked(p, player, sure, need) {
		return kuji.RewardUnavailable, q.ID
	}
	if status, full := t.overflows(p, player, 1); full != "" {
		return status, full
	}
	t.earlier = append(t.earlier, trialDraw{rec: kuji.Record{Player: player, Count: 1}, pool: p})
	return kuji.OK, ""
}

// questing judges what a model's players claim, and what claims itself.
type questing struct{ *model }

// claims judges the claims of a Claim, n tiers, and returns those that follow.
func (m questing) claims(rec kuji.Record, n int) (rest []kuji.Claimed, err error) {
	if len(rec.Claims) < n {
		return nil, fmt.Errorf("%d tiers of %s were claimed, the model says %d", len(rec.Claims), rec.Quest, n)
	}
	for _, c := range rec.Claims[:n] {
		if c.Quest != rec.Quest {
			return nil, fmt.Errorf("a claim of %s claimed %s", rec.Quest, c.Quest)
		}
		if err := m.claim(c, rec.Player); err != nil {
			return nil, err
		}
	}
	return rec.Claims[n:], nil
}

// claim follows what one tier gave.
func (m questing) claim(c kuji.Claimed, player string) error {
	q, h := m.quest(c.Quest), m.meet(player)
	tier := m.goals.claimed(q, player, m.now)
	if c.Tier != tier+1 || tier >= len(q.Steps()) {
		return fmt.Errorf("%s claimed tier %d of %s, the model says %d come before", player, c.Tier, q.ID, tier)
	}
	m.goals.claim(q, player, tier+1, m.now)
	k := walk{model: m.model, player: player, h: h, now: &kuji.Outcome{Entry: q.ID, Items: c.Items, Codes: c.Codes}}
	for _, via := range c.Via {
		k.steps = append(k.steps, drawnEntry{name: via})
	}
	if err := k.give(&q.Steps()[tier].Reward); err != nil {
		return fmt.Errorf("tier %d of quest %s: %w", c.Tier, q.ID, err)
	}
	if err := k.finish(); err != nil {
		return fmt.Errorf("tier %d: %w", c.Tier, err)
	}
	if len(k.steps) > 0 {
		return fmt.Errorf("tier %d of quest %s: %s was drawn and belongs to nothing", c.Tier, q.ID, k.steps[0].name)
	}
	return nil
}

// reached returns the next tiers of automatic quests that players have reached and not claimed, as quest,
// player and tier.
func (m questing) reached() map[string]bool {
	all := map[string]bool{}
	for i := range m.catalog.Quests {
		q := &m.catalog.Quests[i]
		for player := range m.players {
			if q.Claim == catalog.ClaimAutomatic && m.reaches(q, player) {
				all[fmt.Sprint(q.ID, "/", player, "/", m.goals.claimed(q, player, m.now))] = true
			}
		}
	}
	return all
}

func (m questing) reaches(q *catalog.Quest, player string) bool {
	tier := m.goals.claimed(q, player, m.now)
	return tier < len(q.Steps()) && m.fulfils(&q.When, nil, player, m.players[player].items, m.goals) &&
		ledger{m.model, m.goals}.stand(q.Steps()[tier].Needs, player)
}

// fires judges the quests that claimed themselves in an event: each was reached, and none that the event has
// reached is left, unless its reward does not fit. before is what was reached before.
func (m questing) fires(rec kuji.Record, claims []kuji.Claimed, before map[string]bool) error {
	for _, c := range claims {
		q, player := m.quest(c.Quest), c.Player
		if player == "" {
			player = rec.Player
		}
		if q == nil || q.Claim != catalog.ClaimAutomatic || !m.reaches(q, player) {
			return fmt.Errorf("%s claimed itself for %s, who has not reached it", c.Quest, player)
		}
		if err := m.claim(c, player); err != nil {
			return err
		}
	}
	for key := range m.reached() {
		id, rest, _ := strings.Cut(key, "/")
		player, _, _ := strings.Cut(rest, "/")
		q := m.quest(id)
		if before[key] || !m.wakes(q, player) || !m.fitsEasily(rec, q, player) {
			continue
		}
		return fmt.Errorf("%s has reached %s in this event, and it did not claim itself", player, key)
	}
	return nil
}

// wakes reports whether an event that a player takes part in can reach a quest for them: of a counter of the
// realm, only who has moved it does.
func (m questing) wakes(q *catalog.Quest, player string) bool {
	unmoved := func(c catalog.Counted) bool {
		return m.counter(c.Counter).For == catalog.ForRealm && !m.movers[c.Counter+" "+player]
	}
	return !slices.ContainsFunc(q.Steps(), func(t catalog.Tier) bool { return slices.ContainsFunc(t.Needs, unmoved) }) &&
		!slices.ContainsFunc(q.When.Counters, unmoved)
}

// fitsEasily reports whether the reward of a quest's next tier is there, and its quantities are far from what a
// player can hold, so that it must be given.
func (m questing) fitsEasily(rec kuji.Record, q *catalog.Quest, player string) bool {
	const few = kuji.MaxQuantity / 1000
	p := tierPool(q, m.goals.claimed(q, player, m.now))
	for _, it := range m.catalog.Items {
		n := m.best(p, it.ID)
		if n > few || n > 0 && m.players[player].items[it.ID] > few || !m.capFits(rec, m.players[player], it.ID, n) {
			return false
		}
	}
	many := func(r kuji.Record) bool {
		return slices.ContainsFunc(r.Items, func(it kuji.Stack) bool { return it.Quantity > few })
	}
	return !many(rec) && !slices.ContainsFunc(rec.Members, many) && len(rec.Claims) < 50 && !m.manyGiven(rec, few) &&
		m.stocked(p, player, m.players[player].items, 1)
}

// manyGiven reports whether claims have given much of an item.
func (m questing) manyGiven(rec kuji.Record, few uint64) bool {
	claims := slices.Clone(rec.Claims)
	for _, r := range rec.Members {
		claims = append(claims, r.Claims...)
	}
	return slices.ContainsFunc(claims, func(c kuji.Claimed) bool {
		return slices.ContainsFunc(c.Items, func(it kuji.Stack) bool { return it.Quantity > few })
	})
}

// questsText writes quests: claimed and automatic, with tiers and without, in chains, with periods, and with
// rewards that may be gone or not fit.
func questsText(r *rand.Rand, bosses string, pf func(string, ...any)) {
	pf("quests:")
	pf("  seller: {needs: {sold: %d}, reward: {items: {gold: 5}}}", 1)
	pf("  hunter:\n    tiers:")
	pf("      - {needs: {bosses: 1}, reward: {items: {gold: {min: 1, max: 3}}}}")
	pf("      - {needs: {hits: %d}, reward: [{items: {key: 1}}, {pool: five}]}", 1+r.IntN(2))
	pf("      - {needs: {bosses: 2, hits: 3}, reward: {pool: box}}")
	if bosses == "forever" { // otherwise the quest begins again when the counter does
		pf("    per: %s", []string{"day", "week", "forever"}[r.IntN(3)])
	}
	pf("  winner: {claim: automatic, needs: {wins: %d}, reward: {items: {gem: 2}}}", 1+r.IntN(5))
	pf("  after: {claim: automatic, needs: {wins: 1}, when: {quests: {winner: 1}}, reward: {pool: hand}}")
	pf("  giant: {claim: automatic, needs: {raid: %d}, reward: {pool: box}}", 5+r.IntN(20))
	pf("  rich:\n    claim: automatic\n    when: {holds: {clover: 1}, lacks: [card-c]}\n    tiers:")
	for n := range 4 {
		pf("      - {needs: {earned: %d}, reward: {items: {key: 1, gold: %d}}}", 2+3*n, 1+n)
	}
	pf("  miser: {per: day, needs: {spent: {max: 3}}, when: {counters: {best: {max: 1000}}}, reward: {items: {shield: %d}}}",
		[]uint64{1, 1, 1 << 52}[r.IntN(3)])
	pf("  hoard: {claim: automatic, per: day, needs: {eaten: 2}, reward: {items: {cash: %d}}}", []uint64{1, 1, 1 << 52}[r.IntN(3)])
	if r.IntN(2) == 0 {
		pf("  gift: {when: {quests: {seller: 1}, counters: {nights: {max: 3}}}, reward: {items: {clover: 1}}}")
	}
}

// claimRequest claims a quest.
func claimRequest(r *rand.Rand, player string) kuji.Request {
	quests := []string{"seller", "seller", "hunter", "hunter", "hunter", "winner", "giant", "rich", "miser", "miser", "hoard", "gift", "after"}
	if r.IntN(30) == 0 {
		return kuji.Claim{Player: player, Quest: "nosuch"}
	}
	return kuji.Claim{Player: player, Quest: quests[r.IntN(len(quests))], Tiers: r.IntN(3) * r.IntN(2)}
}
