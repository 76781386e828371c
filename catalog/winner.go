package catalog

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/internal/document"
)

// Winners says who wins a round, and what they get: Everything or what is in a Pot, by place, and Reward each.
type Winners struct {
	Count      uint32   `json:"count"`            // 1 to MaxWinners. Fewer win if there are fewer entrants, and Distinct
	Distinct   bool     `json:"distinct"`         // nobody wins twice
	By         WinBy    `json:"by"`               //
	Values     []Stack  `json:"values,omitempty"` // with ByValue: what each unit counts, 0 to MaxValue; others count 0
	Rank       string   `json:"rank,omitempty"`   // with ByRank: the counter
	Everything bool     `json:"everything,omitempty"`
	Pot        string   `json:"pot,omitempty"`
	Shares     []uint32 `json:"shares,omitempty"` // percent by place, 100 at most in all; none: equal parts
	Reward     Reward   `json:"reward,omitzero"`
	Rerolls    Rerolls  `json:"rerolls,omitzero"`
}

// WinBy is what decides who wins.
type WinBy uint8

const (
	ByTickets WinBy = 1 // each ticket is as likely
	ByChance  WinBy = 2 // each entrant is as likely
	ByValue   WinBy = 3 // the highest sum of the values of what an entrant's stake gave
	ByRank    WinBy = 4 // who stands best in a ranked counter
)

// Rerolls says how often a winner can be drawn again. The zero value: never.
type Rerolls struct {
	Most   uint32 `json:"most"`   // 1 to MaxRerolls, for the round in all
	Within int64  `json:"within"` // milliseconds after it was settled
}

// gotAll is the word of gets that means all that is staked. No pot can have it as its id.
const gotAll = "everything"

// one reports whether the source can say winner in place of winners.
func (w *Winners) one() bool { return w.Count == 1 && w.Distinct }

// winnersWords is a mapping that only one of two keys can have: a round has winner or winners.
type winnersWords struct{ *object[Winners] }

func (s winnersWords) read(r *reader, n *yaml.Node, dst *Winners) {
	if dst.Count > 0 {
		r.fail(n, "expected one of winner and winners, found both")
		return
	}
	s.object.read(r, n, dst)
}

// otherKey is the key that a source can have in place of another one. Checks name winners.
var otherKey = map[string]string{"winners": "winner"}

var winnerShape = winnersWords{&object[Winners]{
	name:   "winner",
	doc:    "Who wins, and what. At least one of gets and reward must be there.",
	some:   true,
	end:    func(_ *reader, w *Winners) { w.Count, w.Distinct = 1, true },
	fields: winFields(),
}}

var winnersShape = winnersWords{&object[Winners]{
	name: "winners",
	doc:  "Who wins, and what. At least one of gets and reward must be there.",
	some: true,
	fields: append([]field[Winners]{
		keyOr("count", integer[uint32](1, MaxWinners), func(w *Winners) *uint32 { return &w.Count }, 1,
			"How many win. If fewer can, fewer do."),
		keyOr("distinct", boolean, func(w *Winners) *bool { return &w.Distinct }, true, "Whether nobody wins twice."),
	}, winFields()...),
}}

// winFields are the keys that winner and winners have.
func winFields() []field[Winners] {
	itself := func(w *Winners) *Winners { return w }
	return []field[Winners]{
		key[Winners, Winners]("by", winBys, itself,
			"What decides who wins: tickets (each is as likely), chance (each entrant is as likely), or a mapping with value or rank. Without it, tickets; with stake, chance."),
		key[Winners, Winners]("gets", gets{id("a pot")}, itself,
			"What the winners get: everything, which is all that is staked, or what it gave when it was opened; or what is in a pot, by its id. Without it, only the reward.").
			givenIf(func(w *Winners) bool { return w.Everything || w.Pot != "" }),
		key("shares", list[uint32]{"percents", integer[uint32](1, 100), MaxWinners}, func(w *Winners) *[]uint32 { return &w.Shares },
			"How many percent of it each place gets, the first place first. Of a pot, the rest stays in it. Without it, all get the same.").with("gets"),
		keyOr("reward", rewardShape, func(w *Winners) *Reward { return &w.Reward }, Reward{}, "What each winner gets in addition."),
		key("rerolls", rerollsShape, func(w *Winners) *Rerolls { return &w.Rerolls },
			"Whether another winner can be drawn in place of one. Only by tickets or by chance, and without gets."),
	}
}

