package disclosure

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed block.html page.html
var pages embed.FS

//go:embed block.css
var blockStyle string

//go:embed palette.css
var palette string

var templates = template.Must(template.ParseFS(pages, "*.html"))

// Palette returns the look of Kuji's pages as custom properties of CSS: colors, type and space, in light and dark,
// for the elements that the selector matches.
func Palette(selector string) template.CSS {
	light, dark, _ := strings.Cut(palette, "/* dark */")
	light = strings.TrimPrefix(light, "/* light */")
	return template.CSS(selector + " {" + light + "}\n@media (prefers-color-scheme: dark) { " + selector + " {" + dark + "} }\n") //nolint:gosec // both are files of this room
}

// shown is a Disclosure as the pages see it.
type shown struct {
	*Disclosure
	Page bool // it is a page of its own
}

// MaxHTML is the longest element to embed, in bytes.
const MaxHTML = 1 << 20

// ErrTooLong says that an element to embed would be longer than [MaxHTML].
var ErrTooLong = fmt.Errorf("disclosure: more than %d bytes of HTML", MaxHTML)

// HTML returns the odds as one element to embed in a page. It has its own style and no scripts, and changes nothing
// outside of it. The error is [ErrTooLong] if it would be longer than [MaxHTML].
func (d *Disclosure) HTML() ([]byte, error) { return (&shown{d, false}).render("block.html", MaxHTML) }

// Page returns a page that needs no other files except the icons of the catalog.
func (d *Disclosure) Page() ([]byte, error) {
	return (&shown{d, true}).render("page.html", math.MaxInt)
}

func (s *shown) render(name string, most int) ([]byte, error) {
	b := bounded{most: most}
	if err := templates.ExecuteTemplate(&b, name, s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// bounded takes a limited number of bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.most-b.Len() {
		return 0, ErrTooLong
	}
	return b.Buffer.Write(p)
}

func (s *shown) Style() template.CSS {
	return Palette(".kuji-odds") + template.CSS(blockStyle) //nolint:gosec // a file of this room
}

func (s *shown) PageStyle() template.CSS {
	return Palette(":root") + ":root { color-scheme: light dark; } body { margin: 0; background: var(--ground); } main { padding: var(--s4); } @media (max-width: 40rem) { main { padding: var(--s2); } }"
}

// Title is what stands at the top.
func (s *shown) Title() string {
	if s.Name == "" {
		return s.words.Odds
	}
	return fill(s.words.Of, s.Name)
}

// Heads are words that stand alone.
type Heads struct{ Intro, Entry, First, Exactly, Times, LongRun, Rules, Hash string }

func (s *shown) Words() Heads {
	w := s.words
	intro := w.Intro
	if slices.ContainsFunc(s.Pools, func(p Pool) bool { return len(p.Counts) > 0 }) {
		intro += w.IntroWithin
	}
	return Heads{intro, w.Entry, w.First, w.Exactly, w.Times, w.LongRun, w.Rules, w.Hash}
}

func (s *shown) VersionText() string           { return fill(s.words.Version, s.Version, s.Realm) }
func (s *shown) DrawOf(n int) string           { return fill(s.words.DrawOf, n) }
func (s *shown) InDraws(n int) string          { return fill(s.words.InDraws, n) }
func (s *shown) NotComputed(why string) string { return fill(s.words.NotComputed, why) }
func (s *shown) NoLongRun(why string) string   { return fill(s.words.NoLongRun, why) }

// Price says what a draw costs.
func (s *shown) Price(p Pool) string {
	if len(p.Prices) == 0 {
		return fill(s.words.Price, s.words.Free)
	}
	return fill(s.words.Price, strings.Join(p.Prices, s.words.Or))
}

// Columns is how many columns the table of a pool has.
func (s *shown) Columns(p Pool) int {
	n := 3 + 2*len(p.Counts)
	if p.Times {
		n++
	}
	if p.LongRun == "" {
		n++
	}
	return n
}

// Percent writes a decimal in percent, with six digits.
func (s *shown) Percent(decimal string) string {
	v, err := strconv.ParseFloat(decimal, 64)
	if err != nil {
		return "–"
	}
	return s.Number(strconv.FormatFloat(100*v, 'g', 6, 64)) + "\u00a0%"
}

// Number writes a decimal as the language does.
func (s *shown) Number(decimal string) string {
	if s.words.Language == "de" {
		return strings.ReplaceAll(decimal, ".", ",")
	}
	return decimal
}

// Band is the lines of one rarity.
type Band struct {
	Name  string // empty: no line of the pool has a rarity
	Step  int
	Lines []Line
}

// Bands returns the lines by rarity, in their order.
func (p Pool) Bands() (all []Band) {
	for i, l := range p.Lines {
		if i == 0 || p.Lines[i-1].Rarity != l.Rarity {
			all = append(all, Band{Name: l.RarityName, Step: l.Step})
		}
		last := &all[len(all)-1]
		last.Lines = append(last.Lines, l)
	}
	if len(all) > 1 && all[len(all)-1].Name == "" {
		all[len(all)-1].Name = p.other
	}
	return all
}

// Rules are what changes the odds, in words.
func (p Pool) Rules() (all []string) {
	for _, some := range [][]string{p.Pity, p.Within, p.Moments, p.Budgets} {
		all = append(all, some...)
	}
	return all
}
