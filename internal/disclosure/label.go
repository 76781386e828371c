package disclosure

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kuji-dev/kuji/catalog"
)

// Steps is how many colors rarities have, from the most common to the rarest.
const Steps = 6

// Labels are the names of a catalog's things for people, in a language or the nearest one.
type Labels struct {
	c         *catalog.Catalog
	words     *words
	languages []string
	pools     map[string]*catalog.Pool
	items     map[string]*catalog.Item
	rarities  map[string]Rarity
}

// Rarity is how rare something is.
type Rarity struct {
	ID   string
	Name string
	Rank int // from 1, the most common; 0: none
	Step int // of Steps colors; 0: none
}

// Label is what people see of an entry.
type Label struct {
	Name       string // what it gives
	Rarity     string
	RarityName string
	Rank, Step int
	Icon       string
	Leads      bool // it gives nothing but draws from other pools
}

// NewLabels returns the names in a language; an empty one is the catalog's.
func NewLabels(c *catalog.Catalog, language string) *Labels {
	l := &Labels{
		c: c, languages: catalog.DisplaysOf(c).Fallback(language), words: wordsIn(cmp.Or(language, c.TextLanguage())),
		pools: map[string]*catalog.Pool{}, items: map[string]*catalog.Item{}, rarities: map[string]Rarity{},
	}
	for i := range c.Pools {
		l.pools[c.Pools[i].ID] = &c.Pools[i]
	}
	for i := range c.Items {
		l.items[c.Items[i].ID] = &c.Items[i]
	}
	for i := range c.Rarities {
		r, step := &c.Rarities[i], 3
		if last := len(c.Rarities) - 1; last > 0 {
			step = 1 + int(math.Round(float64(i*(Steps-1))/float64(last)))
		}
		l.rarities[r.ID] = Rarity{r.ID, cmp.Or(r.NameIn(l.languages), r.ID), i + 1, step}
	}
	return l
}

// Language returns the language of the words around the names.
func (l *Labels) Language() string { return l.words.Language }

// Catalog returns the name of the catalog, empty if it has none.
func (l *Labels) Catalog() string { return catalog.DisplaysOf(l.c).Name(l.languages) }

// Item returns the name of an item, or the id of a family.
func (l *Labels) Item(id string) string {
	if it := l.items[id]; it != nil {
		return cmp.Or(catalog.Displayed{Name: it.Name, Display: &it.Display}.In(l.languages).Name, id)
	}
	return id
}

// Quest returns the name of a quest.
func (l *Labels) Quest(id string) string {
	for i := range l.c.Quests {
		if q := &l.c.Quests[i]; q.ID == id {
			return cmp.Or(catalog.Displayed{Name: q.Name, Display: &q.Display}.In(l.languages).Name, id)
		}
	}
	return id
}

// Counter returns the name of a counter.
func (l *Labels) Counter(id string) string {
	for i := range l.c.Counters {
		if k := &l.c.Counters[i]; k.ID == id {
			return cmp.Or(catalog.Displayed{Name: k.Name, Display: &k.Display}.In(l.languages).Name, id)
		}
	}
	return id
}

// Pool returns the name of a pool.
func (l *Labels) Pool(id string) string {
	if p := l.pools[id]; p != nil {
		return cmp.Or(l.shown(p).Name, id)
	}
	return id
}

// RarityOf returns the rarity of an item; the zero value: it has none.
func (l *Labels) RarityOf(item string) Rarity {
	if it := l.items[item]; it != nil {
		return l.rarities[it.Display.Rarity]
	}
	return Rarity{}
}

func (l *Labels) shown(p *catalog.Pool) catalog.Shown {
	return catalog.Displayed{Name: p.Name, Display: &p.Display}.In(l.languages)
}

// EntryOf is Entry for ids. An entry that does not exist has its id as its name.
func (l *Labels) EntryOf(pool, entry string) Label {
	if p := l.pools[pool]; p != nil {
		for i := range p.Entries {
			if p.Entries[i].ID == entry {
				return l.Entry(p, i)
			}
		}
	}
	return Label{Name: entry}
}

// Entry says what an entry of a pool gives. It has the rarity and the icon of the rarest thing in it.
func (l *Labels) Entry(p *catalog.Pool, i int) Label {
	e := &p.Entries[i]
	w, out := &e.Reward, Label{}
	var parts []string
	see := func(d *catalog.Display) {
		if r := l.rarities[d.Rarity]; r.Rank > out.Rank {
			out.Rarity, out.RarityName, out.Rank, out.Step = r.ID, r.Name, r.Rank, r.Step
			out.Icon = cmp.Or(d.Icon, out.Icon)
		}
		out.Icon = cmp.Or(out.Icon, d.Icon)
	}
	for _, q := range w.Items {
		parts = append(parts, l.Item(q.Item)+times(q.Min, q.Max))
		if it := l.items[q.Item]; it != nil {
			see(&it.Display)
		}
	}
	for _, list := range w.Codes {
		parts = append(parts, fill(l.words.Code, list))
	}
	for _, in := range w.Draws {
		parts = append(parts, fill(l.words.From, l.Pool(in.Pool)+times(uint64(in.Min), uint64(in.Max))))
		if below := l.pools[in.Pool]; below != nil {
			see(&below.Display)
		}
	}
	out.Leads = len(w.Draws) > 0 && len(w.Items)+len(w.Codes) == 0
	if out.Name = clip(strings.Join(parts, " + ")); out.Name == "" {
		out.Name = fill(l.words.Nothing, e.ID)
	}
	return out
}

func times(low, high uint64) string {
	switch {
	case low == high && low == 1:
		return ""
	case low == high:
		return " ×" + strconv.FormatUint(low, 10)
	}
	return " ×" + strconv.FormatUint(low, 10) + "–" + strconv.FormatUint(high, 10)
}

// stacks says what a price is.
func (l *Labels) stacks(all []catalog.Stack) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, strconv.FormatUint(s.Quantity, 10)+" × "+l.Item(s.Item))
	}
	return strings.Join(parts, " + ")
}

// maxGroup is the most entries by which a group is named.
const maxGroup = 4

// short names an entry by its rarest item, or by the pools that it leads to.
func (l *Labels) short(e *catalog.Entry) string {
	name, rank := e.ID, -1
	for _, q := range e.Reward.Items {
		if r := l.RarityOf(q.Item).Rank; r > rank {
			name, rank = l.Item(q.Item), r
		}
	}
	if rank < 0 && len(e.Reward.Draws) > 0 {
		name = l.Pool(e.Reward.Draws[0].Pool)
	}
	return name
}

// groups names entries, and groups that entries are in.
func (l *Labels) groups(p *catalog.Pool, of []string, or string) string {
	var parts []string
	for _, id := range of {
		name := id
		if r, ok := l.rarities[id]; ok {
			name = r.Name
		}
		var members []string
		for i := range p.Entries {
			if e := &p.Entries[i]; e.ID == id || e.Group == id {
				members = append(members, l.short(e))
			}
		}
		if _, ok := l.rarities[id]; !ok && len(members) > 0 && len(members) <= maxGroup {
			name = strings.Join(members, or)
		}
		parts = append(parts, name)
	}
	return clip(strings.Join(parts, or))
}

// maxText is the longest list of names that stands whole, in bytes.
const maxText = 400

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// time writes a moment, Unix milliseconds.
func (l *Labels) time(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC")
}