var rerollsShape = mapping("rerolls", "How often, and until when, another winner can be drawn in place of one.",
	key("most", integer[uint32](1, MaxRerolls), func(r *Rerolls) *uint32 { return &r.Most }, "How often, for the round in all.").must(),
	key("within", duration[int64](time.Millisecond, MinRerolls, MaxRerolled), func(r *Rerolls) *int64 { return &r.Within },
		"How long after the round was settled; from "+document.FormatDuration(MinRerolls)+" to "+document.FormatDuration(MaxRerolled)+".").must(),
)

// gets is what winners get: a word, or the id of a pot.
type gets struct{ pot idShape }

func (s gets) expects() string { return strconv.Quote(gotAll) + ", or " + s.pot.expects() }

func (s gets) read(r *reader, n *yaml.Node, dst *Winners) {
	if n.Kind == yaml.ScalarNode && n.Value == gotAll && r.node(n) {
		dst.Everything = true
		return
	}
	before := len(r.list)
	s.pot.read(r, n, &dst.Pot)
	r.widen(before, s.pot.expects(), s.expects())
}

func (s gets) check(k *report, w *Winners) {
	switch {
	case w.Everything && w.Pot != "":
		k.fault("expected everything or a pot, found both")
	case !w.Everything:
		s.pot.check(k, &w.Pot)
	}
}

func (s gets) write(scale uint64, w *Winners) string {
	if w.Everything {
		return gotAll
	}
	return s.pot.write(scale, &w.Pot)
}

func (s gets) schema(d definitions) *schemaNode { return s.pot.schema(d) } // which the word is too

// winBy is what decides who wins: a word, or a mapping.
type winBy struct {
	words choiceShape[WinBy]
	more  *object[Winners]
}

var winBys = winBy{choiceShape[WinBy]{
	{"tickets", ByTickets, "Each ticket is as likely."},
	{"chance", ByChance, "Each entrant is as likely."},
}, &object[Winners]{
	name: "win_by",
	doc:  "What decides who wins. One of value and rank must be there.",
	some: true,
	fields: []field[Winners]{
		key("value", dict[Stack]{
			key:   id("an item"),
			value: part[Stack, uint64]{integer[uint64](0, MaxValue), func(s *Stack) *uint64 { return &s.Quantity }},
			id:    func(s *Stack) *string { return &s.Item },
			max:   MaxValues,
		}, func(w *Winners) *[]Stack { return &w.Values },
			"What each unit of an item counts. Others count 0. The highest sum of what an entrant's stake gave wins. Only with opens."),
		key("rank", id("a counter"), func(w *Winners) *string { return &w.Rank },
			"A counter by which players are ranked. The entrants who stand best win."),
	},
}}

func (s winBy) expects() string { return s.words.expects() + ", or " + s.more.expects() }

func (s winBy) read(r *reader, n *yaml.Node, dst *Winners) {
	if n.Kind == yaml.MappingNode {
		s.more.read(r, n, dst)
		switch {
		case dst.Rank != "" && len(dst.Values) > 0:
			r.fail(n, "expected one of value and rank, found both")
		case dst.Rank != "":
			dst.By = ByRank
		default:
			dst.By = ByValue
		}
		return
	}
	before := len(r.list)
	s.words.read(r, n, &dst.By)
	r.widen(before, s.words.expects(), s.expects())
}

func (s winBy) check(k *report, w *Winners) {
	byValue, byRank := w.By == ByValue, w.By == ByRank
	if !byValue && !byRank {
		s.words.check(k, &w.By)
	}
	if byValue != (len(w.Values) > 0) || byRank != (w.Rank != "") {
		k.fault("expected value or rank, which says what decides, found none or another one")
	}
	s.more.check(k, w)
}

