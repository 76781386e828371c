package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Rounds: who has joined, what is held, when each ends, and what its winners may get. The model reads who has won from
// the event, and computes what that person must get, and what becomes of every stake.

// keptFor is how long a closed round can be read, in milliseconds.
const keptFor = 24 * hourMillis

// roundBook is the rounds of a realm, and what they have left in pots.
type roundBook struct {
	last   uint64 // how many were opened
	rounds map[uint64]*played
	pots   map[string]pot   // by pot and item
	turns  map[string]int64 // by id and period: the last one for which the calendar opened the round
}

// played is a round that was opened.
type played struct {
	number   uint64
	name     string
	state    string // open, settled, returned
	opener   string
	opened   int64 // steady time
	until    int64 // steady time; 0: none. Of one that is closed, when it is forgotten
	every    catalog.Per
	period   int64 // of the calendar that opened it
	entrants uint64
	tickets  uint64
	joined   []joiner // of one that is closed: if winners can be drawn again
	winners  []kuji.Claimed
	fades    bool // it is forgotten, but for its entrants
}

// joiner is an entrant.
type joiner struct {
	player  string
	tickets uint64
	held    []kuji.Stack
}

// pot is what a pot has of an item.
type pot struct{ units, millionths uint64 }

func newRoundBook() roundBook {
	return roundBook{rounds: map[uint64]*played{}, pots: map[string]pot{}, turns: map[string]int64{}}
}

func (b roundBook) clone() roundBook {
	rounds := make(map[uint64]*played, len(b.rounds))
	for n, r := range b.rounds {
		c := *r
		c.joined, c.winners = slices.Clone(r.joined), slices.Clone(r.winners)
		rounds[n] = &c
	}
	b.rounds, b.pots, b.turns = rounds, maps.Clone(b.pots), maps.Clone(b.turns)
	return b
}

// round returns a round of the catalog, nil if it does not have it.
func (r rulebook) round(id string) *catalog.Round {
	for i := 0; r.catalog != nil && i < len(r.catalog.Rounds); i++ {
		if r.catalog.Rounds[i].ID == id {
			return &r.catalog.Rounds[i]
		}
	}
	return nil
}

// isRound reports whether a command is about a round.
func isRound(kind string) bool {
	return slices.Contains([]string{"open_round", "join", "settle", "reroll", "cancel_round"}, kind)
}

// named returns the open round of a name that was opened last, nil if there is none.
func (b roundBook) named(name string) (last *played) {
	for _, r := range b.rounds {
		if r.name == name && r.state == "open" && (last == nil || r.number > last.number) {
			last = r
		}
	}
	return last
}

func (r *played) entrant(player string) *joiner {
	for i := range r.joined {
		if r.joined[i].player == player {
			return &r.joined[i]
		}
	}
	return nil
}

// heldOf returns how much of an item an entrant has held.
func (j *joiner) heldOf(item string) (n uint64) {
	for _, it := range j.held {
		if it.Item == item {
			n += it.Quantity
		}
	}
	return n
}

// playing returns how a command about a round must end.
func (t *trial) playing(rec kuji.Record) (kuji.Status, string) {
	of, c := rec.Round, t.round(rec.Round.Name)
	r := t.book.rounds.named(of.Name)
	if rec.Kind == "reroll" || rec.Kind == "cancel_round" {
		if r = t.book.rounds.rounds[of.Number]; r != nil && r.name != of.Name {
			r = nil
		}
	}
	switch {
	case rec.Kind == "open_round" && r != nil && c.One:
		return kuji.AlreadyOpen, ""
	case rec.Kind == "open_round" && rec.Player == "":
		return kuji.OK, ""
	case rec.Kind == "open_round" && c.Ticket.Is && rec.Count == 0:
		return t.come(rec.Player)
	case rec.Kind == "open_round":
		return t.joins(rec, c, &played{})
	case r == nil:
		return kuji.UnknownRound, ""
	case rec.Kind == "join":
		return t.joins(rec, c, r)
	case rec.Kind == "reroll":
		return t.rerolls(c, r), ""
	case r.state != "open" || r.fades:
		return kuji.RoundClosed, ""
	}
	return kuji.OK, ""
}

