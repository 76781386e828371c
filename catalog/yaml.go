package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// AppendYAML appends the catalog as YAML that [Parse] reads as the same catalog, with the same
// canonical form and hash. Comments of the source, and how it was laid out, are not kept. It may be
// longer than the source.
func (c *Catalog) AppendYAML(b []byte) []byte {
	w := yamlWriter{b}
	w.line(0, "kuji: %d", Format)
	w.name(0, c.Name)
	if c.Zone.Name != "" {
		w.line(0, "zone: %s", c.Zone.Name)
	}
	w.line(0, "items:")
	for i := range c.Items {
		item, parts := &c.Items[i], []string{}
		if item.Kind == KindCurrency {
			parts = append(parts, "kind: currency")
		}
		if isProbe(item.Kind) {
			parts = append(parts, "kind: probe")
		}
		if item.Name != "" {
			parts = append(parts, "name: "+yamlText(item.Name))
		}
		w.line(2, "%s: %s", yamlID(item.ID), mappingOf(parts))
	}
	if len(c.Pools) > 0 {
		w.line(0, "pools:")
	}
	for i := range c.Pools {
		w.pool(&c.Pools[i])
	}
	if len(c.Start) > 0 {
		w.line(0, "start: %s", yamlStacks(c.Start))
	}
	switch i := c.Idempotency; {
	case i.IDs == IDsTimeOrdered:
		w.line(0, "idempotency: {ids: time-ordered, ahead: %s, count: %d, age: %s}", formatDuration(i.Ahead), i.Count, formatDuration(i.Age))
	case i != Idempotency{Count: DefaultIdempotencyCount, Age: DefaultIdempotencyAge}:
		w.line(0, "idempotency: {count: %d, age: %s}", i.Count, formatDuration(i.Age))
	}
	if c.Guesses != (Guesses{}) && (c.Guesses != DefaultGuesses || !c.redeems()) {
		w.line(0, "guesses: {per: %s, count: %d}", wordOf(budgetPerWords, c.Guesses.Per), c.Guesses.Count)
	}
	return w.b
}

type yamlWriter struct{ b []byte }

func (w *yamlWriter) line(indent int, format string, args ...any) {
	w.b = append(w.b, "                "[:indent]...)
	w.b = fmt.Appendf(w.b, format, args...)
	w.b = append(w.b, '\n')
}

func (w *yamlWriter) name(indent int, name string) {
	if name != "" {
		w.line(indent, "name: %s", yamlText(name))
	}
}

// Setting is a setting of a pool or an entry, as YAML on one line.
type Setting struct{ Key, Value string }

type settings []Setting

func (all *settings) add(set bool, key, format string, args ...any) {
	if set {
		*all = append(*all, Setting{key, fmt.Sprintf(format, args...)})
	}
}

func (w *yamlWriter) pool(p *Pool) {
	w.line(2, "%s:", yamlID(p.ID))
	for _, s := range p.Settings() {
		w.line(4, "%s: %s", s.Key, s.Value)
	}
	w.line(4, "entries:")
	for i := range p.Entries {
		parts := []string{"id: " + yamlID(p.Entries[i].ID)}
		for _, s := range p.EntrySettings(i) {
			parts = append(parts, s.Key+": "+s.Value)
		}
		w.line(6, "- %s", mappingOf(parts))
	}
}

