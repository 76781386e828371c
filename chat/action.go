package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Action is a command that a trigger sends, for the player who wrote the message. Texts can have placeholders: $name
// of a word that can be one of several in ids; in Key and Code any word, and $player, $user and $platform. An amount
// is a whole number, $name of a word that is a number, or a product of both, as in 50*$n.
type Action struct {
	// Do names the command: draw, redeem, register, grant, consume, progress, claim, collect, open_round, join or
	// atomic. Other fields are those of the command in package kuji; a command takes no field that it does not have.
	Do      string
	Pool    string
	Pay     string
	Code    string
	Event   string
	Key     string
	Quest   string
	Round   string
	Count   string   // an amount: of draws, of an event, or of tiers
	Tickets string   // an amount
	Items   []Stack  // of a grant or consume; what is staked
	Members []Action // of an atomic
}

// Stack is some of an item. Both can have placeholders.
type Stack struct {
	Item     string
	Quantity string // an amount
}

// given are the placeholders that are no words.
var given = []string{"player", "user", "platform"}

// fields are what each command must have, and what it may have.
var fields = map[string]struct{ must, may []string }{
	"draw":       {[]string{"pool"}, []string{"pay", "count"}},
	"redeem":     {[]string{"code"}, nil},
	"register":   {nil, nil},
	"grant":      {[]string{"items"}, nil},
	"consume":    {[]string{"items"}, nil},
	"progress":   {[]string{"event"}, []string{"key", "count"}},
	"claim":      {[]string{"quest"}, []string{"count"}},
	"collect":    {nil, nil},
	"open_round": {[]string{"round"}, []string{"items", "tickets"}},
	"join":       {[]string{"round"}, []string{"items", "tickets"}},
	"atomic":     {[]string{"members"}, nil},
}

// commandNames are the commands, in the order of their documentation.
var commandNames = []string{"draw", "redeem", "register", "grant", "consume", "progress", "claim", "collect", "open_round", "join", "atomic"}

// inAtomic are the commands that an atomic can have.
var inAtomic = []string{"draw", "register", "grant", "consume", "progress", "claim"}

// command is an action that is checked.
type command struct {
	do                                        string
	pool, pay, code, event, key, quest, round text
	count, tickets                            amount
	items                                     []stack
	members                                   []command
}

type stack struct {
	item     text
	quantity amount
}

// fieldNames returns the fields that an action has.
func (a *Action) fieldNames() (all []string) {
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"pool", a.Pool != ""}, {"pay", a.Pay != ""}, {"code", a.Code != ""}, {"event", a.Event != ""}, {"key", a.Key != ""},
		{"quest", a.Quest != ""}, {"round", a.Round != ""}, {"count", a.Count != ""}, {"tickets", a.Tickets != ""},
		{"items", a.Items != nil}, {"members", a.Members != nil},
	} {
		if f.is {
			all = append(all, f.name)
		}
	}
	return all
}

// compile checks an action.
func compile(f *faults, path string, words []word, a *Action, member bool) command {
	takes, ok := fields[a.Do]
	switch {
	case !ok:
		f.add(path, "expected one of the commands %s, found %q", strings.Join(commandNames, ", "), a.Do)
		return command{}
	case member && !slices.Contains(inAtomic, a.Do):
		f.add(path, "expected one of the commands %s in an atomic, found %s", strings.Join(inAtomic, ", "), a.Do)
		return command{}
	}
	path += "." + a.Do
	has := a.fieldNames()
	for _, name := range takes.must {
		if !slices.Contains(has, name) {
			f.add(path, "%s is missing", name)
		}
	}
	for _, name := range has {
		if !slices.Contains(takes.must, name) && !slices.Contains(takes.may, name) {
			f.add(path+"."+name, "%s has none", a.Do)
		}
	}
	c := command{do: a.Do}
	t := templates{f, path, words}
	c.pool, c.pay, c.event = t.id("pool", a.Pool), t.id("pay", a.Pay), t.id("event", a.Event)
	c.quest, c.round = t.id("quest", a.Quest), t.id("round", a.Round)
	c.code, c.key = t.text("code", a.Code, kuji.MaxCode), t.text("key", a.Key, kuji.MaxID)
	most := uint64(kuji.MaxQuantity)
	if a.Do == "draw" {
		most = kuji.MaxDrawCount
	}
	c.count, c.tickets = t.amount("count", a.Count, most), t.amount("tickets", a.Tickets, kuji.MaxQuantity)
	if len(a.Items) > kuji.MaxStacks || a.Items != nil && len(a.Items) == 0 {
		f.add(path+".items", "expected 1 to %d items, found %d", kuji.MaxStacks, len(a.Items))
		return c
	}
	for i, s := range a.Items {
		at := fmt.Sprintf("items[%d]", i)
		c.items = append(c.items, stack{t.id(at, s.Item), t.amount(at, s.Quantity, kuji.MaxQuantity)})
		if slices.ContainsFunc(a.Items[:i], func(o Stack) bool { return o.Item == s.Item }) {
			f.add(path+"."+at, "duplicate item %s", s.Item)
		}
	}
	if a.Do == "atomic" && (len(a.Members) == 0 || len(a.Members) > kuji.MaxAtomic) {
		f.add(path+".members", "expected 1 to %d commands, found %d", kuji.MaxAtomic, len(a.Members))
		return c
	}
	for i := range a.Members {
		c.members = append(c.members, compile(f, fmt.Sprintf("%s.members[%d]", path, i), words, &a.Members[i], true))
	}
	return c
}