func (s winBy) write(scale uint64, w *Winners) string {
	if w.By == ByValue || w.By == ByRank {
		return s.more.write(scale, w)
	}
	return s.words.write(scale, &w.By)
}

func (s winBy) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.words.schema(d), s.more.schema(d)}}
}

// winners checks who wins a round, and what.
func (k *roundCheck) winners() {
	r, w := k.r, &k.r.Winners
	if w.Count == 0 {
		k.fault("expected winner or winners, found none")
		return
	}
	if most := r.Entrants.Max; w.Distinct && w.Count > most && most > 0 {
		k.faultAt("count", "expected at most %d, the most that can enter, or distinct: false, found %d", most, w.Count)
	}
	k.decides()
	k.shares()
	if !w.Everything && w.Pot == "" && w.Reward.Nothing() {
		k.fault("expected gets, reward or both, found none")
	}
	if w.Rerolls == (Rerolls{}) {
		return
	}
	switch {
	case w.By != ByTickets && w.By != ByChance:
		k.faultAt("rerolls", "expected none: only winners by tickets or by chance can be drawn again")
	case w.Everything || w.Pot != "":
		k.faultAt("rerolls", "expected none with gets: somebody else has got that already")
	}
}

// decides checks what decides who wins.
func (k *roundCheck) decides() {
	r, w := k.r, &k.r.Winners
	switch {
	case w.By == ByTickets && r.staked():
		k.faultAt("by", "expected chance, value or rank, found tickets: the round has none")
	case w.By == ByValue && !r.Opens:
		k.faultAt("by", "expected opens: stakes with value, which is that of what stakes give")
	case w.By == ByValue && !w.Distinct, w.By == ByRank && !w.Distinct:
		k.faultAt("distinct", "expected true with value and rank: they decide each place once")
	}
	if w.By != ByRank {
		return
	}
	for i := range k.c.Counters {
		if c := &k.c.Counters[i]; c.ID == w.Rank && !c.Ranked.Is {
			k.faultUnder([]step{{key: "by"}, {key: "rank"}}, "expected a counter that is ranked, found %s, which is not", quote(w.Rank))
		}
	}
}

// shares checks what the places get.
func (k *roundCheck) shares() {
	w := &k.r.Winners
	sum := uint32(0)
	for _, percent := range w.Shares {
		sum += min(percent, 101)
	}
	switch {
	case w.Everything && !k.r.staked():
		k.faultAt("gets", "expected a pot, found everything, which is all that is staked: the round has tickets")
	case w.Everything && w.Count > 1 && len(w.Shares) == 0:
		k.faultAt("gets", "expected shares too, as several win, found none")
	case len(w.Shares) == 0:
	case !w.Everything && w.Pot == "":
		if k.line == nil { // else the table has said it
			k.faultAt("shares", "expected none: it needs gets")
		}
	case len(w.Shares) > int(w.Count):
		k.faultAt("shares", "expected at most %d, one for each winner, found %d", w.Count, len(w.Shares))
	case sum > 100:
		k.faultAt("shares", "expected at most 100 percent in all, found more")
	case sum < 100 && w.Everything:
		k.faultAt("shares", "expected 100 percent in all, as nobody would get the rest of the stakes, found %d", sum)
	}
}

func (w *Winners) code(x *coder) {
	number(x, &w.Count)
	kind(x, &w.By)
	pot, rerolls := w.Pot != "", w.Rerolls != Rerolls{}
	x.flags(&w.Distinct, &w.Everything, &pot, &rerolls)
	switch w.By {
	case ByValue:
		many(x, &w.Values, MaxValues, 3, (*Stack).code)
	case ByRank:
		x.ref(&w.Rank)
	}
	if pot {
		if x.ref(&w.Pot); w.Pot == "" {
			x.fail("expected the id of a pot, found none")
		}
	}
	many(x, &w.Shares, MaxWinners, 1, func(percent *uint32, x *coder) { number(x, percent) })
	w.Reward.code(x)
	if rerolls {
		number(x, &w.Rerolls.Most)
		if number(x, &w.Rerolls.Within); w.Rerolls == (Rerolls{}) {
			x.fail("expected how often winners are drawn again, found 0")
		}
	}
}
