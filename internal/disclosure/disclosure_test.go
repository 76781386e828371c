package disclosure

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
)

func parse(t *testing.T, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func disclose(t *testing.T, c *catalog.Catalog, language string) *Disclosure {
	t.Helper()
	odds, err := kuji.Disclose(c)
	if err != nil {
		t.Fatal(err)
	}
	return New(kuji.CatalogView{Version: 7, Hash: c.Hash(), Catalog: c}, odds, "shop", language)
}

// example is the catalog of a banner, with names in three languages.
func example(t *testing.T) *catalog.Catalog {
	t.Helper()
	source, err := examples.Files.ReadFile("gacha-banner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(source))
}

// TestOrder: the rarest comes first, what leads to other pools before what is in them, then the least likely.
func TestOrder(t *testing.T) {
	d := disclose(t, example(t), "de")
	if d.Name != "Banner des Laternenfests" || d.Language != "de" || d.Version != 7 || len(d.Pools) != 1 {
		t.Fatalf("%+v", d)
	}
	p := d.Pools[0]
	var got []string
	for _, b := range p.Bands() {
		got = append(got, fmt.Sprintf("-- %s %d", b.Name, b.Step))
		for _, l := range b.Lines {
			got = append(got, l.Name+" "+l.Chance+" "+l.From)
		}
	}
	want := strings.Split(`-- Fünf Sterne 6
eine Ziehung aus Fünf Sterne 0.006 
eine Ziehung aus Fünf Sterne, nicht hervorgehoben 0.003 Fünf Sterne
Garrick der Ungebeugte + Sternenstaub ×10 0.001 Fünf Sterne, nicht hervorgehoben
Yulan + Sternenstaub ×10 0.001 Fünf Sterne, nicht hervorgehoben
Serafine + Sternenstaub ×10 0.001 Fünf Sterne, nicht hervorgehoben
Hoshimi der Laternen + Sternenstaub ×10 0.003 Fünf Sterne
-- Vier Sterne 4
eine Ziehung aus Vier Sterne 0.051 
Quill + Sternenstaub ×2 0.0051 Vier Sterne
Eisenlaterne + Sternenstaub ×2 0.0102 Vier Sterne
Schilfspeer + Sternenstaub ×2 0.0102 Vier Sterne
Tobias + Sternenstaub ×2 0.01275 Vier Sterne
Minori + Sternenstaub ×2 0.01275 Vier Sterne
-- Drei Sterne 1
eine Ziehung aus Drei Sterne 0.943 
Einfaches Schwert + Sternenstaub ×1–3 0.314333333333333 Drei Sterne
Eichenbogen + Sternenstaub ×1–3 0.314333333333333 Drei Sterne
Abgegriffener Kodex + Sternenstaub ×1–3 0.314333333333333 Drei Sterne`, "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.Prices[0] != "1 × Festkarte" || !strings.Contains(p.Pity[0], "Laternenfest: Eine Ziehung, die Fünf Sterne bringt") || !strings.Contains(strings.Join(p.Pity, "\n"), "Tobias oder Minori") {
		t.Errorf("prices %q, pity %q", p.Prices, p.Pity)
	}
}

// TestLanguages: every word of a page is there in each language, and takes what it is given.
func TestLanguages(t *testing.T) {
	c := parse(t, `
kuji: 1
zone: Asia/Tokyo
day: {begins: 05:00}
name: {en: Shop, de: Laden, ja: 店}
rarities: {epic: {}}
items: {gem: {name: {en: Gem, de: Stein, ja: 石}, rarity: epic}, cash: {}}
pools:
  p:
    price: [{gem: 1}, {cash: 3}]
    starts: 2026-07-01T00:00:00+09:00
    ends: 4000-01-01T00:00:00+09:00
    budget: {per: day, of: {cash: 1000}}
    pity: {a: {certain: 9, rising: {from: 5, by: 7.5}}, b: {certain: 20}}
    guarantee: [{draws: 10, of: [a]}]
    entries:
      - {id: a, weight: 1, reward: {items: {gem: {min: 1, max: 3}}}}
      - {id: b, weight: 1, reward: {code: steam}}
      - {id: c, weight: 8, reward: [{pool: q, times: 2}, {items: {cash: 5}}]}
      - {id: console, moments: {count: 10, spread: even}}
  q: {internal: true, entries: [{id: none, weight: 1}]}
  free: {rolls: 2, entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}, {id: y, weight: 1}]}
`)
	for language, some := range map[string][]string{
		"en": {"Odds – Shop", "A draw costs 1 × Gem or 3 × cash.", "Gem ×1–3", "a code of steam", "a draw from q ×2", "nothing (console)", "nothing (none)", "Others",
			"Catalog version 7 of realm shop", "by 7.5 percentage points a draw", "draw 9 after the last hit is certain", "unless Gem comes", "Of each 10 draws in one request, at least 1 takes Gem",
			"the first draw after each of 10 moments", "2026-06-30 15:00 UTC", "no more than this: {per: day, of: {cash: 1000}}", "days begin at 05:00", "A draw of 10", "Times in it", "Rules that change"},
		"de": {"Chancen – Laden", "Eine Ziehung kostet 1 × Stein oder 3 × cash.", "Stein ×1–3", "ein Code aus steam", "eine Ziehung aus q ×2", "nichts (console)", "Weitere",
			"Katalogversion 7 des Realms shop", "um 7.5 Prozentpunkte je Ziehung", "Von je 10 Ziehungen einer Anfrage bringen mindestens 1: Stein", "Tage um 05:00", "Eine Ziehung kostet nichts.", "10,0", "lang=\"de\""},
		"ja": {"提供割合 – 店", "1 回の価格：1 × 石 または 3 × cash", "石 ×1–3", "steam のコード", "q ×2 から抽選", "なし（console）", "その他", "レルム shop のカタログ第 7 版", "1 回ごとに 7.5 ポイント", "まとめて 10 回"},
		"fr": {"Odds – Shop", "lang=\"en\""},
	} {
		d := disclose(t, c, language)
		block, err := d.HTML()
		if err != nil {
			t.Fatal(err)
		}
		page, err := d.Page()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"block": string(block), "page": string(page)} {
			if language == "de" {
				text = strings.ReplaceAll(text, "10\u00a0%", "10,0") // a comma is there where a point would be
			}
			for _, want := range some {
				if !strings.Contains(text, want) {
					t.Errorf("the %s in %s has no %q", name, language, want)
				}
			}
			if at := strings.Index(text, "%!"); at >= 0 {
				t.Errorf("the %s in %s: %q", name, language, text[at:min(at+80, len(text))])
			}
		}
	}
}

// attacks are texts that would do something on a page that does not escape them.
var attacks = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'"--></style><svg onload=alert(1)>`, `</section><iframe src=javascript:alert(1)>`,
	`{{.}}`, `javascript:alert(1)`, `&lt;b&gt;`, `x" onmouseover="alert(1)`, `</textarea><a href="javascript:alert(1)">`, `\u003cscript\u003e`, `a<!--`, `]]>`,
}

