package kuji

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Status says how a request ended. Every status but OK is a refusal that depends on the state: it is
// logged, stays the answer to its request id and changes nothing, except that UnknownCode counts the guess.
type Status = rules.Status

const (
	OK                Status = 0   // carried out
	SoldOut           Status = 1   // too few outcomes in stock, assuming the worst case in nested pools; Subject is the pool of the request
	LimitReached      Status = 2   // the player has reached a limit of the pool; Subject is the pool
	InsufficientItems Status = 3   // the player holds too few; Subject is the item
	NotStarted        Status = 4   // the pool has not started yet; Subject is the pool
	Ended             Status = 5   // the pool has ended, or for a SetCounter the period of a counter that ranks players; Subject is the pool or the counter
	CountTooLarge     Status = 8   // more draws than the pool's max_count, or so many that they could take more than 100 000 entries; Subject is the pool
	BalanceOverflow   Status = 9   // a balance would exceed MaxQuantity, for a Draw if it gave the most it can; Subject is the item
	Aborted           Status = 10  // this member of an Atomic was undone or not tried because another one failed
	NotEligible       Status = 11  // the player does not meet the pool's condition; Subject is the pool
	PriceNotOffered   Status = 12  // the pool has no price in the item of Draw.Pay; Subject is the item
	UnknownCode       Status = 14  // there is no such code, and the guess was counted; no Subject
	CodeExpired       Status = 15  // the deadline of the code's list has passed; Subject is the list
	CodeUsedUp        Status = 16  // others have used the code as often as it can be; Subject is the list
	CodeRedeemed      Status = 17  // the player has used the code before, or was given it to share; Subject is the list
	TooManyGuesses    Status = 18  // the player has sent too many codes that do not exist; no Subject
	NotReached        Status = 20  // the quest's condition or what its next tier needs is not met; Subject is the quest
	AlreadyClaimed    Status = 21  // all tiers of the quest are claimed, in its present period; Subject is the quest
	RewardUnavailable Status = 22  // what the reward of the quest's next tier could give is not there; Subject is the quest
	CodeRequired      Status = 19  // only codes pay for the pool: see Redeem; Subject is the pool
	TooManyLots       Status = 23  // the player's units would go at more than 100 times, for a Draw at worst; Subject is the item
	MostReached       Status = 24  // the player would hold more than the most of an item, for a Draw at worst; Subject is the item
	MailboxFull       Status = 25  // more than MaxMail letters would be in the player's mailbox, for a Draw at worst; Subject is the item
	NothingToCollect  Status = 26  // nothing in the player's mailbox fits; no Subject
	UnknownRound      Status = 27  // there is no such round, or none of this name is open; no Subject, as with those that follow
	RoundClosed       Status = 28  // the round is not open, or for a Reroll, its time is over
	AlreadyJoined     Status = 29  // the player has joined the round
	RoundFull         Status = 30  // the round has as many entrants as it takes
	WrongStake        Status = 31  // the round takes other stakes: see the catalog, and what the first entrant has staked
	AlreadyOpen       Status = 32  // a round of this name is open, and the catalog allows one
	TooManyRounds     Status = 33  // the player is in 100 rounds, or 10 000 are open in the realm
	NobodyLeft        Status = 34  // no more winners can be drawn
	Blocked           Status = 42  // a player of the request is blocked: see Block
	UnknownPlayer     Status = 43  // the realm has never seen the player
	AlreadyLinked     Status = 44  // the name is another name of a player already
	UnknownLinkCode   Status = 45  // there is no such link code, or its time is over, and the guess was counted
	NotLinked         Status = 46  // the name is no other name of anybody, or a player who was merged, which stays
	MergeNeeded       Status = 47  // the name is a player who has something: Merge makes them one
	TooManyAliases    Status = 48  // the player would have more than MaxAliases other names
	LinkCodeTaken     Status = 49  // another player has this link code: take another one
	Forgotten         Status = 50  // the request was carried out, and a player of it was forgotten since
	Refused           Status = 255 // in DoAll and StartAll: not carried out and not logged; Err says why
)

