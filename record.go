package kuji

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Record is one event of the log in readable form. Codes in it are [Redacted].
type Record struct {
	Position          uint64 `json:"position"`       // of its batch
	Index             int    `json:"index"`          // in its batch
	Last              bool   `json:"last,omitempty"` // of its batch
	Time              int64  `json:"time"`           // of its batch, Unix milliseconds
	Kind              string `json:"kind"`           // catalog, draw, grant, consume, transfer, atomic, clock, set_track, codes, redeem, register, upgrade, set_limit, progress, claim, set_counter, collect, due, open_round, join, settle, reroll, cancel_round, hold, confirm, cancel, reverse, propose, withdraw, approve
	ID                string `json:"id,omitempty"`
	Status            string `json:"status"`
	Subject           string `json:"subject,omitempty"`
	Limit             *Limit `json:"limit,omitempty"`               // that was reached: see Result; or that was set, with what it left
	Lacks             []Lack `json:"lacks,omitempty"`               // of what the player held too few
	CatalogVersion    uint64 `json:"catalog_version"`               // in force when the event was decided
	NewCatalogVersion uint64 `json:"new_catalog_version,omitempty"` // of a catalog: the version that it is

	Player string `json:"player,omitempty"`
	To     string `json:"to,omitempty"`
	Pool   string `json:"pool,omitempty"`
	Count  int    `json:"count,omitempty"`
	// List is the list that codes were imported to, or the redeemed code's, with Number as its place, and
	// Pool and Count for what it paid for. A guess in vain is in no record.
	List     string    `json:"list,omitempty"`
	Number   *uint64   `json:"number,omitempty"`
	Pay      string    `json:"pay,omitempty"`
	Items    []Stack   `json:"items,omitempty"`
	Outcomes []Outcome `json:"outcomes,omitempty"`
	Paid     []Stack   `json:"paid,omitempty"`
	// Of a set_track: which, and how many draws. Of a set_limit: how many are used.
	Track string  `json:"track,omitempty"`
	Draws *uint64 `json:"draws,omitempty"`
	// Of a progress: the event, its key, and Value, how much of it. Of a set_counter: the counter, and where it stands.
	Event   string  `json:"event,omitempty"`
	Key     string  `json:"key,omitempty"`
	Counter string  `json:"counter,omitempty"`
	Value   *uint64 `json:"value,omitempty"`
	// Of a claim: the quest. Claims are what it claimed, or what claimed itself in an event of any kind.
	Quest  string    `json:"quest,omitempty"`
	Claims []Claimed `json:"claims,omitempty"`
	// Beyond is what players did not get, as it would be more than they can hold, or what went from mailboxes.
	Beyond []Beyond `json:"beyond,omitempty"`
	// Round is the round that an event is about, as it has left it. Claims are what winners got.
	Round *RoundView `json:"round,omitempty"`
	// Hold is the hold that an event is about, as it has left it, and Given what a confirm gave. Freed are those of
	// whom something was held, and who got it, if the event ended that.
	Hold  *HoldView `json:"hold,omitempty"`
	Given *Given    `json:"given,omitempty"`
	Freed []Freed   `json:"freed,omitempty"`
	// Reversed is the request id of what a reverse has undone. Beyond says what was missing.
	Reversed string `json:"reversed,omitempty"`
	// Entrants are those of a round whose stakes or tickets the event gave back or took for good, as Changes say.
	Entrants []string `json:"entrants,omitempty"`
	// Who asked and why, of a set_track or where there is a note.
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Changes are what the event changed in balances, one for each player and item; members have none.
	Changes []BalanceChange `json:"changes,omitempty"`
	Members []Record        `json:"members,omitempty"` // of an atomic group; each has the group's position and index
	Clock   *ClockSet       `json:"clock,omitempty"`   // of an event that set the clock
	Due     *Due            `json:"due,omitempty"`     // of an event that settled what was due; Changes say what went
	// Names are all that a forgotten player had. Whoever has the events of before can forget the player by them.
	Names []string `json:"names,omitempty"`
	// Of a propose, a withdraw and an approve: the number of the proposal. Of an approve: who proposed it, and why.
	Proposal    uint64 `json:"proposal,omitempty"`
	ProposedBy  string `json:"proposed_by,omitempty"`
	ProposedWhy string `json:"proposed_why,omitempty"`
	Level       uint8  `json:"level,omitempty"` // of an upgrade: the format level that it raised the realm to
	Bytes       int    `json:"bytes,omitempty"` // of the event in the log
}

