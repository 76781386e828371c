package chat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Limits of a configuration.
const (
	MaxTriggers = 10_000
	MaxPhrases  = 10_000 // of all triggers
	MaxPhrase   = 128    // bytes of a phrase's fold
	// MaxPhraseBytes is how many bytes the folds of all phrases have at most. For each, the search needs four bytes
	// of memory for every different byte in phrases: some 10 MB for 64 KiB of English, at worst 130 MB.
	MaxPhraseBytes = 128 << 10
	MaxActions     = 16 // of a trigger; an atomic has at most kuji.MaxAtomic members
	MaxWords       = 8  // of a trigger
	MaxChoices     = 1000
	MaxPrefix      = 24 // bytes
	MaxMost        = 20
	MaxRemembered  = 1_000_000 // of Config.Players, Config.Gathered and Config.Cooldowns
	MaxCooldown    = 30 * 24 * time.Hour
	MaxEvery       = time.Minute
)

// Config is what messages start. [Parse] reads it from YAML.
type Config struct {
	// Activity is the event that each message reports, which counters of the catalog count. Empty: none.
	Activity string
	// Every is the time between reports of activity, which is what a crash may lose. Default: one second.
	Every time.Duration
	// TimeOrdered makes request ids that carry the time of their message, for a realm whose catalog says
	// "ids: time-ordered".
	TimeOrdered bool
	// Prefix begins all request ids, so that the catalog can name those that are never forgotten. Not with TimeOrdered.
	Prefix string
	// Most is how many triggers one message can start, from 1 to MaxMost. Default: 5.
	Most     int
	Triggers []Trigger

	// Memory: how many players are known to be registered, have activity that is gathered, and have cooldowns. The
	// oldest are forgotten. Who is forgotten is registered again, which changes nothing. Default: 100 000, 10 000
	// and 100 000.
	Players, Gathered, Cooldowns int
	// Now is the clock for messages without a time. Default: time.Now.
	Now func() time.Time
}

// Trigger is what phrases start.
type Trigger struct {
	ID      string // as the ids of a catalog; request ids are made of it: another id pays again for old messages
	Phrases []string
	// Priority decides which of the triggers with one phrase has it, and who goes first of several in a message.
	Priority int
	AtStart  bool // a message must begin with the phrase
	Cooldown Cooldown
	Words    []Word // that follow the phrase, in order
	Do       []Action
}

// Cooldown is how long a trigger cannot be started after it was. Zero: it always can.
type Cooldown struct {
	Player time.Duration // by the same player
	All    time.Duration // by anybody
}

// Word is a word that follows a phrase: one of Of, a number, or any text.
type Word struct {
	Name     string // a small letter, then small letters, digits and "_": actions call it $name
	Of       map[string]string
	From, To uint64 // if To is not 0: a whole number between them
	Text     bool   // anything, folded: for keys and codes only
	Else     string // stands for a missing word, as it would be written; empty: it must be there
}

// defaults fills in what is left out.
func (c *Config) defaults() {
	c.Every = cmp.Or(c.Every, time.Second)
	c.Most = cmp.Or(c.Most, 5)
	c.Players = cmp.Or(c.Players, 100_000)
	c.Gathered = cmp.Or(c.Gathered, 10_000)
	c.Cooldowns = cmp.Or(c.Cooldowns, 100_000)
	if c.Now == nil {
		c.Now = time.Now
	}
}

// faults gathers what is wrong with a configuration. Paths are those of the YAML.
type faults struct {
	list []catalog.Error
}

func (f *faults) add(path, format string, args ...any) {
	f.list = append(f.list, catalog.Error{Path: path, Message: fmt.Sprintf(format, args...)})
}

// between reports a number that is too small or too large.
func between[T int | uint64 | time.Duration](f *faults, path string, v, low, high T) {
	if v < low || v > high {
		f.add(path, "expected %v to %v, found %v", low, high, v)
	}
}

func (f *faults) id(path, what, id string) {
	if !catalog.ValidID(id) {
		f.add(path, "expected the id of %s: a letter or digit, then letters, digits, \".\", \"_\" or \"-\", at most %d in all, found %q", what, catalog.MaxID, id)
	}
}

// check reports all that is wrong with a configuration whose defaults are filled in, and compiles its triggers.
func (c *Config) check(f *faults) []trigger {
	if c.Activity != "" {
		f.id("activity", "an event", c.Activity)
	}
	between(f, "every", c.Every, time.Millisecond, MaxEvery)
	between(f, "most", c.Most, 1, MaxMost)
	between(f, "players", c.Players, 2, MaxRemembered)
	between(f, "gathered", c.Gathered, 1, MaxRemembered)
	between(f, "cooldowns", c.Cooldowns, 2, MaxRemembered)
	switch {
	case len(c.Prefix) > MaxPrefix || !printable(c.Prefix):
		f.add("prefix", "expected at most %d bytes without control characters, found %q", MaxPrefix, c.Prefix)
	case c.Prefix != "" && c.TimeOrdered:
		f.add("prefix", "expected none: ids that carry their time have no room for it")
	}
	if len(c.Triggers) > MaxTriggers {
		f.add("triggers", "expected at most %d, found %d", MaxTriggers, len(c.Triggers))
		return nil
	}
	all := make([]trigger, len(c.Triggers))
	seen := make(map[string]bool, len(c.Triggers))
	for i := range c.Triggers {
		t := &c.Triggers[i]
		path := "triggers." + t.ID
		if f.id(path, "a trigger", t.ID); seen[t.ID] {
			f.add(path, "duplicate id")
		}
		seen[t.ID] = true
		all[i] = t.check(f, path)
	}
	c.checkPhrases(f)
	return all
}

