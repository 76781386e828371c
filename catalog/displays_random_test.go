package catalog_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// drawDisplays gives a catalog a language and rarities, and all that people see a display.
func drawDisplays(t *rapid.T, c *catalog.Catalog) {
	c.Language = rapid.SampledFrom([]string{"", "ja", "pt-BR", "zh-Hant"}).Draw(t, "language")
	drawNames(t, c, &c.Name, &c.Names)
	if maybe(t, "rarities") {
		for _, id := range ids(t, 1, 4, "rarities") {
			r := catalog.Rarity{ID: id, Name: name(t)}
			drawNames(t, c, &r.Name, &r.Names)
			c.Rarities = append(c.Rarities, r)
		}
	}
	draw := func(name *string, d *catalog.Display) {
		if maybe(t, "display") {
			drawDisplay(t, c, name, d)
		}
	}
	for i := range c.Items {
		draw(&c.Items[i].Name, &c.Items[i].Display)
	}
	for i := range c.Pools {
		draw(&c.Pools[i].Name, &c.Pools[i].Display)
	}
	for i := range c.Counters {
		draw(&c.Counters[i].Name, &c.Counters[i].Display)
	}
	for i := range c.Quests {
		draw(&c.Quests[i].Name, &c.Quests[i].Display)
	}
	for i := range c.Rounds {
		draw(&c.Rounds[i].Name, &c.Rounds[i].Display)
	}
}

func drawDisplay(t *rapid.T, c *catalog.Catalog, name *string, d *catalog.Display) {
	drawNames(t, c, name, &d.Names)
	if maybe(t, "description") {
		d.Description = drawTexts(t, c, `[ -~é語くじ🎲\n]{0,40}[a-z]`)
	}
	if len(c.Rarities) > 0 && maybe(t, "rarity") {
		d.Rarity = rapid.SampledFrom(c.Rarities).Draw(t, "rarity").ID
	}
	if maybe(t, "icon") {
		d.Icon = rapid.SampledFrom([]string{"/", "/icons/sword.png", "https://example.com", "http://127.0.0.1:8080/a?b=c#d"}).Draw(t, "icon")
	}
	if maybe(t, "metadata") {
		for _, key := range ids(t, 1, 3, "metadata") {
			d.Metadata = append(d.Metadata, catalog.Metadata{Key: key, Value: rapid.SampledFrom([]string{"", "x", "1.50", "true", "null", "two\nlines", "0x10"}).Draw(t, "value")})
		}
	}
}

// drawNames gives a name that is there translations.
func drawNames(t *rapid.T, c *catalog.Catalog, name *string, names *catalog.Texts) {
	if *name == "" || !maybe(t, "translated") {
		return
	}
	if all := drawTexts(t, c, `[ -~é語くじ🎲]{1,20}`); len(all) > 1 {
		for i := range all {
			if all[i].Language == c.TextLanguage() {
				all[i].Text = *name
			}
		}
		*names = all
	}
}

// drawTexts draws a text in one language or in several.
func drawTexts(t *rapid.T, c *catalog.Catalog, like string) catalog.Texts {
	text := func() string { return rapid.StringMatching(like).Draw(t, "text") }
	others := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"de", "fr", "es-419", "sr-Latn-RS"}), 0, 3, rapid.ID).Draw(t, "languages")
	if len(others) == 0 {
		return catalog.Texts{{Text: text()}}
	}
	var all catalog.Texts
	for _, l := range append(others, c.TextLanguage()) {
		all = append(all, catalog.Text{Language: l, Text: text()})
	}
	return all
}

// texts writes the name of a catalog, its language and its rarities.
func (w *writer) texts(c *catalog.Catalog) {
	w.names(0, "name", c.Name, c.Names)
	if c.Language != "" {
		w.line(0, "language: %s", c.Language)
	} else if w.optional() {
		w.line(0, "language: en")
	}
	if len(c.Rarities) > 0 {
		w.line(0, "rarities:")
	}
	for _, r := range c.Rarities {
		if r.Name == "" {
			w.line(2, "%q: {}", r.ID)
			continue
		}
		w.line(2, "%q:", r.ID)
		w.names(4, "name", r.Name, r.Names)
	}
}

func (w *writer) names(indent int, key, name string, all catalog.Texts) {
	switch {
	case len(all) > 0:
		var parts []string
		for _, t := range all {
			parts = append(parts, fmt.Sprintf("%s: %s", t.Language, quoteYAML(t.Text)))
		}
		w.line(indent, "%s: {%s}", key, strings.Join(parts, ", "))
	case name != "" && rapid.IntRange(0, 5).Draw(w.t, "as a mapping") == 0:
		w.line(indent, "%s: {%s: %s}", key, w.language, quoteYAML(name))
	case name != "":
		w.line(indent, "%s: %s", key, quoteYAML(name))
	}
}

// quoteYAML writes a text as a double-quoted scalar.
func quoteYAML(s string) string { return fmt.Sprintf("%q", s) }

func (w *writer) display(name string, d *catalog.Display) {
	w.names(4, "name", name, d.Names)
	if len(d.Description) == 1 {
		w.names(4, "description", d.Description[0].Text, nil)
	} else {
		w.names(4, "description", "", d.Description)
	}
	if d.Rarity != "" {
		w.line(4, "rarity: %q", d.Rarity)
	}
	if d.Icon != "" {
		w.line(4, "icon: %q", d.Icon)
	}
	if len(d.Metadata) > 0 {
		w.line(4, "metadata:")
	}
	for _, m := range d.Metadata {
		if m.Value == "1.50" || m.Value == "true" || m.Value == "0x10" {
			w.line(6, "%q: %s", m.Key, m.Value)
		} else {
			w.line(6, "%q: %s", m.Key, quoteYAML(m.Value))
		}
	}
}
