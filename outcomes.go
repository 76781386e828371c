package kuji

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// names are the ids of what events name by number.
type names interface {
	rules.Numbered
	EntryID(pool, entry uint32) string
	Knows(player string) bool // not while an event is applied
	CodeListName(num uint32) string
}

// describe fills in the result of an event that was applied, except for its receipt.
func describe(s names, o *outcomes, ev *store.Event, res *Result) error {
	look, err := o.begin(s, ev, res, true)
	if err != nil || look == nil {
		return err
	}
	effects := ev.Changes()
	for effects.Next(&o.effect) {
		look.See(&o.effect)
	}
	o.finish()
	return effects.Err()
}

// begin begins the result of an event. tells says whether it may say more than was asked. It returns who must see
// each of its effects before finish, or nil if they say nothing that belongs into a result.
func (o *outcomes) begin(s names, ev *store.Event, res *Result, tells bool) (look store.Looker, err error) {
	if res.Status = Status(ev.Status); res.Status != 0 {
		if err := refusal(s, ev, res); err != nil {
			return nil, err
		}
	}
	switch rules.Kind(ev.Kind) {
	case rules.KindAtomic, rules.KindHold:
		if err := members(ev, res); err != nil {
			return nil, err
		}
	case rules.KindDraw, rules.KindRedeem, rules.KindClaim, rules.KindCollect,
		rules.KindOpenRound, rules.KindJoin, rules.KindSettle, rules.KindReroll, rules.KindCancelRound,
		rules.KindConfirm, rules.KindCancel, rules.KindReverse:
	case rules.KindProgress, rules.KindGrant, rules.KindConsume, rules.KindTransfer, rules.KindRegister, rules.KindSetCounter, rules.KindDue, rules.KindMerge:
		if !tells {
			return nil, nil
		}
	default:
		return nil, nil
	}
	if ev.Status != 0 {
		return nil, nil // nothing was given
	}
	o.names, o.res, o.member, o.moved = s, res, -1, false
	o.player, o.joined = ev.Player.Num, ""
	switch rules.Kind(ev.Kind) {
	case rules.KindTransfer, rules.KindDue, rules.KindMerge, rules.KindSettle, rules.KindReroll, rules.KindCancelRound, rules.KindHold, rules.KindConfirm, rules.KindCancel, rules.KindReverse:
		o.two = true
	default:
		o.two = false
	}
	o.collects = rules.Kind(ev.Kind) == rules.KindCollect
	o.confirms = rules.Kind(ev.Kind) == rules.KindConfirm
	o.command()
	return o, nil
}

// refusal fills in why a request failed.
func refusal(s names, ev *store.Event, res *Result) error {
	res.Subject = subject(s, ev)
	limit, lacks, err := rules.WhyOf(ev)
	if err != nil {
		return err
	}
	if res.Status == LimitReached {
		reached := limit // limit itself stays off the heap
		res.Limit = &reached
	}
	for _, l := range lacks {
		res.Lacks = append(res.Lacks, Lack{Item: s.ItemID(l.Item), Have: l.Have, Need: l.Need})
	}
	if res.Status == HoldEnded {
		h, ago, err := rules.EndedOf(ev)
		if err != nil {
			return err
		}
		res.rare = &rare{hold: &HoldView{ID: h.ID, State: h.State, Ended: -int64(ago), By: h.By}}
	}
	return nil
}

// members makes the results of an atomic group's members.
func members(ev *store.Event, res *Result) error {
	asked, alone := rules.MembersOf(ev)
	if alone {
		return asked.Err()
	}
	failed := -1
	if ev.Status != 0 {
		failed = int(asked.Uint("the failed member", MaxAtomic))
	}
	res.Members = make([]Result, asked.Uint("the number of members", MaxAtomic))
	for i := range res.Members {
		switch m := &res.Members[i]; {
		case i == failed:
			m.Status, m.Subject, m.Limit, m.Lacks = res.Status, res.Subject, res.Limit, res.Lacks
		case failed >= 0:
			m.Status = Aborted
		}
	}
	return asked.Err()
}