// checkPhrases checks the phrases of all triggers.
func (c *Config) checkPhrases(f *faults) {
	fold := newFolder()
	type who struct {
		fold     string
		atStart  bool
		priority int
	}
	taken := map[who]string{}
	n, size := 0, 0
	for i := range c.Triggers {
		t := &c.Triggers[i]
		for k, text := range t.Phrases {
			path := fmt.Sprintf("triggers.%s.phrases[%d]", t.ID, k)
			if len(text) > 4*MaxPhrase {
				f.add(path, "expected at most %d bytes, found %d", MaxPhrase, len(text))
				continue
			}
			folded := string(fold.any(text))
			n, size = n+1, size+len(folded)
			switch {
			case folded == "" || len(folded) > MaxPhrase || !printable(folded):
				f.add(path, "expected 1 to %d bytes without control characters, found %q", MaxPhrase, text)
			default:
				w := who{folded, t.AtStart, t.Priority}
				if other := taken[w]; other != "" {
					f.add(path, "the phrase %q is that of trigger %s too, with the same priority", text, other)
				}
				taken[w] = t.ID
			}
		}
	}
	if n > MaxPhrases || size > MaxPhraseBytes {
		f.add("triggers", "expected at most %d phrases of %d bytes together, found %d of %d", MaxPhrases, MaxPhraseBytes, n, size)
	}
}

// check reports what is wrong with a trigger, and compiles it.
func (t *Trigger) check(f *faults, path string) trigger {
	if len(t.Phrases) == 0 {
		f.add(path+".phrases", "expected at least one phrase")
	}
	between(f, path+".cooldown.player", t.Cooldown.Player, 0, MaxCooldown)
	between(f, path+".cooldown.all", t.Cooldown.All, 0, MaxCooldown)
	if len(t.Words) > MaxWords {
		f.add(path+".words", "expected at most %d, found %d", MaxWords, len(t.Words))
	}
	out := trigger{Trigger: *t, words: make([]word, len(t.Words))}
	for i := range t.Words {
		at := fmt.Sprintf("%s.words[%d]", path, i)
		out.words[i] = t.Words[i].check(f, at)
		switch before := t.Words[:i]; {
		case slices.ContainsFunc(before, func(w Word) bool { return w.Name == t.Words[i].Name }):
			f.add(at+".name", "duplicate name %q", t.Words[i].Name)
		case i > 0 && t.Words[i].Else == "" && before[i-1].Else != "":
			f.add(at, "expected else, as the word before it can be missing")
		}
	}
	if n := len(t.Do); n == 0 || n > MaxActions {
		f.add(path+".do", "expected 1 to %d actions, found %d", MaxActions, n)
		return out
	}
	for i := range t.Do {
		out.do = append(out.do, compile(f, fmt.Sprintf("%s.do[%d]", path, i), out.words, &t.Do[i], false))
	}
	return out
}

// trigger is a trigger that is checked.
type trigger struct {
	Trigger
	words []word
	do    []command
}

// word is a word that is checked.
type word struct {
	Word
	of map[string]string // by fold
}

// check reports what is wrong with a word.
func (w *Word) check(f *faults, path string) word {
	out := word{Word: *w}
	fold := newFolder()
	if !placeholder(w.Name) || slices.Contains(given, w.Name) {
		f.add(path+".name", "expected a small letter, then small letters, digits and \"_\", and none of %s, found %q", strings.Join(given, ", "), w.Name)
	}
	kinds := 0
	for _, is := range []bool{w.Of != nil, w.From > 0 || w.To > 0, w.Text} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		f.add(path, "expected one of the keys of, to and text")
	}
	if n := len(w.Of); w.Of != nil && (n == 0 || n > MaxChoices) {
		f.add(path+".of", "expected 1 to %d words, found %d", MaxChoices, n)
	} else if n > 0 {
		out.of = make(map[string]string, n)
		for _, written := range slices.Sorted(maps.Keys(w.Of)) {
			at := path + ".of." + written
			folded := string(fold.any(cut(written, 4*MaxPhrase)))
			if _, twice := out.of[folded]; twice || folded == "" || len(folded) > MaxPhrase || strings.Contains(folded, " ") {
				f.add(at, "expected one word of at most %d bytes, unlike the others, found %q", MaxPhrase, written)
			}
			f.id(at, "what the word stands for", w.Of[written])
			out.of[folded] = w.Of[written]
		}
	}
	if w.From > 0 || w.To > 0 {
		between(f, path+".to", w.To, max(w.From, 1), kuji.MaxQuantity)
	}
	out.Else = string(fold.any(cut(w.Else, 4*maxTextWord)))
	if _, ok := out.read([]byte(out.Else)); w.Else != "" && !ok {
		f.add(path+".else", "expected what can be written here, found %q", w.Else)
	}
	return out
}

// read returns what a folded word stands for, and false if it cannot stand here.
func (w *word) read(text []byte) (string, bool) {
	switch {
	case len(text) == 0:
		return "", false
	case w.of != nil:
		v, ok := w.of[string(text)]
		return v, ok
	case w.To > 0:
		n := uint64(0)
		for _, c := range text {
			if c < '0' || c > '9' || n > w.To {
				return "", false
			}
			n = 10*n + uint64(c-'0')
		}
		return string(text), n >= w.From && n <= w.To
	}
	return string(text), len(text) <= maxTextWord
}

// maxTextWord is the longest word that can be anything, in bytes.
const maxTextWord = 256