// Settings returns the settings of a pool that are not left out, except for its entries.
func (p *Pool) Settings() []Setting {
	var all settings
	all.add(p.Name != "", "name", "%s", yamlText(p.Name))
	all.add(p.Mode != ModeWeighted, "mode", "%s", wordOf(modeWords, p.Mode))
	all.add(p.Internal, "internal", "true")
	all.add(p.Memoryless, "memoryless", "true")
	all.add(len(p.Price) > 0, "price", "%s", listOrOne(p.Price, func(price *[]Stack) string { return yamlStacks(*price) }))
	all.add(len(p.Bundles) > 0, "bundles", "%s", listOf(p.Bundles, func(b *Bundle) string {
		return fmt.Sprintf("{draws: %d, price: %s}", b.Draws, yamlStacks(b.Price))
	}))
	all.add(p.Free.Per != 0, "free", "{per: %s, draws: %d}", wordOf(perWords, p.Free.Per), p.Free.Draws)
	all.add(len(p.Redeem) > 0, "redeem", "%s", listOrOne(p.Redeem, (*Redeem).yaml))
	all.add(p.StartsAt != 0, "starts", "%s", formatInstant(p.StartsAt))
	all.add(p.EndsAt != 0, "ends", "%s", formatInstant(p.EndsAt))
	all.add(p.MaxCount != DefaultMaxCount, "max_count", "%d", p.MaxCount)
	all.add(len(p.Limits) > 0, "limits", "%s", listOf(p.Limits, (*PlayerLimit).yaml))
	all.add(!p.When.Empty(), "when", "%s", p.When.yaml())
	all.add(p.Rolls.Distinct, "rolls", "{min: %d, max: %d, distinct: true}", p.Rolls.Min, p.Rolls.Max)
	all.add(!p.Rolls.Distinct && p.Rolls != Rolls{Min: 1, Max: 1}, "rolls", "%s", yamlRange(uint64(p.Rolls.Min), uint64(p.Rolls.Max)))
	all.add(len(p.Tracks) > 0, "pity", "%s", mappingOf(texts(p.Tracks, func(t *Track) string { return yamlID(t.Name) + ": " + t.yaml() })))
	all.add(len(p.Guarantees) > 0, "guarantee", "%s", listOf(p.Guarantees, func(g *Guarantee) string {
		return fmt.Sprintf("{draws: %d, at_least: %d, of: %s}", g.Draws, g.AtLeast, yamlIDs(g.Of))
	}))
	all.add(!p.Last.Nothing(), "last", "%s", p.Last.yaml())
	all.add(p.Refill != 0, "refill", "%d", p.Refill)
	all.add(len(p.Budgets) > 0, "budget", "%s", listOrOne(p.Budgets, (*Budget).yaml))
	return all
}

// EntrySettings returns the settings of an entry that are not left out, except for its id.
func (p *Pool) EntrySettings(i int) []Setting {
	var all settings
	e := &p.Entries[i]
	all.add(p.Mode == ModeWeighted && e.Moments.Count == 0, "weight", "%s", formatScaled(e.Weight, p.WeightScale))
	all.add(p.Mode == ModeEach, "chance", "%s", formatScaled(e.Weight, p.WeightScale))
	all.add(!e.Stock.Unlimited && e.Moments.Count == 0, "stock", "%d", e.Stock.Count)
	all.add(e.Group != "", "group", "%s", yamlID(e.Group))
	all.add(!e.When.Empty(), "when", "%s", e.When.yaml())
	all.add(e.Unique, "unique", "true")
	all.add(!e.Luck.Empty(), "luck", "%s", e.Luck.yaml(p.WeightScale))
	all.add(e.Moments.Count > 0, "moments", "%s", e.Moments.yaml())
	all.add(!e.Reward.Nothing(), "reward", "%s", e.Reward.yaml())
	return all
}

func (l *PlayerLimit) yaml() string {
	window := ""
	if l.Per == PerWindow {
		window = "window: " + formatDuration(time.Duration(l.Window)*time.Millisecond) + ", "
	}
	return fmt.Sprintf("{per: %s, %sdraws: %d}", wordOf(perWords, l.Per), window, l.Draws)
}

func (b *Budget) yaml() string {
	share := ""
	if b.Share != "" {
		share = ", share: " + yamlID(b.Share)
	}
	return fmt.Sprintf("{per: %s, of: %s%s}", wordOf(budgetPerWords, b.Per), yamlStacks(b.Of), share)
}

func (m *Moments) yaml() string {
	parts := []string{fmt.Sprint("count: ", m.Count), "spread: " + wordOf(spreadWords, m.Spread)}
	if len(m.Weights) > 0 {
		parts = append(parts, "weights: "+mappingOf(texts(m.Weights, func(w *TimeWeight) string { return fmt.Sprintf("%q: %d", w.When, w.Weight) })))
	}
	if m.Pass {
		parts = append(parts, "missed: pass")
	}
	return mappingOf(parts)
}