// Due says whose deadlines an event settled: those of some players, or those of a counter that ranks players.
type Due struct {
	Swept   bool     `json:"swept,omitempty"`   // no request waited for it
	Players []string `json:"players,omitempty"` // in the order in which they were settled
	// Counter is a counter whose Period ended, if From is 0. Count is how many players are in its standing then.
	// Otherwise the rewards for Count ranks were given, from the rank From on: Claims say to whom. A Period is the
	// number of a day, week or month, or when a season begins, in Unix milliseconds.
	Counter string `json:"counter,omitempty"`
	Period  uint64 `json:"period,omitempty"`
	From    uint64 `json:"from,omitempty"`
	Count   uint64 `json:"count,omitempty"`
	Round   uint64 `json:"round,omitempty"` // the round that the calendar opened, that was settled, whose entrants were dealt with, or that was forgotten
	// Holds are those that were cancelled at their deadlines, or forgotten: their request ids.
	Holds []string `json:"holds,omitempty"`
}

// BalanceChange is what an event changed in a player's balance of an item.
type BalanceChange struct {
	Player string `json:"player"`
	Item   string `json:"item"`
	Delta  int64  `json:"delta"` // what was gained less what was spent; 0: as much of both
	// Balance is that after the event, known only to package history; otherwise nil.
	Balance *uint64 `json:"balance,omitempty"`
}

type holding struct {
	player string
	item   uint32
}

func (o *outcomes) changes(s names, ev *store.Event) ([]BalanceChange, error) {
	if o.changed == nil {
		o.changed = map[holding]int{}
	}
	clear(o.changed)
	var all []BalanceChange
	var e store.Effect
	id, known, player := "", false, ev.Player.Num
	effects := ev.Changes()
	for effects.Next(&e) {
		delta := int64(e.Value)
		switch e.Verb {
		case store.Player:
			player, known = e.N, false
			continue
		case store.Join:
			if id, known = string(e.Bytes), true; !s.Knows(id) {
				id = "" // the player was forgotten
			}
			continue
		case store.Gain, store.Grow, store.Release:
		case store.Spend, store.Hold:
			delta = -delta
		default:
			continue
		}
		if !known {
			if player >= s.Players() {
				return nil, fmt.Errorf("player number %d of %d", player, s.Players())
			}
			id, known = s.PlayerID(player), true
		}
		i, ok := o.changed[holding{id, e.N}]
		if !ok {
			i = len(all)
			o.changed[holding{id, e.N}] = i
			all = append(all, BalanceChange{Player: id, Item: s.ItemID(e.N)})
		}
		all[i].Delta += delta
	}
	return all, effects.Err()
}

// Package verify makes records too, but no public name may take events.
func init() {
	logged.Describe = func(s *store.State) func(*logged.Event, uint64) (any, error) {
		gave := new(outcomes)
		return func(e *logged.Event, version uint64) (any, error) { return newRecord(s, gave, e, version) }
	}
}