// text is a text with placeholders.
type text []part

// part is a text, or what stands for one: a word from 0 on, or -1, -2, -3 for the first of given and so on.
type part struct {
	literal string
	word    int
	fixed   bool
}

// amount is a number, or with a word a multiple of what that says.
type amount struct {
	times uint64
	word  int // -1: none
}

// templates compiles the texts of an action.
type templates struct {
	f     *faults
	path  string
	words []word
}

// split takes a text apart at its placeholders.
func (t templates) split(field, s string) (all text) {
	for s != "" {
		at := strings.IndexByte(s, '$')
		if at != 0 {
			if at < 0 {
				at = len(s)
			}
			all, s = append(all, part{literal: s[:at], fixed: true}), s[at:]
			continue
		}
		end := 1
		for end < len(s) && placeholder(s[1:end+1]) {
			end++
		}
		name := s[1:end]
		n := slices.IndexFunc(t.words, func(w word) bool { return w.Name == name })
		if k := slices.Index(given, name); n < 0 && k >= 0 {
			n = -1 - k
		} else if n < 0 {
			t.f.add(t.path+"."+field, "expected a placeholder, $ and the name of a word, found %q", s[:end])
			return nil
		}
		all, s = append(all, part{word: n}), s[end:]
	}
	return all
}