func (t *trial) rerolls(c *catalog.Round, r *played) kuji.Status {
	more := c.Winners.Rerolls
	switch {
	case r.state != "settled" || r.fades || more.Most == 0 || t.steady() >= r.until-max(more.Within, keptFor)+more.Within:
		return kuji.RoundClosed
	case uint64(len(r.winners)) >= r.entrants || len(r.winners) >= int(c.Winners.Count+more.Most):
		return kuji.NobodyLeft
	}
	return kuji.OK
}

// joins returns how it must end that a player joins a round.
func (t *trial) joins(rec kuji.Record, c *catalog.Round, r *played) (kuji.Status, string) {
	if status, full := t.come(rec.Player); status != kuji.OK {
		return status, full
	}
	stake, ok := stakeOf(rec, c, r)
	switch {
	case r.entrant(rec.Player) != nil:
		return kuji.AlreadyJoined, ""
	case len(r.joined) >= int(c.Entrants.Max):
		return kuji.RoundFull, ""
	case !ok:
		return kuji.WrongStake, ""
	}
	sure, _ := t.meet(rec.Player)
	for i, it := range stake {
		if sure[it.Item] < it.Quantity {
			t.short(rec.Player, stake[i:], "")
			return kuji.InsufficientItems, it.Item
		}
	}
	return kuji.OK, ""
}

// stakeOf returns what is held of a player who joins a round, and whether the round takes it.
func stakeOf(rec kuji.Record, c *catalog.Round, r *played) (all []kuji.Stack, ok bool) {
	if c.Ticket.Is {
		return times(c.Ticket.Price, uint64(max(rec.Count, 1))), true
	}
	if c.Stake.Same && len(r.joined) > 0 {
		first := r.joined[0].held
		all = rec.Items
		if len(all) == 0 {
			all = first
		}
		return all, len(all) == len(first) && !slices.ContainsFunc(all, func(it kuji.Stack) bool { return !slices.Contains(first, it) })
	}
	units := uint64(0)
	for _, it := range rec.Items {
		if it.Item != c.Stake.Item {
			return rec.Items, false
		}
		units += it.Quantity
	}
	return rec.Items, c.Stake.Min <= units && units <= c.Stake.Max
}

// hosts carries out what happens to rounds.
type hosts struct{ *model }

// carry carries out a command about a round. It returns the claims of the event that are not of winners.
func (m hosts) carry(rec kuji.Record) (rest []kuji.Claimed, err error) {
	c := m.round(rec.Round.Name)
	r := m.rounds.rounds[rec.Round.Number]
	rest = rec.Claims
	switch rec.Kind {
	case "open_round":
		r = m.opens(rec.Round.Name, rec.Player)
		if c.Open > 0 {
			r.until = m.steady() + c.Open
		}
		if rec.Player != "" && (!c.Ticket.Is || rec.Count > 0) {
			m.enters(rec, c, r)
		}
	case "join":
		m.enters(rec, c, r)
	case "settle":
		rest, err = m.closes(r, rec.Claims)
	case "cancel_round":
		m.returns(r)
	case "reroll":
		rest, err = m.wins(r, c, rec.Claims, 1, nil)
	}
	if err != nil {
		return nil, err
	}
	return rest, m.sameRound(r, rec.Round)
}

func (m hosts) opens(name, player string) *played {
	m.rounds.last++
	r := &played{number: m.rounds.last, name: name, state: "open", opener: player, opened: m.steady()}
	m.rounds.rounds[r.number] = r
	return r
}

// enters lets a player join. A round that is full then is due.
func (m hosts) enters(rec kuji.Record, c *catalog.Round, r *played) {
	stake, _ := stakeOf(rec, c, r)
	h := m.meet(rec.Player)
	for _, it := range stake {
		holdings(m).spends(h, it.Item, it.Quantity)
		h.held[it.Item] += it.Quantity
	}
	j := joiner{rec.Player, 1, stake}
	if c.Ticket.Is {
		j.tickets = uint64(max(rec.Count, 1))
	}
	r.joined, r.entrants, r.tickets = append(r.joined, j), r.entrants+1, r.tickets+j.tickets
	if len(r.joined) == int(c.Entrants.Max) {
		r.until = m.steady()
	}
}

// gives gives back what was held of an entrant, but for what is gone.
func (m hosts) gives(j *joiner, gone func(it kuji.Stack) uint64) {
	h := m.players[j.player]
	for _, it := range j.held {
		h.held[it.Item] -= it.Quantity
		h.add(it.Item, 0, it.Quantity-gone(it))
	}
}