// newRecord describes an event that was applied. version is that of the catalog in force before it.
func newRecord(s names, gave *outcomes, le *logged.Event, version uint64) (rec Record, err error) {
	ev := le.Event
	rec = Record{Kind: rules.Kind(ev.Kind).String(), Status: Status(ev.Status).String()}
	rec.Position, rec.Index, rec.Last, rec.Time = le.At.Position, int(le.At.Index), le.Last, le.At.Time
	rec.ID, rec.CatalogVersion, rec.Bytes = string(ev.ID), version, len(ev.Raw)
	switch rules.Kind(ev.Kind) {
	case rules.KindCatalog:
		rec.NewCatalogVersion = version + logged.Catalogs(ev)
		note, err := rules.NoteOf(ev)
		rec.note(note)
		return rec, err
	case rules.KindClock:
		c, err := rules.SetClockOf(ev)
		rec.Clock = &ClockSet{To: c.To, By: c.By, Reason: c.Reason}
		return rec, err
	case rules.KindDue:
		err = rec.due(s, gave, ev)
		return rec, err
	case rules.KindUpgrade:
		u, err := rules.UpgradeOf(ev)
		rec.Level, rec.By, rec.Reason = uint8(u.To), u.By, u.Reason
		return rec, err
	case rules.KindPropose, rules.KindWithdraw, rules.KindApprove:
		err := rec.proposes(ev)
		return rec, err
	case rules.KindCodes:
		list, _, codes, err := rules.ImportOf(ev)
		rec.List, rec.Count = s.CodeListName(list), len(codes)
		return rec, err
	}
	cmd, _, err := rules.CommandOf(s, ev)
	if err != nil {
		return rec, err
	}
	if rec.Changes, err = gave.changes(s, ev); err == nil && cmd.Round != nil {
		rec.Entrants, err = entrantsIn(s, ev)
	}
	if err != nil {
		return rec, err
	}
	var res Result
	res.Receipt.Time = rec.Time
	err = describe(s, gave, ev, &res)
	rec.Subject, rec.Limit, rec.Lacks = res.Subject, res.Limit, res.Lacks
	if cmd.Kind == rules.KindHold && cmd.Hold.One {
		fillRecord(&rec, &cmd.Members[0], &res)
	} else {
		fillRecord(&rec, &cmd, &res)
	}
	switch {
	case cmd.Kind == rules.KindReverse:
		rec.reverses(cmd.Hold.Of)
	case cmd.Hold != nil && err == nil:
		err = rec.holds(s, ev, &cmd, &res)
	}
	rec.note(cmd.Note)
	if cmd.Kind == rules.KindForget {
		err = errors.Join(err, rec.forgets(ev))
	}
	if res.Redeemed != "" {
		used, _ := rules.RedeemedOf(ev) // describe has read it
		rec.List, rec.Number, rec.Count = res.Redeemed, &used.Number, int(used.Draws)
		if used.Drew {
			rec.Pool = s.PoolID(used.Pool)
		}
	}
	for i := range res.Members {
		if cmd.Kind == rules.KindConfirm {
			break // it has none of its own: see holds
		}
		if i >= len(cmd.Members) {
			return rec, fmt.Errorf("%d results for %d members", len(res.Members), len(cmd.Members))
		}
		m := Record{Kind: cmd.Members[i].Kind.String(), Status: res.Members[i].Status.String()}
		m.Position, m.Index, m.Time, m.CatalogVersion = rec.Position, rec.Index, rec.Time, version // the group's
		fillRecord(&m, &cmd.Members[i], &res.Members[i])
		rec.Members = append(rec.Members, m)
	}
	return rec, err
}

// proposes fills in what an event says about a proposal.
func (rec *Record) proposes(ev *store.Event) error {
	p, err := rules.PropositionOf(ev)
	rec.Proposal, rec.ProposedBy, rec.ProposedWhy = p.Number, p.By, p.Why
	rec.note(p.Note)
	if n := logged.Catalogs(ev); n > 0 {
		rec.NewCatalogVersion = rec.CatalogVersion + n
	}
	return err
}

// due fills in what an event says that settled what was due.
func (rec *Record) due(s names, gave *outcomes, ev *store.Event) (err error) {
	if rec.Due, err = dueOf(s, ev); err == nil {
		rec.Changes, err = gave.changes(s, ev)
	}
	var res Result
	if err == nil {
		err = describe(s, gave, ev, &res)
	}
	switch {
	case err != nil:
	case rec.Due.Round != 0:
		rec.Entrants, err = entrantsIn(s, ev)
	case len(rec.Due.Holds) > 0:
		rec.Freed, err = freedIn(s, ev)
		rec.frees("")
	}
	rec.Claims, rec.Beyond, rec.Round = res.Claims(), res.Beyond(), res.Round()
	return err
}