func (l *Luck) yaml(scale uint64) string {
	of := "pity: " + yamlID(l.Track)
	if l.Item != "" {
		of = "item: " + yamlID(l.Item)
	}
	return fmt.Sprintf("{%s, weights: %s}", of, listOf(l.Steps, func(s *LuckStep) string {
		return fmt.Sprintf("{from: %d, weight: %s}", s.From, formatScaled(s.Weight, scale))
	}))
}

func (c *Condition) yaml() string {
	var parts []string
	if len(c.Holds) > 0 {
		parts = append(parts, "holds: "+yamlStacks(c.Holds))
	}
	if len(c.Lacks) > 0 {
		parts = append(parts, "lacks: "+yamlIDs(c.Lacks))
	}
	if len(c.Tracks) > 0 {
		parts = append(parts, "pity: "+mappingOf(texts(c.Tracks, func(t *Reached) string { return fmt.Sprintf("%s: %d", yamlID(t.Track), t.Draws) })))
	}
	return mappingOf(parts)
}

func (t *Track) yaml() string {
	var parts []string
	if len(t.Of) != 1 || t.Of[0] != t.Name {
		parts = append(parts, "of: "+yamlIDs(t.Of))
	}
	if t.Certain != 0 {
		parts = append(parts, fmt.Sprint("certain: ", t.Certain))
	}
	if r := &t.Rising; r.From != 0 {
		by := func(v *uint64) string { return formatScaled(*v, r.Scale) }
		points := listOf(r.By, by)
		if !r.Table {
			points = by(&r.By[0])
		}
		parts = append(parts, fmt.Sprintf("rising: {from: %d, by: %s}", r.From, points))
	}
	if t.Share != "" {
		parts = append(parts, "share: "+yamlID(t.Share))
	}
	return mappingOf(parts)
}

// yaml writes a reward: one part, or a list of one for each list of codes and each pool that
// it draws from.
func (w *Reward) yaml() string {
	parts := make([][]string, max(1, len(w.Codes), len(w.Draws)))
	if len(w.Items) > 0 {
		items := texts(w.Items, func(q *Quantity) string { return yamlID(q.Item) + ": " + yamlRange(q.Min, q.Max) })
		parts[0] = append(parts[0], "items: "+mappingOf(items))
	}
	for i, list := range w.Codes {
		parts[i] = append(parts[i], "code: "+yamlID(list))
	}
	for i, in := range w.Draws {
		parts[i] = append(parts[i], "pool: "+yamlID(in.Pool))
		if in.Min != 1 || in.Max != 1 {
			parts[i] = append(parts[i], "times: "+yamlRange(uint64(in.Min), uint64(in.Max)))
		}
	}
	return listOrOne(parts, func(part *[]string) string { return mappingOf(*part) })
}

func texts[T any](all []T, one func(*T) string) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = one(&all[i])
	}
	return out
}

func mappingOf(parts []string) string { return "{" + strings.Join(parts, ", ") + "}" }

func listOf[T any](all []T, one func(*T) string) string {
	return "[" + strings.Join(texts(all, one), ", ") + "]"
}

// listOrOne writes a list of one as its only element.
func listOrOne[T any](all []T, one func(*T) string) string {
	if len(all) == 1 {
		return one(&all[0])
	}
	return listOf(all, one)
}

func yamlStacks(all []Stack) string {
	return mappingOf(texts(all, func(s *Stack) string { return fmt.Sprintf("%s: %d", yamlID(s.Item), s.Quantity) }))
}

func yamlIDs(all []string) string {
	return listOf(all, func(id *string) string { return yamlID(*id) })
}

func yamlRange(low, high uint64) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("{min: %d, max: %d}", low, high)
}

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

// formatScaled writes v / scale, where scale is a power of ten, as parseDecimal reads it.
func formatScaled(v, scale uint64) string {
	s := strconv.FormatUint(v/scale, 10)
	if rest := v % scale; rest > 0 {
		s += "." + strings.TrimRight(strconv.FormatUint(scale+rest, 10)[1:], "0")
	}
	return s
}

func formatInstant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// wordOf returns the word that stands for a value.
func wordOf[T comparable](s choiceShape[T], v T) string {
	for _, c := range s {
		if c.value == v {
			return c.word
		}
	}
	return "" // Check refuses such a catalog
}