// returns closes a round that comes to nothing.
func (m hosts) returns(r *played) {
	r.state, r.until = "returned", m.steady()+keptFor
	for i := range r.joined {
		m.gives(&r.joined[i], func(kuji.Stack) uint64 { return 0 })
	}
	r.joined = nil
}

// closes closes a round. Of the claims of the event, it returns those that are not of winners.
func (m hosts) closes(r *played, claims []kuji.Claimed) (rest []kuji.Claimed, err error) {
	c := m.round(r.name)
	if c == nil || r.entrants < uint64(c.Entrants.Min) {
		m.returns(r)
		return claims, nil
	}
	r.state, r.until = "settled", m.steady()+max(c.Winners.Rerolls.Within, keptFor)
	n := int(c.Winners.Count)
	if c.Winners.Distinct {
		n = min(n, len(r.joined))
	}
	if len(claims) < n {
		return nil, fmt.Errorf("round %d has %d winners, the model says %d", r.number, len(claims), n)
	}
	winners := claims[:n]
	var gets []map[string]uint64
	if c.Winners.Everything {
		gets = m.divide(r, c, winners)
	} else {
		m.fills(r, c)
		gets = m.empties(c, winners)
		for i := range r.joined {
			m.gives(&r.joined[i], func(it kuji.Stack) uint64 { return it.Quantity })
		}
	}
	rest, err = m.wins(r, c, claims, n, gets)
	if c.Winners.Rerolls.Most == 0 {
		r.joined = nil
	}
	return rest, err
}

// wins judges the next n winners of a round, and what each has got: what they get of stakes or of a pot, and the reward.
func (m hosts) wins(r *played, c *catalog.Round, claims []kuji.Claimed, n int, gets []map[string]uint64) (rest []kuji.Claimed, err error) {
	again := gets == nil
	for i := range n {
		if i == len(claims) || claims[i].Place != uint64(len(r.winners))+1 || claims[i].Quest != "" || r.entrant(claims[i].Player) == nil {
			return nil, fmt.Errorf("the winners of round %d are %+v; want %d more than %+v, of %+v", r.number, claims, n, r.winners, r.joined)
		}
		won := claims[i]
		if (c.Winners.Distinct || again) && slices.ContainsFunc(r.winners, func(w kuji.Claimed) bool { return w.Player == won.Player }) {
			return nil, fmt.Errorf("%s has won round %d twice", won.Player, r.number)
		}
		r.winners = append(r.winners, won)
		var own map[string]uint64
		if !again {
			own = gets[i]
		}
		if err := m.award(c, won, own); err != nil {
			return nil, fmt.Errorf("place %d of round %d: %w", won.Place, r.number, err)
		}
	}
	return claims[n:], nil
}