// Result is the answer to one request.
type Result struct {
	Status   Status
	Replayed bool   // it is the first answer to the request id again
	Err      error  // with Refused only: the *Error that Do would return for the request
	Subject  string // the id that a status other than OK is about: see Status
	// Limit is the limit that was reached, as of the request, with LimitReached; otherwise nil.
	Limit *Limit
	// Lacks are what the player held too few of, with InsufficientItems; of several prices, the first's.
	Lacks []Lack
	// Outcomes of a Draw, in order: one for each draw, unless the pool's draws take several entries, or
	// none. Read-only: results may share their memory. One that is kept may keep 8 KiB of others alive.
	Outcomes []Outcome
	// Paid is what a Draw cost, in the order of the pool's price. It is read-only.
	Paid []Stack
	// Redeemed is the list of the code that a Redeem used.
	Redeemed string
	// Members has one result for each member of an Atomic, in order.
	Members []Result
	Receipt Receipt

	rare *rare // what few results have; nil: nothing
}

// rare is apart from the rest of a Result, as batches have many of these.
type rare struct {
	claims    []Claimed
	beyond    []Beyond
	collected []Stack
	round     *RoundView
}

// Round is the round that a request about one has changed, without its entrants. Claims has what its winners got. It is
// read-only. Other results have nil.
func (r Result) Round() *RoundView {
	if r.rare == nil {
		return nil
	}
	return r.rare.round
}

// Claims are the tiers of quests that a Claim claimed, or that claimed themselves, with what they gave. They are
// read-only.
func (r Result) Claims() []Claimed {
	if r.rare == nil {
		return nil
	}
	return r.rare.claims
}

// Beyond is what the player did not get, as it would be more than the most of an item. It is read-only.
func (r Result) Beyond() []Beyond {
	if r.rare == nil {
		return nil
	}
	return r.rare.beyond
}

// Collected is what a Collect took from the mailbox. It is read-only.
func (r Result) Collected() []Stack {
	if r.rare == nil {
		return nil
	}
	return r.rare.collected
}

// Claimed is a tier of a quest that was claimed, or a rank that was paid, with its reward. It is read-only.
type Claimed struct {
	Quest  string `json:"quest,omitempty"`
	Tier   int    `json:"tier,omitempty"`   // from 1
	Player string `json:"player,omitempty"` // whose; only where a group, a Transfer or what is due claimed it
	// Of a rank: the counter that ranks players. Missed says that the reward was not there or did not fit, so that
	// nothing was given.
	Counter string `json:"counter,omitempty"`
	Rank    uint64 `json:"rank,omitempty"`
	// Of a round: the place of a winner, from 1.
	Place uint64 `json:"place,omitempty"`
	// Value is what the draws of an entrant count, where that decides. Entrants who have not won have a place too.
	Value  uint64 `json:"value,omitempty"`
	Missed bool   `json:"missed,omitempty"`

	Items []Stack      `json:"items,omitempty"`
	Via   []string     `json:"via,omitempty"` // as in an Outcome
	Codes []RewardCode `json:"codes,omitempty"`
}

// Beyond is some of an item that a player did not get, as it would be more than the player can hold, and what
// became of it.
type Beyond struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
	How      string `json:"how"`              // cut; mailed; or gone: it was in the mailbox until its time
	Player   string `json:"player,omitempty"` // whose; only where the request does not say it
}

// Lack is an item of which a player had too few.
type Lack struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"` // at most 2^53-1 times MaxDrawCount
}

// Outcome is one entry that a draw took from the request's pool, with all that it gave. It is read-only.
type Outcome struct {
	Entry string  `json:"entry"`           // id of the entry
	Items []Stack `json:"items,omitempty"` // what the player got, here and below; nil: nothing
	// Via names the entries that draws from other pools took, as "pool/entry", each before its own draws.
	Via   []string     `json:"via,omitempty"`
	Codes []RewardCode `json:"codes,omitempty"` // secrets of the player: show them to nobody else
	Draw  int          `json:"draw,omitempty"`  // which of the request's draws took it, from 0
}

