package catalog

import (
	"fmt"
	"strings"
	"unicode"
)

// AppendYAML appends the catalog as YAML that [Parse] reads as the same catalog, with the same hash. The
// source's comments and layout are not in it. It may be longer than the source.
func (c *Catalog) AppendYAML(b []byte) []byte {
	for _, f := range rootShape.present(c) {
		switch f.name {
		case "items":
			b = append(b, "items:\n"...)
			for i := range c.Items {
				b = fmt.Appendf(b, "  %s: %s\n", yamlID(c.Items[i].ID), itemShape.write(1, &c.Items[i]))
			}
		case "pools":
			b = append(b, "pools:\n"...)
			for i := range c.Pools {
				b = c.Pools[i].appendYAML(b)
			}
		case "rounds":
			b = append(b, "rounds:\n"...)
			for i := range c.Rounds {
				b = fmt.Appendf(b, "  %s: %s\n", yamlID(c.Rounds[i].ID), roundShape.write(1, &c.Rounds[i]))
			}
		default:
			b = fmt.Appendf(b, "%s: %s\n", f.name, f.write(1, c))
		}
	}
	return b
}

func (p *Pool) appendYAML(b []byte) []byte {
	b = fmt.Appendf(b, "  %s:\n", yamlID(p.ID))
	for _, s := range p.Settings() {
		b = fmt.Appendf(b, "    %s: %s\n", s.Key, s.Value)
	}
	b = append(b, "    entries:\n"...)
	for i := range p.Entries {
		b = fmt.Appendf(b, "      - %s\n", entryShapes[p.Mode].write(p.WeightScale, &p.Entries[i]))
	}
	return b
}

// Setting is a setting of an item, a pool or an entry, as YAML on one line.
type Setting struct{ Key, Value string }

// Settings returns the settings of a pool that are not left out, except for its entries.
func (p *Pool) Settings() []Setting {
	return poolShape.settings(p.WeightScale, p, "entries")
}

// Texts returns the settings of the catalog that are about texts and not left out: its name, the language
// of texts, and its rarities.
func (d Displays) Texts() (all []Setting) {
	for _, f := range rootShape.present(d.c) {
		if f.name == "name" || f.name == "language" || f.name == "rarities" {
			all = append(all, Setting{f.name, f.write(1, d.c)})
		}
	}
	return all
}

// Settings returns the settings of an item that are not left out.
func (i *Item) Settings() []Setting { return itemShape.settings(1, i, "") }

// EntrySettings returns the settings of an entry that are not left out, except for its id.
func (p *Pool) EntrySettings(i int) []Setting {
	return entryShapes[p.Mode].settings(p.WeightScale, &p.Entries[i], "id")
}

// Settings returns the settings of a counter that are not left out.
func (c *Counter) Settings() []Setting { return counterShape.settings(1, c, "") }

// Settings returns the settings of a quest that are not left out.
func (q *Quest) Settings() []Setting { return questShape.settings(1, q, "") }

// Settings returns the settings of a tier that are not left out.
func (t *Tier) Settings() []Setting { return tierShape.settings(1, t, "") }

// Settings returns the settings of a round that are not left out.
func (r *Round) Settings() []Setting { return roundShape.settings(1, r, "") }

func texts[T any](all []T, one func(*T) string) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = one(&all[i])
	}
	return out
}

func mappingOf(parts []string) string { return "{" + strings.Join(parts, ", ") + "}" }

// yamlID writes an id, in quotes if some YAML reader may take it for anything but a text.
func yamlID(id string) string {
	plain := id != "" && (id[0]|0x20 >= 'a' && id[0]|0x20 <= 'z')
	switch strings.ToLower(id) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		plain = false
	}
	if plain {
		return id
	}
	return `"` + id + `"`
}

// yamlText writes a text in quotes.
func yamlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