// forgets fills in who was forgotten: the state has the names no more.
func (rec *Record) forgets(ev *store.Event) (err error) {
	if rec.Names, err = rules.ForgottenBy(ev); err != nil || ev.Status != 0 {
		rec.Names = nil
		return err
	}
	rec.Player = rec.Names[0]
	for i := range rec.Changes {
		if p := rec.Changes[i].Player; p == "" || slices.Contains(rec.Names, p) {
			rec.Changes[i].Player = rec.Player
		}
	}
	rec.frees("") // others, with whom something was held
	return err
}

// reverses fills in what was undone, and whose it was: the request does not name the player.
func (rec *Record) reverses(id string) {
	switch rec.Reversed = id; {
	case len(rec.Changes) > 0:
		rec.Player = rec.Changes[0].Player
	case len(rec.Beyond) > 0:
		rec.Player = rec.Beyond[0].Player
	}
}

// dueOf returns whose deadlines an event settled.
func dueOf(s names, ev *store.Event) (*Due, error) {
	due, err := rules.DueOf(ev)
	if err != nil {
		return nil, err
	}
	if at := &due.Ranking; at.Count > 0 {
		counter, _ := rules.CounterOf(s.CounterName(at.Counter))
		return &Due{Counter: counter, Period: at.Period, From: at.From, Count: at.Count}, nil
	}
	if due.Lapses() {
		return &Due{}, nil
	}
	if due.Round != 0 || len(due.Holds) > 0 {
		return &Due{Round: due.Round, Holds: due.Holds}, nil
	}
	d := &Due{Swept: due.Swept, Players: make([]string, len(due.Players))}
	if at := &due.Ranking; at.Count > 0 {
		d.Counter, _ = rules.CounterOf(s.CounterName(at.Counter))
		d.Period, d.From, d.Count = at.Period, at.From, at.Count
	}
	for i, num := range due.Players {
		if num >= s.Players() {
			return nil, fmt.Errorf("player number %d of %d", num, s.Players())
		}
		d.Players[i] = s.PlayerID(num)
	}
	return d, nil
}

// entrantsIn returns the entrants of a round with whom an event has dealt.
func entrantsIn(s names, ev *store.Event) (all []string, err error) {
	var e store.Effect
	player := ev.Player.Num // who it is now: another name may have joined
	effects := ev.Changes()
	for effects.Next(&e) {
		switch {
		case e.Verb == store.Player:
			player = e.N
		case !rules.LeftIn(&e):
		case player >= s.Players():
			return nil, fmt.Errorf("player number %d of %d", player, s.Players())
		default:
			all = append(all, s.PlayerID(player))
		}
	}
	return all, effects.Err()
}

// note fills in a note, which may be nil.
func (rec *Record) note(n *rules.Note) {
	if n != nil {
		rec.By, rec.Reason, rec.Metadata = n.By, n.Reason, n.Metadata
	}
}

func fillRecord(rec *Record, cmd *rules.Command, res *Result) {
	rec.Player, rec.To, rec.Pool, rec.Count, rec.Items, rec.Outcomes = cmd.Player, cmd.To, cmd.Pool, cmd.Count, cmd.Items, res.Outcomes
	rec.Pay, rec.Paid, rec.Claims, rec.Beyond, rec.Round = cmd.Pay, res.Paid, res.Claims(), res.Beyond(), res.Round()
	if of := cmd.Round; of != nil {
		if rec.Count = int(of.Tickets); rec.Round == nil {
			rec.Round = &RoundView{Name: of.Name, Number: of.Number}
		}
	}
	if cmd.Kind == rules.KindCollect {
		rec.Items = res.Collected()
	}
	if rec.Event, rec.Key, rec.Counter, rec.Quest = cmd.Event, cmd.Key, cmd.Counter, cmd.Quest; rec.Event != "" || rec.Counter != "" {
		rec.Value = &cmd.N
	}
	if s := cmd.Set; s != nil {
		rec.Track, rec.Draws, rec.By, rec.Reason = s.Track, &s.Draws, s.By, s.Reason
	}
	if s := cmd.Limit; s != nil {
		rec.Limit, rec.Draws = &Limit{Per: s.Per, Window: s.Window, Draws: s.Allowed, Left: s.Allowed - min(s.Used, s.Allowed)}, &s.Used
	}
}