// Total returns what all outcomes gave together, in the order in which the items first come.
func (r Result) Total() []Stack {
	var all []Stack
	for _, o := range r.Outcomes {
		for _, s := range o.Items {
			k := slices.IndexFunc(all, func(known Stack) bool { return known.Item == s.Item })
			if k < 0 {
				all = append(all, s)
			} else {
				all[k].Quantity += s.Quantity
			}
		}
	}
	return all
}

// Receipt proves a result: it finds the batch and the catalog in the log, and once the epoch's seed is
// revealed, anybody can compute the draw again.
type Receipt struct {
	Realm          string
	Position       uint64   // of the batch in the realm's log, from 1
	Index          int      // of the event in its batch, from 0
	Time           int64    // the batch's time stamp, Unix milliseconds
	CatalogVersion uint64   // in force when the outcome was chosen; 0: none yet
	Epoch          uint64   // the writer epoch whose seed chose the outcome
	Commitment     [32]byte // to that seed, by SHA-256; logged before the epoch's first draw
}

// String returns the status, what it is about and the position, for logs and tests.
func (r Result) String() string {
	if r.Subject != "" {
		return fmt.Sprintf("%v (%s) at %d", r.Status, r.Subject, r.Receipt.Position)
	}
	return fmt.Sprintf("%v at %d", r.Status, r.Receipt.Position)
}

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
	case rules.KindAtomic:
		if err := members(ev, res); err != nil {
			return nil, err
		}
	case rules.KindDraw, rules.KindRedeem, rules.KindClaim, rules.KindCollect,
		rules.KindOpenRound, rules.KindJoin, rules.KindSettle, rules.KindReroll, rules.KindCancelRound:
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
	o.names, o.res, o.member = s, res, -1
	o.player, o.joined = ev.Player.Num, ""
	switch rules.Kind(ev.Kind) {
	case rules.KindTransfer, rules.KindDue, rules.KindMerge, rules.KindSettle, rules.KindReroll, rules.KindCancelRound:
		o.two = true
	default:
		o.two = false
	}
	o.collects = rules.Kind(ev.Kind) == rules.KindCollect
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
	return nil
}

// members makes the results of an atomic group's members.
func members(ev *store.Event, res *Result) error {
	asked := store.NewReader(ev.Asked)
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
	// Of a Collect.
	collects bool
	got      []gain
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
		case o.collects:
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
		if o.open != nil {
			o.code(o.names, e.N, e.Value)
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
		}
	case store.Player:
		o.endClaim()
		o.player, o.joined = e.N, ""
	case store.Join:
		if o.member >= 0 || o.two {
			o.joined = string(e.Bytes)
		}
	case store.UseCode:
		o.res.Redeemed = o.names.CodeListName(e.N)
	case store.Member:
		o.endCommand()
		o.member++
		o.command()
	}
}

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

// roundView is what a result says of a round.
func roundView(s names, o *rules.RoundNow) *RoundView {
	v := &RoundView{Name: o.Name, Number: o.Number, State: o.State, Entrants: o.Entrants, Tickets: o.Tickets}
	for _, w := range o.Winners {
		v.Winners = append(v.Winners, view.Winner{Player: s.PlayerID(w.Player), Missed: w.Missed})
	}
	return v
}

// finish ends what begin began.
func (o *outcomes) finish() {
	if o.res == nil {
		return
	}
	o.endCommand()
	o.names, o.res = nil, nil
}

// endRare gives the result of a command what few have.
func (o *outcomes) endRare(res *Result) {
	res.rare = &rare{claims: o.claims, beyond: o.beyond, round: o.round}
	o.claims, o.beyond, o.round = nil, nil, nil
	if o.collects {
		res.rare.collected = stacks(o.names, o.got)
		o.collects, o.got = false, o.got[:0]
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
	if o.collects || len(o.claims)+len(o.beyond) > 0 || o.round != nil {
		o.endRare(res)
	}
}

// who returns whose quest is claimed, or whose cap is reached, if the command does not say it.
func (o *outcomes) who(s names) string {
	switch {
	case o.member < len(o.res.Members) && !o.two:
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

func (o *outcomes) code(s names, list uint32, number uint64) {
	c := RewardCode{List: s.CodeListName(list), Number: number, Code: Redacted}
	if o.secret != nil {
		c.Code = o.secret(list, number)
	}
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