func subject(s names, ev *store.Event) string {
	switch Status(ev.Status) {
	case UnknownCode, TooManyGuesses, NothingToCollect, UnknownRound, RoundClosed, AlreadyJoined, RoundFull, WrongStake, AlreadyOpen, TooManyRounds, NobodyLeft,
		UnknownHold, HoldEnded, TooManyHolds, UnknownRequest, NotReversible, AlreadyReversed,
		Blocked, UnknownPlayer, AlreadyLinked, UnknownLinkCode, NotLinked, MergeNeeded, TooManyAliases, LinkCodeTaken, Forgotten:
		return ""
	case CodeExpired, CodeUsedUp, CodeRedeemed:
		return s.CodeListName(ev.Subject)
	case Ended:
		if rules.Kind(ev.Kind) == rules.KindSetCounter {
			counter, _ := rules.CounterOf(s.CounterName(ev.Subject))
			return counter
		}
	case NotReached, AlreadyClaimed, RewardUnavailable:
		quest, _ := rules.QuestOf(s.CounterName(ev.Subject))
		return quest
	case InsufficientItems, BalanceOverflow, PriceNotOffered, TooManyLots, MostReached, MailboxFull:
		return s.ItemID(ev.Subject)
	}

	return s.PoolID(ev.Subject)
}

// outcomes reads the outcomes of draws from effects. Results share what an entry gives every time.
type outcomes struct {
	known [][]*entry // by pool and entry number
	slab  slab
	size  int // of known: how many entries there is room for
	// secret returns a code. nil: the outcomes are for others than their player, see Redacted.
	secret func(list uint32, number uint64) string
	// changed finds the changes of an event by player and item: see changes.
	changed map[holding]int
	// The last price, which results share.
	price     []gain
	priceText []Stack
	reading
}

// reading is where outcomes is in the effects of an event.
type reading struct {
	effect store.Effect // that describe reads
	names  names
	res    *Result
	member int    // of a group; -1: none yet
	two    bool   // it is about two players, or more
	moved  bool   // so is the member
	player uint32 // that the effects are about, or joined, one that the event adds
	joined string
	drawing
	// Of the current outcome:
	open  *entry // the last entry taken; nil: no outcome is open
	now   Outcome
	gains []gain
}

// drawing is what the draws of a command have given so far.
type drawing struct {
	asked  uint32    // the pool of the request; noPool before the first effect
	pool   uint32    // that the effects are about
	marked bool      // effects say where draws begin
	only   *entry    // the first outcome is the entry's, and all does not have it yet
	all    []Outcome // those that are finished
	draw   int       // the number of the current draw
	paid   []gain    // what the draws cost
	claim  Claimed   // the tier or rank whose reward follows; with neither none does
	claims []Claimed // those before it
	reward entry     // open, with a claim
	beyond []Beyond  // so far, of the command
	round  *RoundView
	hold   *HoldView
	bag
}

// bag is what a Collect or a Confirm gave.
type bag struct {
	collects bool
	confirms bool
	got      []gain
	codes    []RewardCode
}

type gain struct {
	item     uint32
	quantity uint64
}

type entry struct {
	via     [1]string // "pool/entry"
	gave    bool      // gains is set, to what it gave the first time
	gains   []gain
	outcome [1]Outcome // of a draw that gave gains and went through no nested pool
}

const noPool = 1<<32 - 1

// command begins a command: an event, or a member of a group.
func (o *outcomes) command() { o.asked, o.pool, o.draw, o.marked = noPool, noPool, -1, false }

// See reads the next effect. The pool of the request comes first. Each entry taken from it begins an outcome;
// those from other pools are steps of it. Where a draw has other than one outcome, an effect says where it begins.
func (o *outcomes) See(e *store.Effect) {
	switch e.Verb {
	case store.Pool:
		if o.pool = e.N; o.asked == noPool {
			o.asked = e.N
		}
	case store.Take:
		if o.pool == o.asked && !o.marked {
			o.draw++
		}
		o.step(o.names, o.pool, e.N)
	case store.Gain:
		switch {
		case o.open != nil:
			o.gain(e.N, e.Value)
		case o.collects, o.confirms:
			o.got = append(o.got, gain{e.N, e.Value})
		}
	case store.Release:
		if o.confirms {
			o.got = append(o.got, gain{e.N, e.Value})
		}
	case store.Beyond:
		o.beyond = append(o.beyond, Beyond{o.names.ItemID(e.N), e.Value, rules.HowText(e.Bytes), o.who(o.names)})
	case store.Spend:
		o.paid = append(o.paid, gain{e.N, e.Value})
	case store.Draw:
		o.endOutcome(o.names)
		o.draw++
		o.marked = true
	case store.GiveCode:
		switch {
		case o.open != nil:
			o.code(o.names, e.N, e.Value)
		case o.confirms:
			o.codes = append(o.codes, o.rewardCode(o.names, e.N, e.Value))
		}
	case store.Claim:
		o.endOutcome(o.names)
		o.claim, o.open = claimed(o.names, e), &o.reward
		o.claim.Player = o.who(o.names)
	case store.Place:
		o.endOutcome(o.names)
		o.claim, o.open = Claimed{Place: uint64(e.N), Value: e.Value >> 1, Missed: e.Value&1 == 1, Player: o.who(o.names)}, &o.reward
	case store.Put:
		if v, ok := rules.RoundIn(e); ok {
			o.round = roundView(o.names, &v)
		} else if v, ok := rules.HoldIn(e); ok {
			h := look.HoldView(o.names, &v, int64(max(v.Ended, v.Asked)))
			o.hold = &h
		}
	case store.Player:
		o.endClaim()
		o.player, o.joined = e.N, ""
		o.moves()
	case store.Join:
		o.moves()
		if o.member >= 0 || o.two {
			o.joined = string(e.Bytes)
		}
	case store.UseCode:
		o.res.Redeemed = o.names.CodeListName(e.N)
	case store.Member:
		o.endCommand()
		o.moved = false
		if o.member++; o.confirms {
			o.res.Members = append(o.res.Members, Result{})
		}
		o.command()
	}
}