// award gives a winner what they get, and compares that with the event.
func (m hosts) award(c *catalog.Round, won kuji.Claimed, gets map[string]uint64) error {
	h, want, got := m.players[won.Player], map[string]uint64{}, map[string]uint64{}
	rankings(m).lapse(h)
	for _, item := range slices.Sorted(maps.Keys(gets)) {
		want[item] += m.gain(h, item, gets[item])
	}
	missed := false
	for _, it := range c.Winners.Reward.Items { // one item, with a fixed quantity
		most, beyond := m.most(it.Item)
		over := it.Max > less(most, h.has(it.Item))
		missed = over && (beyond.Do == catalog.BeyondRefuse || beyond.Do == catalog.BeyondMail && len(h.mail) >= mostLetters)
		if !missed {
			want[it.Item] += m.gain(h, it.Item, it.Max)
		}
	}
	for _, it := range won.Items {
		got[it.Item] += it.Quantity
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if !maps.Equal(got, want) || won.Missed != missed {
		return fmt.Errorf("%+v; the model says %v, missed %v", won, want, missed)
	}
	return nil
}

// parts divides a quantity among winners.
func parts(c *catalog.Round, q uint64, winners int) (all []uint64) {
	rest := q
	for i := range winners {
		n := q / uint64(winners)
		if shares := c.Winners.Shares; len(shares) > 0 {
			n = 0
			if i < len(shares) {
				n = q * uint64(shares[i]) / 100
			}
		}
		all, rest = append(all, n), rest-n
	}
	if c.Winners.Everything && winners > 0 {
		all[0] += rest
	}
	return all
}

// divide divides all stakes, and gives back what does not fit. Each winner's own stake goes first, then those of others
// in the order of joining.
func (m hosts) divide(r *played, c *catalog.Round, winners []kuji.Claimed) []map[string]uint64 {
	gets, total := make([]map[string]uint64, len(winners)), uint64(0)
	item, sure, gone := c.Stake.Item, map[string]uint64{}, map[string]uint64{} // by player
	for i := range r.joined {
		total += r.joined[i].heldOf(item)
	}
	left := uint64(0)
	for i, part := range parts(c, total, len(winners)) {
		who := winners[i].Player
		j := r.entrant(who)
		if j == nil {
			return gets // wins says so
		}
		h := m.players[who]
		have := h.has(item) - j.heldOf(item) + sure[who]
		most, beyond := m.most(item)
		part = min(part, less(kuji.MaxQuantity, have))
		fits := min(part, less(most, have))
		sure[who] += fits
		if beyond.Do == catalog.BeyondMail && len(h.mail) < mostLetters {
			fits = part
		}
		gets[i] = map[string]uint64{item: fits}
		own := min(gone[who]+fits, j.heldOf(item)) - gone[who]
		gone[who] += own
		left += fits - own
	}
	for i := range r.joined {
		j := &r.joined[i]
		m.gives(j, func(it kuji.Stack) uint64 {
			more := min(it.Quantity-gone[j.player], left)
			left -= more
			return gone[j.player] + more
		})
	}
	return gets
}

// fills puts the shares of all tickets into the pots.
func (m hosts) fills(r *played, c *catalog.Round) {
	for _, a := range c.Ticket.Adds {
		for _, it := range times(c.Ticket.Price, r.tickets) {
			paid := uint64(0)
			for i := range r.joined {
				paid += r.joined[i].heldOf(it.Item)
			}
			p := m.rounds.pots[a.Pot+" "+it.Item]
			p.millionths += paid * a.Share
			p.units, p.millionths = p.units+p.millionths/catalog.ShareUnit, p.millionths%catalog.ShareUnit
			m.rounds.pots[a.Pot+" "+it.Item] = p
		}
	}
}

// empties takes what winners get out of a pot. What does not fit stays.
func (m hosts) empties(c *catalog.Round, winners []kuji.Claimed) []map[string]uint64 {
	gets := make([]map[string]uint64, len(winners))
	if c.Winners.Pot == "" {
		return gets
	}
	const item = "chip" // all that tickets cost
	id, sure := c.Winners.Pot+" "+item, map[string]uint64{}
	p := m.rounds.pots[id]
	for i, part := range parts(c, p.units, len(winners)) {
		h := m.players[winners[i].Player]
		if h == nil {
			return gets // wins says so
		}
		have := h.has(item) + sure[h.id]
		most, beyond := m.most(item)
		part = min(part, less(kuji.MaxQuantity, have))
		fits := min(part, less(most, have))
		sure[h.id] += fits
		if beyond.Do == catalog.BeyondMail && len(h.mail) < mostLetters {
			fits = part
		}
		gets[i] = map[string]uint64{item: fits}
		p.units -= fits
	}
	m.rounds.pots[id] = p
	return gets
}

// ended reports whether the day, week or month is over for which the calendar opened a round.
func (m hosts) ended(r *played) bool {
	return r.state == "open" && r.every != 0 && m.goals.period(r.every, m.now) > r.period
}

// due returns which round must be dealt with next, any of those where there are several; that at its deadline comes
// first. opens are those that the calendar must open, once nothing else is due.
func (m hosts) due() (first []*played, opens []string) {
	for _, r := range m.rounds.rounds {
		if r.until > 0 && r.until <= m.steady() && (len(first) == 0 || cmp.Or(cmp.Compare(r.until, first[0].until), cmp.Compare(r.number, first[0].number)) < 0) {
			first = []*played{r}
		}
	}
	if len(first) > 0 {
		return first, nil
	}
	for _, r := range m.rounds.rounds {
		if m.ended(r) {
			first = append(first, r)
		}
	}
	for i := 0; len(first) == 0 && m.catalog != nil && i < len(m.catalog.Rounds); i++ {
		c := &m.catalog.Rounds[i]
		last, ever := m.rounds.turns[fmt.Sprint(c.ID, c.Every)]
		if c.Every != 0 && !m.rounds.turning(c.ID) && (!ever || m.goals.period(c.Every, m.now) > last) {
			opens = append(opens, c.ID)
		}
	}
	return first, opens
}

// turning reports whether a round of a name is open that the calendar opened.
func (b roundBook) turning(name string) bool {
	for _, r := range b.rounds {
		if r.name == name && r.state == "open" && r.every != 0 {
			return true
		}
	}
	return false
}

// step judges an event that settles, forgets or opens a round, and carries it out.
func (m hosts) step(rec kuji.Record) error {
	first, opens := m.due()
	r := m.rounds.rounds[rec.Due.Round]
	switch {
	case len(first) > 0 && !slices.Contains(first, r), len(first) == 0 && len(opens) > 0 && r != nil:
		return fmt.Errorf("round %d was due; the model says %d, or opens %v", rec.Due.Round, numbersOf(first), opens)
	case len(first) > 0 && r.state == "open":
		before, reached := rankings(m).balances(), questing(m).reached()
		rest, err := m.closes(r, rec.Claims)
		if err == nil {
			err = questing(m).fires(rec, rest, reached)
		}
		if err == nil {
			err = rankings(m).changed(before, rec)
		}
		return cmp.Or(err, m.sameRound(r, rec.Round))
	case len(first) > 0 && len(r.joined) > 0:
		r.fades, r.until = true, 0
	case len(first) > 0, r != nil && r.fades && len(opens) == 0:
		delete(m.rounds.rounds, r.number)
	case len(opens) > 0 && rec.Due.Round == m.rounds.last+1 && rec.Round != nil && slices.Contains(opens, rec.Round.Name):
		c := m.round(rec.Round.Name)
		r = m.opens(c.ID, "")
		r.every, r.period = c.Every, m.goals.period(c.Every, m.now)
		m.rounds.turns[fmt.Sprint(c.ID, c.Every)] = r.period
		return m.sameRound(r, rec.Round)
	default:
		return fmt.Errorf("round %d was due; the model says none, or opens %v", rec.Due.Round, opens)
	}
	if len(rec.Changes)+len(rec.Claims) > 0 {
		return fmt.Errorf("round %d was forgotten, and %+v changed", rec.Due.Round, rec.Changes)
	}
	return nil
}

func numbersOf(all []*played) (numbers []uint64) {
	for _, r := range all {
		numbers = append(numbers, r.number)
	}
	return numbers
}

// sameRound compares what is said of a round with the model.
func (m hosts) sameRound(r *played, v *kuji.RoundView) error {
	same := v != nil && v.Name == r.name && v.Number == r.number && v.State == r.state && v.Entrants == r.entrants && v.Tickets == r.tickets && len(v.Winners) == len(r.winners)
	for i := 0; same && i < len(r.winners); i++ {
		same = v.Winners[i].Player == r.winners[i].Player && v.Winners[i].Missed == r.winners[i].Missed
	}
	if !same {
		return fmt.Errorf("round %d is shown as %+v, the model says %+v", r.number, v, *r)
	}
	return nil
}

// shown compares the open rounds that a read has shown with the model.
func (m hosts) shown(all []kuji.RoundView) error {
	var want []*played
	for _, r := range m.rounds.rounds {
		if r.state == "open" {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b *played) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number)) })
	if len(want) != len(all) {
		return fmt.Errorf("open are %+v, the model says %d", all, numbersOf(want))
	}
	for i, r := range want {
		v := &all[i]
		if err := m.sameRound(r, v); err != nil {
			return err
		}
		if v.Opener != r.opener || r.until > 0 && v.Until-v.Opened != r.until-r.opened || (v.Until > 0) != (r.until > 0 || r.every != 0) {
			return fmt.Errorf("round %d was opened by %q at %d, until %d; the model says %+v", r.number, v.Opener, v.Opened, v.Until, *r)
		}
	}
	return nil
}

// sameHeld compares what is held of a player, as a view shows it, with the model.
func sameHeld(v kuji.PlayerView, h *holder) error {
	got, want := map[string]uint64{}, maps.Clone(h.held)
	for _, it := range v.Held {
		got[it.Item] += it.Quantity
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		return fmt.Errorf("of player %q %v is held, the model says %v", v.ID, got, want)
	}
	return nil
}

// has returns how many of an item a player has, with what is held.
func (h *holder) has(item string) uint64 { return h.items[item] + h.held[item] }
