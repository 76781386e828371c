package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
)

const displaysYAML = `
kuji: 1
language: ja
name: {ja: 店, en: Shop}
rarities:
  common: {}
  epic: {name: {ja: 英雄, en: Epic, de: Episch}}
items:
  sword:
    name: {ja: 剣, en: Sword, pt-BR: Espada}
    description: |
      二行
      です
    rarity: epic
    icon: /icons/sword.png
    metadata: {power: 9.50, cursed: true, note: "", hex: 0x10}
  coin: {name: 硬貨}
  gem: {}
pools:
  wheel: {name: {ja: 輪, en: Wheel}, rarity: common, entries: [{id: x, weight: 1}]}
counters:
  wins: {name: {ja: 勝利, zh-Hant: 勝場}}
quests:
  win: {name: {ja: 勝て, en: Win}, description: {ja: 一度, en: Once}, needs: {wins: 1}}
rounds:
  duel: {name: {ja: 決闘, en: Duel}, ticket: {}, winner: {reward: {items: {gem: 1}}}}
`

func parsed(t *testing.T, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDisplays reads displays in languages that are there, that are nearly there, and that are not.
func TestDisplays(t *testing.T) {
	c := parsed(t, displaysYAML)
	all := catalog.DisplaysOf(c)
	if got := all.Languages(); !slices.Equal(got, []string{"ja", "de", "en", "pt-BR", "zh-Hant"}) {
		t.Errorf("languages %q", got)
	}
	shown := func(i int, language string) catalog.Shown { return all.At(i).In(all.Fallback(language)) }
	want := catalog.Shown{Name: "Sword", Description: "二行\nです", Rarity: "epic", Icon: "/icons/sword.png", Metadata: []catalog.Metadata{
		{Key: "power", Value: "9.50"}, {Key: "cursed", Value: "true"}, {Key: "note"}, {Key: "hex", Value: "0x10"},
	}}
	if diff := cmp.Diff(want, shown(0, "en-GB")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, tt := range []struct {
		thing          int
		language, name string
	}{
		{0, "", "剣"}, {0, "fr", "剣"}, {0, "EN", "Sword"}, {0, "en-US-x-lvariant-posix", "Sword"}, {0, "pt-br", "Espada"}, {0, "pt", "剣"},
		{1, "en", "硬貨"}, {2, "en", ""}, {3, "en", "Wheel"}, {4, "zh-Hant-TW", "勝場"}, {4, "en", "勝利"}, {5, "en", "Win"}, {6, "en", "Duel"},
		{0, strings.Repeat("-", 1000), "剣"},
	} {
		if got := shown(tt.thing, tt.language).Name; got != tt.name {
			t.Errorf("thing %d in %q: %q, want %q", tt.thing, tt.language, got, tt.name)
		}
	}
	if d := shown(5, "en").Description; d != "Once" {
		t.Errorf("a quest's description: %q", d)
	}
	if a, b, d := c.Rarities[1].NameIn(all.Fallback("de-AT")), c.Rarities[0].NameIn(all.Fallback("de")), all.Name(all.Fallback("de")); a != "Episch" || b != "" || d != "店" {
		t.Errorf("names %q, %q and %q", a, b, d)
	}
	if n := all.Len(); n != 7 || all.At(6).Kind != catalog.DisplayRound || all.At(6).ID != "duel" {
		t.Errorf("%d displays, the last %+v", n, all.At(6))
	}
	back := parsed(t, string(c.AppendYAML(nil)))
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("written and read (-want +got)\n%s", diff)
	}
	if decoded, err := catalog.Decode(c.AppendCanonical(nil)); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(c, decoded); diff != "" {
		t.Errorf("encoded and decoded (-want +got)\n%s", diff)
	}
}

// TestPlainNames: what says nothing new has the form and the hash that it had before there were displays.
func TestPlainNames(t *testing.T) {
	const plain = "kuji: 1\nname: Shop\nitems: {gem: {name: Gem}}\n"
	c := parsed(t, plain)
	for _, same := range []string{
		"kuji: 1\nlanguage: en\nname: {en: Shop}\nitems: {gem: {name: {en: Gem}}}\n",
		"kuji: 1\nlanguage: 'en'\nname: Shop\nitems: {gem: {name: Gem}}\n",
	} {
		if got := parsed(t, same); got.Hash() != c.Hash() {
			t.Errorf("%q has another hash than %q", same, plain)
		}
	}
	if form := c.AppendCanonical(nil); form[7] != 3 {
		t.Errorf("a catalog without new words has a form of version %d", form[7])
	}
}

// TestDisplayWords: each word of displays needs the level that brings it, and a realm below that is told which.
func TestDisplayWords(t *testing.T) {
	for word, yaml := range map[string]string{
		"language":          "language: de\nitems: {gem: {}}",
		"name: by language": "items: {gem: {name: {en: Gem, de: Stein}}}",
		"description":       "items: {gem: {description: A gem}}",
		"rarities":          "rarities: {epic: {}}\nitems: {gem: {rarity: epic}}",
		"icon":              "items: {gem: {icon: /gem.png}}",
		"metadata":          "items: {gem: {metadata: {a: 1}}}",
	} {
		c := parsed(t, "kuji: 1\n"+yaml+"\n")
		e, ok := errors.AsType[*format.LevelError](c.Allow(5))
		if !ok || e.Word.Name != word || e.Need != 6 {
			t.Errorf("%q at level 5: %v", yaml, e)
		}
		if err := c.Allow(6); err != nil {
			t.Error(err)
		}
		if form := c.AppendCanonical(nil); form[7] != format.Catalog(6) {
			t.Errorf("%q has a form of version %d", yaml, form[7])
		}
	}
}

// TestCheckDisplays damages displays in ways that no source can, and wants each refused by Check and by Decode.
func TestCheckDisplays(t *testing.T) {
	long := func(n int) (all []catalog.Metadata) {
		for i := range n {
			all = append(all, catalog.Metadata{Key: fmt.Sprintf("k%02d", i), Value: strings.Repeat("v", 125)})
		}
		return all
	}
	for name, tt := range map[string]struct {
		damage func(c *catalog.Catalog)
		want   string
	}{
		"another name":        {func(c *catalog.Catalog) { c.Items[0].Name = "太刀" }, `items.sword.name: expected "太刀" as the name in ja, found "剣"`},
		"no own language":     {func(c *catalog.Catalog) { c.Language = "ko" }, "name: expected a text in ko, the language of the catalog, too"},
		"written-out default": {func(c *catalog.Catalog) { c.Language = "en" }, "language: expected none for en"},
		"language":            {func(c *catalog.Catalog) { c.Language = "EN" }, "language: expected a language tag"},
		"tag":                 {func(c *catalog.Catalog) { c.Items[0].Display.Names[1].Language = "english" }, "items.sword.name.english: expected a language tag"},
		"tag twice":           {func(c *catalog.Catalog) { c.Items[0].Display.Names[1].Language = "ja" }, "items.sword.name.ja: duplicate language"},
		"one language":        {func(c *catalog.Catalog) { c.Items[0].Display.Names = c.Items[0].Display.Names[:1] }, "items.sword.name: expected one text without a language, or texts in 2 to 32"},
		"languages":           {func(c *catalog.Catalog) { c.Items[0].Display.Names = make(catalog.Texts, 33) }, "items.sword.name: expected one text without a language, or texts in 2 to 32, found 33"},
		"turning":             {func(c *catalog.Catalog) { c.Items[0].Display.Names[1].Text = "a\u202eb" }, "items.sword.name.en: expected a text of 1 to 256 bytes on one line, found one with characters that change"},
		"long name":           {func(c *catalog.Catalog) { c.Items[0].Display.Names[1].Text = strings.Repeat("a", 257) }, "items.sword.name.en: expected a text of 1 to 256 bytes"},
		"no description":      {func(c *catalog.Catalog) { c.Items[0].Display.Description[0].Text = "" }, "items.sword.description: expected a text of 1 to 2048 bytes"},
		"last line feed":      {func(c *catalog.Catalog) { c.Items[0].Display.Description[0].Text = "a\n" }, "items.sword.description: expected a text of 1 to 2048 bytes"},
		"icon":                {func(c *catalog.Catalog) { c.Items[0].Display.Icon = "javascript:alert(1)" }, "items.sword.icon: expected an address"},
		"long icon":           {func(c *catalog.Catalog) { c.Items[0].Display.Icon = "/" + strings.Repeat("a", 512) }, "items.sword.icon: expected an address"},
		"rarity":              {func(c *catalog.Catalog) { c.Items[0].Display.Rarity = "epicc" }, `items.sword.rarity: there is no rarity "epicc"`},
		"metadata key":        {func(c *catalog.Catalog) { c.Items[0].Display.Metadata[0].Key = "a b" }, `items.sword.metadata["a b"]: expected the id of`},
		"metadata":            {func(c *catalog.Catalog) { c.Items[0].Display.Metadata[0].Value = "\x00" }, "items.sword.metadata.power: expected a text"},
		"much metadata":       {func(c *catalog.Catalog) { c.Items[0].Display.Metadata = long(9) }, "items.sword.metadata: expected at most 1024 bytes of keys and values together, found 1152"},
		"many keys":           {func(c *catalog.Catalog) { c.Items[0].Display.Metadata = long(17) }, "items.sword.metadata: expected a mapping whose keys are ids"},
		"rarity twice":        {func(c *catalog.Catalog) { c.Rarities[1].ID = "common" }, "rarities.common: duplicate id"},
		"round's icon":        {func(c *catalog.Catalog) { c.Rounds[0].Display.Icon = "x" }, "rounds.duel.icon: expected an address"},
		"quest's rarity":      {func(c *catalog.Catalog) { c.Quests[0].Display.Rarity = "x" }, "quests.win.rarity: there is no rarity"},
		"counter's name":      {func(c *catalog.Catalog) { c.Counters[0].Display.Names[1].Text = "" }, "counters.wins.name.zh-Hant: expected a text"},
		"pool's text":         {func(c *catalog.Catalog) { c.Pools[0].Display.Description = catalog.Texts{{Text: "\x01"}} }, "pools.wheel.description: expected a text"},
	} {
		c := parsed(t, displaysYAML)
		tt.damage(c)
		err := c.Check()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want something with %q", name, err, tt.want)
		}
		if d, err := catalog.Decode(c.AppendCanonical(nil)); err == nil {
			t.Errorf("%s: decoded as %+v", name, d)
		}
	}
	if err := func() error { c := parsed(t, displaysYAML); c.Items[0].Display.Metadata = long(8); return c.Check() }(); err != nil {
		t.Errorf("1024 bytes of metadata: %v", err)
	}
}

// TestTurningNames: a name that older builds took is taken, in old catalogs and in new ones.
func TestTurningNames(t *testing.T) {
	c := parsed(t, "kuji: 1\nitems: {gem: {name: Gem}}\n")
	c.Items[0].Name = "gem \u202e mpg"
	if _, err := catalog.Decode(c.AppendCanonical(nil)); err != nil {
		t.Errorf("an old catalog: %v", err)
	}
	if err := c.Check(); err != nil {
		t.Errorf("a new catalog: %v", err)
	}
	if again, err := catalog.Parse(c.AppendYAML(nil)); err != nil || again.Hash() != c.Hash() {
		t.Errorf("exported and read again: %v", err)
	}
}
