package message

import (
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// MaxLanguage is the longest language that a request can name, in bytes.
const MaxLanguage = 64

// PageBytes is about how long a page of displays gets, in bytes: one display more than that.
const PageBytes = 1 << 20

// MaxDisclosed is the most outcomes in one disclosure.
const MaxDisclosed = 1000

// disclosureBytes is what a call takes for a disclosure.
const disclosureBytes = 24 << 20

// displayTexts is what a call takes for the texts of a page of displays, for its rarities and languages, and for
// the places of all displays.
const displayTexts = 16 << 20

// A Shower makes displays of a catalog in a language, or the nearest that there is. The zero value makes none.
type Shower struct {
	Catalog   *catalog.Catalog
	languages []string
}

// NewShower returns what shows a catalog, which may be nil, in a language; an empty one is the catalog's.
func NewShower(c *catalog.Catalog, language string) (Shower, error) {
	if len(language) > MaxLanguage || strings.Trim(language, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		return Shower{}, &kuji.Error{Code: kuji.CodeInvalid, Field: "language", Message: `want a language tag such as "de" or "pt-BR", of at most 64 bytes`}
	}
	if c == nil {
		return Shower{}, nil
	}
	return Shower{c, catalog.DisplaysOf(c).Fallback(language)}, nil
}

// Display makes the message of a display; nil if there is nothing to show.
func (s Shower) Display(d catalog.Displayed) *kujiv1.Display {
	if s.Catalog == nil {
		return nil
	}
	v := d.In(s.languages)
	if v.Name == "" && v.Description == "" && v.Rarity == "" && v.Icon == "" && len(v.Metadata) == 0 {
		return nil
	}
	return &kujiv1.Display{Name: v.Name, Description: v.Description, Rarity: v.Rarity, Icon: v.Icon,
		Metadata: Each(v.Metadata, func(m *catalog.Metadata) *kujiv1.Meta { return &kujiv1.Meta{Key: m.Key, Value: m.Value} })}
}

// Name returns the name of the catalog.
func (s Shower) Name() string { return catalog.DisplaysOf(s.Catalog).Name(s.languages) }

// Rarity makes the message of a rarity.
func (s Shower) Rarity(r *catalog.Rarity) *kujiv1.Rarity {
	return &kujiv1.Rarity{Id: r.ID, Name: r.NameIn(s.languages)}
}

// Displayed makes the message of something that people see: see [catalog.Displays].
func (s Shower) Displayed(i int) *kujiv1.Displayed {
	d := catalog.DisplaysOf(s.Catalog).At(i)
	m := &kujiv1.Displayed{Kind: kujiv1.DisplayKind(d.Kind), Id: d.ID, Display: s.Display(d)}
	switch d.Kind {
	case catalog.DisplayItem:
		m.ItemKind = kujiv1.ItemKind(s.Catalog.Items[i].Kind)
	case catalog.DisplayPool:
		m.Internal = s.Catalog.Pools[i-len(s.Catalog.Items)].Internal
	}
	return m
}

// Outline says what the catalog has.
func (s Shower) Outline() *kujiv1.CatalogOutline {
	return &kujiv1.CatalogOutline{
		Items: Each(s.Catalog.Items, s.Item),
		Start: Stacks(s.Catalog.Start),
		Pools: Each(s.Catalog.Pools, func(p *catalog.Pool) *kujiv1.PoolOutline {
			return &kujiv1.PoolOutline{Id: p.ID, Internal: p.Internal,
				Display: s.Display(catalog.Displayed{Kind: catalog.DisplayPool, ID: p.ID, Name: p.Name, Display: &p.Display})}
		}),
	}
}

// short is Display without what can be long, for messages that have the name in the catalog's language; nil if there
// is no more to show.
func (s Shower) short(d catalog.Displayed) *kujiv1.Display {
	if s.Catalog == nil {
		return nil
	}
	v := d.In(s.languages)
	if v.Name == d.Name && v.Rarity == "" && v.Icon == "" {
		return nil
	}
	return &kujiv1.Display{Name: v.Name, Rarity: v.Rarity, Icon: v.Icon}
}

// Item makes the message of an item, with its display.
func (s Shower) Item(it *catalog.Item) *kujiv1.Item {
	m := Item(it)
	m.Display = s.short(catalog.Displayed{Kind: catalog.DisplayItem, ID: it.ID, Name: it.Name, Display: &it.Display})
	return m
}

// Pool adds its display to the message of a pool.
func (s Shower) Pool(m *kujiv1.Pool, p *catalog.Pool) {
	m.Display = s.short(catalog.Displayed{Kind: catalog.DisplayPool, ID: p.ID, Name: p.Name, Display: &p.Display})
}

// Quest adds its display to the message of a quest.
func (s Shower) Quest(m *kujiv1.Quest, q *catalog.Quest) {
	m.Display = s.short(catalog.Displayed{Kind: catalog.DisplayQuest, ID: q.ID, Name: q.Name, Display: &q.Display})
}

// Counters adds their displays to the messages of counters.
func (s Shower) Counters(all []*kujiv1.PlayerCounter) {
	if s.Catalog == nil || len(all) == 0 {
		return
	}
	byID := make(map[string]*catalog.Counter, len(s.Catalog.Counters))
	for i := range s.Catalog.Counters {
		byID[s.Catalog.Counters[i].ID] = &s.Catalog.Counters[i]
	}
	for _, m := range all {
		if c := byID[m.GetCounter()]; c != nil {
			m.Display = s.Display(catalog.Displayed{Kind: catalog.DisplayCounter, ID: c.ID, Name: c.Name, Display: &catalog.Display{
				Names: c.Display.Names, Rarity: c.Display.Rarity, Icon: c.Display.Icon}})
		}
	}
}
