package simulate

import (
	"fmt"
	"strconv"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// standings is what a crowd has found of rewards by rank, by the place of counters in the catalog, and of items
// that grow or that a player can hold only so many of, by their numbers.
type standings struct {
	ended, awarded, missed []uint64
	won                    [][]uint64 // items, by number
	grown                  []uint64
	beyond                 [store.Gone + 1][]uint64
	collected              []uint64
}

func newStandings(p *plan) (s standings) {
	n, items := len(p.c.Counters), len(p.c.Items)
	s.ended, s.awarded, s.missed = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for range n {
		s.won = append(s.won, make([]uint64, items))
	}
	s.grown, s.collected = make([]uint64, items), make([]uint64, items)
	for i := range s.beyond {
		s.beyond[i] = make([]uint64, items)
	}
	return s
}

func (s *standings) add(o *standings) {
	addAll(s.ended, o.ended)
	addAll(s.awarded, o.awarded)
	addAll(s.missed, o.missed)
	for i := range s.won {
		addAll(s.won[i], o.won[i])
	}
	addAll(s.grown, o.grown)
	addAll(s.collected, o.collected)
	for i := range s.beyond {
		addAll(s.beyond[i], o.beyond[i])
	}
}

// findRanks finds what ranks give, and the most codes of one list that they can give at once. Players who are
// ranked for something depend on each other.
func findRanks(p *plan) (codes uint64) {
	p.rankedAt = map[uint32]int{}
	for i, c := range p.tables.Counters {
		n := 0
		for w := range c.Prizes() {
			codes = max(codes, p.findGiven(w, &c.Config.Ranked.Rewards[n].Reward))
			n++
		}
		if n > 0 {
			p.rankedAt[c.Num] = i
			p.prized, p.realmWide = true, true
		}
	}
	return codes * rules.SweepPlayers
}

// settle settles what is due before a command, as the engine does: for its player, and for counters that rank
// players.
func (c *crowd) settle(cmd *rules.Command, now int64) error {
	for c.rules.DueFor(cmd, now, &c.dues) {
		if ok, err := settleOne(c, now); err != nil || !ok {
			return err
		}
	}
	for c.prized && c.rules.Sweep(now, rules.SweepPlayers, &c.dues) && c.dues.Ranking.Count > 0 {
		if ok, err := settleOne(c, now); err != nil || !ok {
			return err
		}
	}
	return nil
}

func settleOne(c *crowd, now int64) (ok bool, err error) {
	if err := c.stockCodes(); err != nil {
		return false, err
	}
	c.out.Buf = c.out.Buf[:0]
	if !c.rules.DecideDue(&c.dues, now, c.src, &c.out) {
		return false, nil
	}
	if err := c.apply(now); err != nil {
		return false, err
	}
	if d := &c.dues.Ranking; d.Count > 0 && d.From == 0 {
		c.ended[c.rankedAt[d.Counter]]++
	}
	return true, tellDue(c, now)
}

// tellDue counts what an event has given that settles something.
func tellDue(c *crowd, now int64) error {
	var (
		e             store.Effect
		r             = c.event.Changes()
		i             int
		of            []uint64 // what is given now, by item; nil: what comes back
		base          int32
		counter, tier = -1, -1
	)
	for r.Next(&e) {
		switch e.Verb {
		case store.Player:
			at, err := strconv.Atoi(c.state.PlayerID(e.N))
			if err != nil {
				return fmt.Errorf("player %d: %w", e.N, err)
			}
			i, of = at-c.first, nil
		case store.Claim:
			if k, is := c.rankedAt[e.N]; is {
				if counter, of = k, c.won[k]; e.Value&1 == 0 {
					c.awarded[counter]++
				} else {
					c.missed[counter]++
				}
			} else {
				tier = c.questAt[e.N]
				of = c.quests.prizes[tier]
				c.quests.claimed(c.farthest[i*len(c.c.Quests):], tier, e.Value)
			}
		case store.Pool:
			base = c.firstLine[e.N]
		case store.Take:
			if base >= 0 && c.shared && c.lines[base+int32(e.N)].limited() {
				c.low = append(c.low, base+int32(e.N))
			}
		case store.GiveCode:
			c.giveCode(e.N)
		case store.Tally:
			c.spend(e.N, e.Value, now)
		case store.Beyond:
			isBeyond(c, i, &e)
		case store.Grow:
			c.grown[e.N] += e.Value
		case store.Gain:
			if of != nil {
				of[e.N] += e.Value
				stopWith(c, i, e.N)
			}
		}
	}
	if c.shared {
		c.watch(now)
	}
	return r.Err()
}

// stopWith stops a player who has got the item of Until.
func stopWith(c *crowd, i int, item uint32) {
	if item == c.untilItem && !c.players[i].stopped {
		c.players[i].stopped = true
		c.reached(i)
	}
}

// isBeyond counts what a player did not get.
func isBeyond(c *crowd, i int, e *store.Effect) {
	how := store.How(e.Bytes[0])
	c.beyond[how][e.N] += e.Value
	switch how {
	case store.Mailed:
		c.waits[i] += e.Value
	case store.Gone:
		c.waits[i] -= min(c.waits[i], e.Value)
	}
}

// collectMail gives a player what fits from the mailbox.
func collectMail(c *crowd, i int, now int64) error {
	if c.waits[i] == 0 {
		return nil
	}
	c.collects.Player = c.cmd.Player
	c.collects.Change()
	if st, err := c.do(&c.collects, now); err != nil || st != rules.OK {
		return err
	}
	var e store.Effect
	r := c.event.Changes()
	for r.Next(&e) {
		switch e.Verb {
		case store.Grow:
			c.grown[e.N] += e.Value
		case store.Gain:
			c.collected[e.N] += e.Value
			c.waits[i] -= min(c.waits[i], e.Value)
		}
	}
	return r.Err()
}

// holding returns how many of an item a player has, with what has grown.
func holding(c *crowd, player, item uint32, now int64) uint64 {
	balance := c.state.Balance(player, item)
	if g := c.tables.GrowthOf(item); g != nil {
		balance, _ = g.At(balance, c.state.Counter(player, g.Since), uint64(max(now, c.state.Now())+c.state.Back()))
	}
	return balance
}

// Ranking is what the ranks of a counter have given.
type Ranking struct {
	Counter string  `json:"counter"`
	Ended   uint64  `json:"periods_ended"`
	Paid    uint64  `json:"ranks_paid"`
	Missed  uint64  `json:"ranks_missed,omitempty"` // their rewards were not there, or did not fit
	Given   []Prize `json:"given,omitempty"`
}

// Beyond is how many of an item players did not get, as they had the most of it.
type Beyond struct {
	Item      string `json:"item"`
	Cut       uint64 `json:"cut,omitempty"`
	Mailed    uint64 `json:"mailed,omitempty"`
	Collected uint64 `json:"collected,omitempty"` // of what was mailed
	Gone      uint64 `json:"gone,omitempty"`      // before it was collected
}

func reportRanks(p *plan, t *tally) (all []Ranking) {
	for i := range p.c.Counters {
		if c := &p.c.Counters[i]; len(c.Ranked.Rewards) > 0 {
			all = append(all, Ranking{c.ID, t.ended[i], t.awarded[i], t.missed[i], prizesOf(p, t.won[i])})
		}
	}
	return all
}

func reportBeyond(p *plan, t *tally) (all []Beyond) {
	for i := range p.c.Items {
		b := Beyond{p.c.Items[i].ID, t.beyond[store.Cut][i], t.beyond[store.Mailed][i], t.collected[i], t.beyond[store.Gone][i]}
		if b.Cut+b.Mailed > 0 {
			all = append(all, b)
		}
	}
	return all
}