// TestEscaped puts attacks into every text that a catalog can have, and wants the page to have the elements and the
// attributes of one without them, and no others.
func TestEscaped(t *testing.T) {
	want := elements(t, attacked(t, "harmless"))
	if len(want) < 40 || !slices.Contains(want, "img src alt width height loading decoding referrerpolicy") {
		t.Fatalf("elements %q", want)
	}
	for _, attack := range attacks {
		block := attacked(t, attack)
		if got := elements(t, block); !slices.Equal(got, want) {
			t.Errorf("%q: elements\n%q\nwant\n%q", attack, got, want)
		}
		if strings.Contains(block, "<script") || regexp.MustCompile(`(?i)<[^>]*\son[a-z]+\s*=`).MatchString(block) {
			t.Errorf("%q is in the page as it is", attack)
		}
	}
}

// attacked is the element of a catalog whose texts are all the same.
func attacked(t *testing.T, text string) string {
	t.Helper()
	c := parse(t, fmt.Sprintf(`
kuji: 1
name: {en: %[1]q, de: %[1]q}
rarities: {epic: {name: {en: %[1]q, de: %[1]q}}}
items:
  gem: {name: {en: %[1]q, de: %[1]q}, description: %[1]q, rarity: epic, icon: "https://example.com/?a=%%3Cscript%%3E&b=';alert(1)//", metadata: {a: %[1]q}}
pools:
  p: {name: {en: %[1]q, de: %[1]q}, description: {en: %[1]q, de: %[1]q}, icon: /p.png, price: {gem: 1}, pity: {x: {certain: 9}}, entries: [{id: x, weight: 1, reward: {items: {gem: 1}}}, {id: y, weight: 9, reward: {pool: q}}]}
  q: {name: %[1]q, internal: true, entries: [{id: z, weight: 1}]}
`, text))
	odds, err := kuji.Disclose(c)
	if err != nil {
		t.Fatal(err)
	}
	d := New(kuji.CatalogView{Version: 1, Catalog: c}, odds, text, "de")
	d.Pools[0].LongRun, d.Pools[0].NoOdds = text, []string{text}
	block, err := d.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(block)
}