// placeholder reports whether a text is the name of a placeholder.
func placeholder(s string) bool {
	for i := range len(s) {
		if c := s[i]; !('a' <= c && c <= 'z') && (i == 0 || !wordByte(c)) {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

// id compiles a text that must be an id, whatever its words are.
func (t templates) id(field, s string) text {
	if s == "" {
		return nil
	}
	all := t.split(field, s)
	least, longest := "", ""
	for _, p := range all {
		switch {
		case p.fixed:
			least, longest = least+p.literal, longest+p.literal
		case p.word < 0 || t.words[p.word].of == nil:
			t.f.add(t.path+"."+field, "expected an id whose placeholders are words of a list, found %q", s)
			return all
		default: // each choice is an id, and so all of its characters may stand in one
			most := ""
			for _, v := range t.words[p.word].of {
				if len(v) > len(most) {
					most = v
				}
			}
			least, longest = least+"a", longest+most
		}
	}
	if len(all) > 0 && (!catalog.ValidID(least) || !catalog.ValidID(longest)) {
		t.f.id(t.path+"."+field, field, longest)
	}
	return all
}

// text compiles a text that can be anything. What is too long once its words are known is refused then.
func (t templates) text(field, s string, most int) text {
	if len(s) > most || !printable(s) {
		t.f.add(t.path+"."+field, "expected at most %d bytes without control characters, found %q", most, s)
	}
	return t.split(field, s)
}

// amount compiles an amount.
func (t templates) amount(field, s string, most uint64) amount {
	a := amount{word: -1}
	if s == "" {
		return a
	}
	a.times = 1
	numbers, names := 0, 0
	for one := range strings.SplitSeq(s, "*") {
		one = strings.TrimSpace(one)
		if n, err := strconv.ParseUint(one, 10, 64); err == nil && n > 0 && n <= most {
			a.times = n
			numbers++
			continue
		}
		name, ok := strings.CutPrefix(one, "$")
		a.word = slices.IndexFunc(t.words, func(w word) bool { return ok && w.Name == name && w.To > 0 })
		if names++; a.word < 0 {
			t.f.add(t.path+"."+field, "expected a whole number from 1 to %d, $ and the name of a word that is a number, or a product of both, found %q", most, s)
			return a
		}
	}
	if numbers > 1 || names > 1 {
		t.f.add(t.path+"."+field, "expected at most one number and one word, found %q", s)
	} else if a.word >= 0 && (t.words[a.word].To > most/a.times || t.words[a.word].From == 0) {
		t.f.add(t.path+"."+field, "expected at least 1 and at most %d, whatever the word is, found %q with %s from %d to %d", most, s,
			t.words[a.word].Name, t.words[a.word].From, t.words[a.word].To)
	}
	return a
}

// call is what placeholders stand for.
type call struct {
	player, user, platform string
	args                   []string // by the number of the word
}

func (t text) of(c *call) string {
	if len(t) == 1 && t[0].fixed {
		return t[0].literal
	}
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.fixed:
			b.WriteString(p.literal)
		case p.word >= 0:
			b.WriteString(c.args[p.word])
		default:
			b.WriteString([...]string{c.player, c.user, c.platform}[-1-p.word])
		}
	}
	return b.String()
}

func (a amount) of(c *call) uint64 {
	if a.word < 0 {
		return a.times
	}
	n, _ := strconv.ParseUint(c.args[a.word], 10, 64) // word.read has checked it
	return n * a.times
}

// request returns the request that a command makes of a call.
func (c *command) request(id string, of *call) kuji.Request {
	switch c.do {
	case "draw":
		return kuji.Draw{ID: id, Player: of.player, Pool: c.pool.of(of), Count: int(c.count.of(of)), Pay: c.pay.of(of)}
	case "redeem":
		return kuji.Redeem{ID: id, Player: of.player, Code: c.code.of(of)}
	case "register":
		return kuji.Register{ID: id, Player: of.player}
	case "grant":
		return kuji.Grant{ID: id, Player: of.player, Items: c.stacks(of)}
	case "consume":
		return kuji.Consume{ID: id, Player: of.player, Items: c.stacks(of)}
	case "progress":
		return kuji.Progress{ID: id, Player: of.player, Event: c.event.of(of), Key: c.key.of(of), N: c.count.of(of)}
	case "claim":
		return kuji.Claim{ID: id, Player: of.player, Quest: c.quest.of(of), Tiers: int(c.count.of(of))}
	case "collect":
		return kuji.Collect{ID: id, Player: of.player}
	case "open_round":
		return kuji.OpenRound{ID: id, Player: of.player, Round: c.round.of(of), Stake: c.stacks(of), Tickets: c.tickets.of(of)}
	case "join":
		return kuji.Join{ID: id, Player: of.player, Round: c.round.of(of), Stake: c.stacks(of), Tickets: c.tickets.of(of)}
	}
	members := make([]kuji.Request, len(c.members))
	for i := range c.members {
		members[i] = c.members[i].request("", of)
	}
	return kuji.Atomic{ID: id, Members: members}
}

func (c *command) stacks(of *call) []kuji.Stack {
	if len(c.items) == 0 {
		return nil
	}
	all := make([]kuji.Stack, len(c.items))
	for i, s := range c.items {
		all[i] = kuji.Stack{Item: s.item.of(of), Quantity: s.quantity.of(of)}
	}
	return all
}

// outcomes returns how many outcomes a command can have.
func (c *command) outcomes(words []word) (n int) {
	switch c.do {
	case "draw":
		return int(max(1, c.count.most(words)))
	case "redeem":
		return kuji.MaxRedeemTimes
	case "claim":
		if n = int(min(c.count.most(words), catalog.MaxTiers)); n == 0 {
			n = 100
		}
	}
	for i := range c.members {
		n += c.members[i].outcomes(words)
	}
	return n
}

// most returns the most that an amount can be; 0: it is left out.
func (a amount) most(words []word) uint64 {
	if a.word < 0 {
		return a.times
	}
	return a.times * words[a.word].To
}