// moves notes that effects about another player follow. In a member that has taken something, that is who gets it.
func (o *outcomes) moves() { o.moved = o.moved || o.member >= 0 && len(o.paid) > 0 }

// claimed returns what a claim is for.
func claimed(s names, e *store.Effect) (c Claimed) {
	name := s.CounterName(e.N)
	if quest, ok := rules.QuestOf(name); ok {
		return Claimed{Quest: quest, Tier: int(e.Value)}
	}
	c.Counter, _ = rules.CounterOf(name)
	c.Rank, c.Missed = rules.RankOf(e.Value)
	return c
}

// claiming reports whether what is given now is for a tier or a rank.
func (d *drawing) claiming() bool { return d.claim.Tier > 0 || d.claim.Rank > 0 || d.claim.Place > 0 }

// endClaim ends what a winner of a round gets: effects about another player follow.
func (o *outcomes) endClaim() {
	if o.claim.Place > 0 {
		o.endOutcome(o.names)
	}
}

// finish ends what begin began.
func (o *outcomes) finish() {
	if o.res == nil {
		return
	}
	o.endCommand()
	if o.hold != nil {
		if o.res.rare == nil {
			o.res.rare = new(rare)
		}
		o.res.rare.hold, o.hold = o.hold, nil
	}
	o.names, o.res, o.confirms = nil, nil, false
}

// endRare gives the result of a command what few have.
func (o *outcomes) endRare(res *Result) {
	res.rare = &rare{claims: o.claims, beyond: o.beyond, round: o.round}
	o.claims, o.beyond, o.round = nil, nil, nil
	switch {
	case o.collects:
		res.rare.collected = stacks(o.names, o.got)
		o.collects, o.got = false, o.got[:0]
	case o.confirms:
		res.rare.given = Given{stacks(o.names, o.got), o.codes}
		o.got, o.codes = o.got[:0], nil
	}
}

// endCommand gives the result of a command what its draws gave.
func (o *outcomes) endCommand() {
	some, paid := o.end(o.names)
	res := o.res
	if o.member >= 0 && o.member < len(res.Members) { // after the last member, quests claim themselves
		res = &res.Members[o.member]
	}
	res.Outcomes, res.Paid = some, paid
	if o.collects || len(o.claims)+len(o.beyond) > 0 || o.round != nil || o.confirms && len(o.got)+len(o.codes) > 0 {
		o.endRare(res)
	}
}

// who returns whose quest is claimed, or whose cap is reached, if the command does not say it.
func (o *outcomes) who(s names) string {
	switch {
	case o.member < len(o.res.Members) && !o.two && !o.moved:
		return ""
	case o.joined != "":
		return o.joined
	}
	return s.PlayerID(o.player)
}

func (o *outcomes) gain(item uint32, quantity uint64) {
	for i := range o.gains {
		if o.gains[i].item == item {
			o.gains[i].quantity += quantity
			return
		}
	}
	o.gains = append(o.gains, gain{item, quantity})
}

func (o *outcomes) rewardCode(s names, list uint32, number uint64) RewardCode {
	c := RewardCode{List: s.CodeListName(list), Number: number, Code: Redacted}
	if o.secret != nil {
		c.Code = o.secret(list, number)
	}
	return c
}

