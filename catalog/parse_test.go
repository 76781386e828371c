package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
)

// TestWritten draws catalogs, writes them as YAML, and wants them back: from
// Parse, accepted by the JSON Schema, unchanged by the canonical form.
func TestWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawCatalog(rt)
		got, err := catalog.Parse([]byte(w.yaml))
		if err != nil {
			rt.Fatalf("%v in\n%s", err, w.yaml)
		}
		if diff := cmp.Diff(&w.want, got); diff != "" {
			rt.Fatalf("(-written +parsed)\n%s\nin\n%s", diff, w.yaml)
		}
		if err := schemaError(t, []byte(w.yaml)); err != nil {
			rt.Fatalf("the schema refuses what Parse accepts: %v in\n%s", err, w.yaml)
		}
		roundTrip(rt, got)
	})
}

// roundTrip wants c back from its canonical form.
func roundTrip(t interface{ Fatalf(string, ...any) }, c *catalog.Catalog) {
	b := c.AppendCanonical(nil)
	back, err := catalog.Decode(b)
	if err != nil {
		t.Fatalf("Decode refuses what Parse accepts: %v", err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Fatalf("(-parsed +decoded)\n%s", diff)
	}
	if again := back.AppendCanonical([]byte("x")); !bytes.Equal(again[1:], b) {
		t.Fatalf("the canonical form changes:\n%x\n%x", b, again[1:])
	}
	if back.Hash() != c.Hash() {
		t.Fatalf("the hash changes")
	}
}

// TestWeights holds the scaled weights against math/big, up to all the digits
// that there may be.
func TestWeights(t *testing.T) {
	weight := rapid.OneOf(
		rapid.StringMatching(`(0|[1-9][0-9]{0,18})`),
		rapid.StringMatching(`(0|[1-9][0-9]{0,5})\.[0-9]{1,20}`),
		rapid.StringMatching(`(0|[1-9])\.0{0,17}[1-9]?`+`0{0,9}`),
	)
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(weight, 1, 5).Draw(rt, "weights")
		source := "kuji: 1\nitems: {gem: {}}\npools:\n  p:\n    entries:\n"
		fits, sum, most := true, new(big.Int), 0
		for i, s := range texts {
			if strings.HasSuffix(s, ".") { // the third pattern can end so
				s += "0"
				texts[i] = s
			}
			_, fraction, _ := strings.Cut(s, ".")
			most = max(most, len(strings.TrimRight(fraction, "0")))
			source += fmt.Sprintf("    - {id: e%d, weight: %s}\n", i, s)
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(most)), nil)
		want := make([]*big.Int, len(texts))
		for i, s := range texts {
			v, _ := new(big.Rat).SetString(s)
			v.Mul(v, new(big.Rat).SetInt(scale))
			want[i] = v.Num()
			sum.Add(sum, want[i])
		}
		fits = most <= 18 && sum.Sign() > 0 && sum.IsInt64()
		c, err := catalog.Parse([]byte(source))
		if (err == nil) != fits {
			rt.Fatalf("should fit: %v, got %v for %q", fits, err, texts)
		}
		if err != nil {
			return
		}
		accepted++
		if new(big.Int).SetUint64(c.Pools[0].WeightScale).Cmp(scale) != 0 {
			rt.Fatalf("scale %d, want %d for %q", c.Pools[0].WeightScale, scale, texts)
		}
		for i, e := range c.Pools[0].Entries {
			if new(big.Int).SetUint64(e.Weight).Cmp(want[i]) != 0 {
				rt.Fatalf("weight %d is %d, want %d for %q", i, e.Weight, want[i], texts)
			}
		}
	})
	if accepted == 0 {
		t.Error("no weights were accepted")
	}
}