// elements returns the elements of a page with the names of their attributes, in order.
func elements(t *testing.T, page string) (all []string) {
	t.Helper()
	page = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page, "<style></style>")
	page = regexp.MustCompile(`<img ([^>]*)>`).ReplaceAllString(page, "<img $1/>")
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Entity = xml.HTMLEntity
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			one := e.Name.Local
			for _, a := range e.Attr {
				one += " " + a.Name.Local
			}
			all = append(all, one)
		}
	}
}

// TestStyleStaysInside: each rule of the element's style is about the element, and it loads nothing by itself.
func TestStyleStaysInside(t *testing.T) {
	block, err := disclose(t, example(t), "").HTML()
	if err != nil {
		t.Fatal(err)
	}
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindSubmatch(block)
	if style == nil {
		t.Fatal("no style")
	}
	css := regexp.MustCompile(`@(media|container)[^{]*\{`).ReplaceAllString(string(style[1]), "")
	rules := regexp.MustCompile(`([^{}]+)\{[^{}]*\}`).FindAllStringSubmatch(css, -1)
	if len(rules) < 30 {
		t.Fatalf("%d rules", len(rules))
	}
	for _, rule := range rules {
		for selector := range strings.SplitSeq(rule[1], ",") {
			if s := strings.TrimSpace(selector); !strings.HasPrefix(s, ".kuji-odds") {
				t.Errorf("a rule about %q", s)
			}
		}
	}
	if strings.Contains(string(style[1]), "url(") || strings.Contains(string(style[1]), "@import") || strings.Contains(string(style[1]), "@font-face") {
		t.Error("the style loads something")
	}
	if n := strings.Count(string(block), "<section"); n != 1 || !strings.HasPrefix(string(block), "<section class=\"kuji-odds\"") || !strings.HasSuffix(strings.TrimSpace(string(block)), "</section>") {
		t.Error("it is not one element")
	}
}

// TestTooLong: what would be too long an element is refused, and is a page all the same.
func TestTooLong(t *testing.T) {
	var b strings.Builder
	b.WriteString("kuji: 1\nitems: {gem: {name: '" + strings.Repeat("<", 256) + "'}}\npools:\n  p:\n    entries:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "      - {id: e%d, weight: 1, reward: {items: {gem: 1}}}\n", i)
	}
	d := disclose(t, parse(t, b.String()), "")
	if _, err := d.HTML(); !errors.Is(err, ErrTooLong) {
		t.Errorf("an element: %v", err)
	}
	if page, err := d.Page(); err != nil || len(page) < MaxHTML {
		t.Errorf("a page of %d bytes, %v", len(page), err)
	}
}

// TestTable has the columns about requests only if something is guaranteed within one.
func TestTable(t *testing.T) {
	rows := disclose(t, example(t), "en").Table()
	if got := strings.Join(rows[0], ","); got != "catalog_version,catalog_hash,pool,taken_from,entry,chance,chance_exact,times_a_draw,times_a_draw_long_run,moments,budget,name,rarity" {
		t.Error(got)
	}
	for _, row := range rows {
		if len(row) != len(rows[0]) {
			t.Errorf("a row of %d columns: %q", len(row), row)
		}
	}
}