func (o *outcomes) code(s names, list uint32, number uint64) {
	c := o.rewardCode(s, list, number)
	if o.claiming() {
		o.claim.Codes = append(o.claim.Codes, c)
		return
	}
	o.now.Codes = append(o.now.Codes, c)
}

// step goes one entry further in the current outcome, or begins the next one.
func (o *outcomes) step(s names, pool, num uint32) {
	e := o.entry(pool, num)
	if e == nil {
		if e = o.meet(s, pool, num); e == nil {
			return // a damaged snapshot
		}
	}
	switch {
	case o.claiming():
		o.claim.Via = append(o.claim.Via, e.via[0])
		return
	case pool == o.asked:
		o.endOutcome(s)
		o.now.Entry, o.now.Draw = e.outcome[0].Entry, o.draw
	case o.now.Via == nil:
		o.now.Via = e.via[:]
	default:
		o.now.Via = append(o.now.Via, e.via[0])
	}
	o.open = e
}

// entry returns what is known about an entry, nil if it was not taken before.
func (o *outcomes) entry(pool, num uint32) *entry {
	if int(pool) < len(o.known) && int(num) < len(o.known[pool]) {
		return o.known[pool][num]
	}
	return nil
}

// meet makes known an entry that was not taken before. It returns nil if there is no such entry.
func (o *outcomes) meet(s names, pool, num uint32) *entry {
	id := s.EntryID(pool, num)
	if id == "" {
		return nil
	}
	for int(pool) >= len(o.known) {
		o.known = append(o.known, nil)
	}
	entries := &o.known[pool]
	for int(num) >= len(*entries) {
		*entries = append(*entries, nil)
		o.size++
	}
	(*entries)[num] = &entry{via: [1]string{s.PoolID(pool) + "/" + id}, outcome: [1]Outcome{{Entry: id}}}
	return (*entries)[num]
}

func (o *outcomes) endOutcome(s names) {
	if o.open != nil {
		o.close(s, o.open)
	}
}

func (o *outcomes) close(s names, e *entry) {
	if o.claiming() {
		o.claim.Items = stacks(s, o.gains)
		o.claims = append(o.claims, o.claim)
		o.open, o.claim, o.gains = nil, Claimed{}, o.gains[:0]
		return
	}
	if !e.gave {
		e.gave, e.gains, e.outcome[0].Items = true, slices.Clone(o.gains), stacks(s, o.gains)
	}
	if o.only != nil {
		o.all = append(o.all, o.only.outcome[0])
		o.only = nil
	}
	switch {
	case !slices.Equal(e.gains, o.gains):
		o.now.Items = stacks(s, o.gains)
		o.all = append(o.all, o.now)
	case len(o.all) == 0 && o.now.Via == nil && o.now.Codes == nil && o.now.Draw == 0:
		o.only = e
	default:
		o.now.Items = e.outcome[0].Items
		o.all = append(o.all, o.now)
	}
	o.open, o.now.Via, o.now.Codes, o.gains = nil, nil, nil, o.gains[:0]
}

func stacks(s names, gains []gain) []Stack {
	if len(gains) == 0 {
		return nil
	}
	items := make([]Stack, len(gains))
	for i, g := range gains {
		items[i] = Stack{Item: s.ItemID(g.item), Quantity: g.quantity}
	}
	return items
}

// end ends the current command and returns its draws' outcomes and their cost: other commands pay nothing.
func (o *outcomes) end(s names) (some []Outcome, paid []Stack) {
	o.endOutcome(s)
	switch {
	case o.only != nil:
		some = o.only.outcome[:]
	case len(o.all) > 0:
		some = append(o.slab.get(len(o.all)), o.all...)
		clear(o.all)
	}
	if o.draw >= 0 && len(o.paid) > 0 {
		if !slices.Equal(o.price, o.paid) {
			o.price, o.priceText = slices.Clone(o.paid), stacks(s, o.paid)
		}
		paid = o.priceText
	}
	o.only, o.all, o.paid = nil, o.all[:0], o.paid[:0]
	return some, paid
}

// slab hands out memory for outcomes from larger pieces: allocating for each result costs more time.
type slab struct{ rest []Outcome }

const slabOutcomes = 128 // in a piece: 8 KiB, a size class without waste

// get returns an empty slice with capacity n. A large one gets memory of its own.
func (s *slab) get(n int) []Outcome {
	if n > slabOutcomes/4 {
		return make([]Outcome, 0, n)
	}
	if len(s.rest) < n {
		s.rest = make([]Outcome, slabOutcomes)
	}
	some := s.rest[:0:n]
	s.rest = s.rest[n:]
	return some
}