func TestExamples(t *testing.T) {
	for _, file := range exampleFiles(t) {
		c := example(t, file)
		roundTrip(t, c)
		source, err := fs.ReadFile(examples.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaError(t, source); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func exampleFiles(t testing.TB) []string {
	files, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(files) != 12 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

func example(t testing.TB, file string) *catalog.Catalog {
	source, err := fs.ReadFile(examples.Files, file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// TestExampleRates holds the examples to what they say of themselves.
func TestExampleRates(t *testing.T) {
	box := example(t, "box-raffle.yaml").Pools[0]
	tickets := uint64(0)
	for _, e := range box.Entries {
		tickets += e.Stock.Count
	}
	if box.Mode != catalog.ModeRaffle || tickets != 100 || len(box.Entries) != 8 {
		t.Errorf("the box has mode %d, %d tickets, %d prizes", box.Mode, tickets, len(box.Entries))
	}
	banner := example(t, "gacha-banner.yaml").Pools[0]
	if diff := cmp.Diff([]uint64{6, 51, 943}, weights(banner)); diff != "" || banner.WeightScale != 10 {
		t.Errorf("rates of the banner, scaled by %d: %s", banner.WeightScale, diff)
	}
	splash := example(t, "instant-win.yaml").Pools[0]
	if diff := cmp.Diff([]uint64{1, 19, 480, 4500, 95000}, weights(splash)); diff != "" || splash.WeightScale != 1000 {
		t.Errorf("rates of the instant win, scaled by %d: %s", splash.WeightScale, diff)
	}
}

func weights(p catalog.Pool) []uint64 {
	var all []uint64
	for _, e := range p.Entries {
		all = append(all, e.Weight)
	}
	return all
}

const smallest = "kuji: 1\nitems: {gem: {}}\n"

func TestEncodings(t *testing.T) {
	want, err := catalog.Parse([]byte(smallest))
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{
		"byte order mark": "\uFEFF" + smallest,
		"CRLF":            strings.ReplaceAll(smallest, "\n", "\r\n"),
		"markers":         "# comment\n---\n" + smallest + "...\n",
		"JSON":            `{"kuji": 1, "items": {"gem": {}}}`,
		"no last newline": strings.TrimSuffix(smallest, "\n"),
	} {
		c, err := catalog.Parse([]byte(source))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, bad := range map[string]struct{ source, want string }{
		"Latin-1":       {smallest + "# caf\xe9\n", "3:6: expected UTF-8, found the byte 0xe9"},
		"after letters": {"kuji: 1\nname: éé\xff\n", "2:9: expected UTF-8, found the byte 0xff"},
		"UTF-16":        {"\xff\xfek\x00u\x00", "1:1: expected UTF-8, found the byte 0xff"},
	} {
		if _, err := catalog.Parse([]byte(bad.source)); err == nil || err.Error() != bad.want {
			t.Errorf("%s: got %v, want %s", name, err, bad.want)
		}
	}
	if _, err := catalog.Parse([]byte("kuji: 1\nname: nul \x00\n")); err == nil {
		t.Error("a NUL byte is accepted")
	}
}

func TestManyErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("kuji: 1\nitems:\n  gem: {}\n")
	for range catalog.MaxErrors {
		b.WriteString("  gem: {}\n")
	}
	_, err := catalog.Parse([]byte(b.String()))
	var all *catalog.Errors
	if !errors.As(err, &all) || len(all.List) != catalog.MaxErrors || all.More {
		t.Errorf("%d duplicates: %d errors, more: %v", catalog.MaxErrors, len(all.List), all.More)
	}
	_, err = catalog.Parse([]byte(b.String() + "  gem: {}\n"))
	if !errors.As(err, &all) || len(all.List) != catalog.MaxErrors || !all.More || !strings.HasSuffix(err.Error(), "\nand more") {
		t.Errorf("one more: %d errors, more: %v", len(all.List), all.More)
	}
	var one *catalog.Error
	if !errors.As(err, &one) || one.Line != 4 {
		t.Errorf("errors.As finds %v first", one)
	}
}

// TestLimits holds each limit on numbers of things to its value: at the limit
// Parse accepts, above it refuses.
func TestLimits(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	pool := smallest + "pools:\n  p:\n    entries:\n"
	for name, limit := range map[string]struct {
		most     int
		source   func(n int) string
		complain string
	}{
		// Refused at the limit too, but after the size was accepted: reading 32 MiB of YAML takes long.
		"bytes": {catalog.MaxBytes, func(n int) string { return strings.Repeat("\xff", n) }, "expected at most 33554432 bytes"},
		"items": {catalog.MaxItems, func(n int) string { return "kuji: 1\nitems:\n" + many(n, "  i#: {}\n") }, "with 1 to 65536"},
		"pools": {catalog.MaxPools, func(n int) string {
			return smallest + "pools:\n" + many(n, "  p#: {entries: [{id: a, weight: 1}]}\n")
		}, "with 1 to 4096"},
		"bundle": {catalog.MaxBundle, func(n int) string {
			return "kuji: 1\nitems:\n" + many(n, "  i#: {}\n") + "start:\n" + many(n, "  i#: 1\n")
		}, "with 1 to 64"},
		"limits": {catalog.MaxPlayerLimits, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    limits:\n" + many(n, "    - {per: window, window: 1h#ms, draws: 1}\n")
		}, "a list of 1 to 8"},
		"prices": {catalog.MaxPrices, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    price:\n" + many(n, "    - {gem: 1#}\n")
		}, "a list of 1 to 8"},
		"bundles": {catalog.MaxPrices, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    price: {gem: 1}\n    bundles:\n" + many(n, "    - {draws: 1#, price: {gem: 1}}\n")
		}, "a list of 1 to 8"},
		"tracks": {catalog.MaxTracks, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    pity:\n" + many(n, "      t#: {of: [a]}\n")
		}, "with 1 to 8"},
		"guarantees": {catalog.MaxTracks, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    guarantee:\n" + many(n, "    - {draws: 50, of: [a]}\n")
		}, "a list of 1 to 8"},
		"steps of a rising chance": {catalog.MaxTrackTable, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    pity: {a: {rising: {from: 1, by: [" + many(n, "0.#, ") + "]}}}\n"
		}, "a list of 1 to 1000"},
		"steps of luck": {catalog.MaxLuckSteps, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n    - {id: b, weight: 1, luck: {item: gem, weights: [" + many(n, "{from: 1000#, weight: 1}, ") + "]}}\n"
		}, "1 to 100 steps"},
		"names of a group": {catalog.MaxConditions, func(n int) string {
			return pool + many(n, "    - {id: e#, weight: 1}\n") + "    pity: {t: {of: [" + many(n, "e#, ") + "]}}\n"
		}, "a list of 1 to 64"},
		"entries with a condition": {catalog.MaxAdaptive, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n" + many(n, "    - {id: e#, weight: 1, when: {lacks: [gem]}}\n")
		}, "at most 4096 entries with a condition"},
		"questions of conditions": {catalog.MaxAsked / 100_000, func(n int) string {
			return pool + "    - {id: a, weight: 1}\n" + many(n, "    - {id: e#, weight: 1, when: {lacks: [gem]}}\n") + "    rolls: 100\n    max_count: 1000\n"
		}, "at most 1000000 questions"},
		"inner pools": {catalog.MaxInner, func(n int) string {
			return smallest + "pools:\n" + many(n, "  p#: {entries: [{id: a, weight: 1}]}\n") +
				"  q:\n    entries:\n    - id: a\n      weight: 1\n      reward:\n" + many(n, "      - pool: p#\n")
		}, "a list of 1 to 16"},
		"classes": {6, func(n int) string { // 2^6 sets of groups are 64
			s := pool
			for i := range min(1<<n, 65) {
				s += fmt.Sprintf("    - {id: e%d, weight: 1}\n", i)
			}
			s += "    pity:\n"
			for j := range n {
				s += fmt.Sprintf("      t%d: {of: [", j)
				for i := range min(1<<n, 65) {
					if i>>j&1 == 1 {
						s += fmt.Sprintf("e%d, ", i)
					}
				}
				s += "]}\n"
			}
			return s
		}, "entries in at most 64 different sets of groups"},
		"depth": {catalog.MaxPoolDepth, func(n int) string {
			s := smallest + "pools:\n"
			for i := range n - 1 {
				s += fmt.Sprintf("  p%d: {entries: [{id: a, weight: 1, reward: {pool: p%d}}]}\n", i, i+1)
			}
			return s + fmt.Sprintf("  p%d: {entries: [{id: a, weight: 1}]}\n", n-1)
		}, "at most 8 pools on a chain"},
		"id": {catalog.MaxID, func(n int) string {
			return "kuji: 1\nitems:\n  " + strings.Repeat("x", n) + ": {}\n"
		}, "at most 64 in all"},
		"name": {catalog.MaxName, func(n int) string {
			return smallest + "name: " + strings.Repeat("x", n) + "\n"
		}, "a text of 1 to 256 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := catalog.Parse([]byte(limit.source(limit.most)))
			if err != nil && (limit.most < catalog.MaxBytes || strings.Contains(err.Error(), limit.complain)) {
				t.Errorf("at the limit: %v", err)
			}
			_, err = catalog.Parse([]byte(limit.source(limit.most + 1)))
			if err == nil || !strings.Contains(err.Error(), limit.complain) {
				t.Errorf("above the limit: got %v, want something with %q", err, limit.complain)
			}
		})
	}
}

// TestRefusedEarly: what asks for much memory is refused before it is read.
func TestRefusedEarly(t *testing.T) {
	const flow, nesting = "within one [] or {}", "at most 32 mappings and lists within each other"
	many := strings.Repeat("aaaaaaaaaaaaaaa,", 1<<17) // 2 MiB
	for name, c := range map[string]struct{ source, want string }{
		"many values":     {"a:\n" + strings.Repeat("- [a,a,a,a,a,a,a,a]\n", 1<<20), "expected at most about 8388608 values"},
		"much JSON":       {"# comment\n---\n{\"a\": [" + many + "1]}", flow},
		"nested in flow":  {"- [" + strings.ReplaceAll(many, "aa,", "[],") + "]", flow},
		"much in flow":    {"- [" + many + "]", flow},
		"much unfinished": {"- [x]\n- [" + strings.Repeat("-               ", 1<<17), flow},
		"many anchors":    {strings.Repeat("&aaaaaaaaaaaaaa ", 1<<17), flow},
		"in the second":   {smallest + "---\n- [" + many + "]", "expected one document, found more after it"},
		"deep flow":       {strings.Repeat("[", 1<<20), nesting},
		"deep block":      {strings.Repeat("- ", 1<<20), nesting},
		"deep mapping":    {strings.Repeat("{a: ", 1<<20), nesting},
		"explicit keys":   {strings.Repeat("? ", 1<<20), nesting},
		"aliases of many": {"a: &a [" + strings.Repeat("*a,             ", 1<<17) + "]", flow},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := catalog.Parse([]byte(c.source)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range exampleFiles(f) {
		source, err := fs.ReadFile(examples.Files, file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	for _, s := range badSources(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		c, err := catalog.Parse(source)
		if err == nil {
			roundTrip(t, c)
			if err := schemaError(t, source); err != nil && !errors.Is(err, errNotYAML) {
				t.Fatalf("the schema refuses what Parse accepts: %v", err)
			}
			return
		}
		var all *catalog.Errors
		if !errors.As(err, &all) || len(all.List) == 0 || len(all.List) > catalog.MaxErrors {
			t.Fatalf("not an *Errors: %v", err)
		}
		for _, e := range all.List {
			if e.Line < 1 || e.Column < 1 || e.Message == "" || len(e.Message) > 4096 {
				t.Fatalf("no place, or no or a huge message: %#v", e)
			}
		}
	})
}

// TestWholeCatalog reads a catalog with most of the keys there are, as people write it.
func TestWholeCatalog(t *testing.T) {
	c, err := catalog.Parse([]byte(`
kuji: 1
zone: Asia/Tokyo
items: {ticket: {}, starlight: {kind: currency}, chest: {}, key: {}, gold: {}, feather: {}, console: {}, cash: {kind: currency}}
pools:
  banner:
    price: [{ticket: 1}, {starlight: 160}]
    pity:
      five-star: {certain: 90, rising: {from: 74, by: 6}}   # percentage points a draw
      four-star: {certain: 10}
    entries:
      - {id: five-star, weight: 0.6, reward: {pool: five-star}}
      - {id: four-star, weight: 5.1, reward: {pool: four-star}}
      - {id: three-star, weight: 94.3, reward: {pool: three-star}}
  five-star:
    internal: true
    pity: {featured: {certain: 2, share: character-event}}  # after a lost 50/50 the next one is featured
    entries: [{id: featured, weight: 1}, {id: lost, weight: 1}]
  four-star: {internal: true, entries: [{id: any, weight: 1}]}
  three-star: {internal: true, entries: [{id: any, weight: 1}]}
  chest:
    price: {chest: 1, key: 1}
    rolls: {min: 3, max: 5}
    entries:
      - {id: gold, weight: 10, reward: [{items: {gold: {min: 2, max: 7}}}, {pool: gems, times: 2}]}
  gems: {internal: true, entries: [{id: any, weight: 1}]}
  drops:
    mode: each
    entries:
      - {id: feather, chance: 12.5, reward: {items: {feather: 1}}}
  splash:
    starts: 2026-07-01T00:00:00+09:00
    ends: 2026-08-01T00:00:00+09:00
    budget: {per: day, of: {cash: 50000}, share: summer}
    entries:
      - id: console
        moments: {count: 10, spread: slots, weights: {12-13: 3, 19-23: 5, sat-sun: 2}, missed: wait}
        reward: {items: {console: 1}}
      - {id: coupon, weight: 4.5, reward: {code: ten-percent}}
      - {id: prize, weight: 0.5, reward: {items: {cash: 500}}}
      - {id: blank, weight: 95}
`))
	if err != nil {
		t.Fatal(err)
	}
	console := c.Pools[len(c.Pools)-1].Entries[0]
	if console.Weight != 0 || console.Stock.Count != 10 || len(console.Moments.Weights) != 3 {
		t.Errorf("the entry with moments is %+v", console)
	}
	again, err := catalog.Parse(c.AppendYAML(nil))
	if err != nil || again.Hash() != c.Hash() {
		t.Errorf("%v in\n%s", err, c.AppendYAML(nil))
	}
}
