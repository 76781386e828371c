package bench_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// This file uses only Open, Realm, Apply, DoAll, Draw, Grant and their results, so that
// bench/gates.sh can build the same file, with cpu_*_test.go, at an older commit.

// userCatalogs are catalogs as users write them. The first three differ by one rule. Limits and
// stock are high enough that every draw succeeds.
var userCatalogs = []struct {
	name, pool, funds string // every player holds plenty of the item funds
	yaml              string
}{
	{"plain", "chest", "gem", chestItems + chestEntries},
	{"limits", "chest", "gem", chestItems + `
    limits:
      - {per: day, draws: 200000}
      - {per: forever, draws: 1000000000}
` + chestEntries},
	{"price", "chest", "gem", chestItems + `
    price: {gem: 160}
` + chestEntries},
	{"raffle", "box", "yen", raffleYAML},
	{"banner", "banner", "starlight", bannerYAML},
	{"pity", "banner", "starlight", strings.Replace(bannerYAML, "    max_count: 10\n", `    max_count: 10
    pity:
      five-star: {certain: 90, rising: {from: 74, by: 6}}
      four-star: {certain: 10}
`, 1)},
	{"quests", "chest", "gem", chestItems + chestEntries + questYAML}, // commits before counters cannot read it
}

// threeCounters count every draw of a chest.
const threeCounters = `
counters:
  opened: {of: {draws: chest}}
  today: {of: {draws: chest}, per: day}
  days: {of: {draws: chest}, streak: day}
`

// questYAML is what players of a game with chests are asked to do.
const questYAML = `
counters:
  opened: {of: {draws: chest}, per: day}
  herbs: {of: {gains: herb}, per: week}
  kinds: {of: {entries: [chest/crown, chest/cloak, chest/long-sword, chest/short-bow, chest/shield]}, distinct: 5}
quests:
  opener: {per: day, needs: {opened: 5}, reward: {items: {gem: 20}}}
  herbalist: {claim: automatic, per: week, needs: {herbs: 9}, reward: {items: {potion: 3, gem: 10}}}
  armed:
    claim: automatic
    tiers:
      - {needs: {kinds: 2}, reward: {items: {gem: 50}}}
      - {needs: {kinds: 4}, reward: {items: {lantern: 1}}}
`

const chestItems = `
kuji: 1
name: Treasure chests
items:
  gem: {kind: currency, name: Gem}
  crown: {name: Crown of the Tides}
  cloak: {name: Cloak of Mist}
  long-sword: {name: Long sword}
  short-bow: {name: Short bow}
  shield: {name: Oak shield}
  lantern: {name: Lantern}
  rope: {name: Rope}
  potion: {name: Potion}
  herb: {name: Herb}
  torch: {name: Torch}
  arrow: {name: Arrow}
  stone: {}
pools:
  chest:
    name: Treasure chest
`

const chestEntries = `
    entries:
      - {id: crown, weight: 0.1, stock: 5000000000, reward: {items: {crown: 1}}}
      - {id: cloak, weight: 0.9, stock: 50000000000, reward: {items: {cloak: 1}}}
      - {id: long-sword, weight: 3, reward: {items: {long-sword: 1}}}
      - {id: short-bow, weight: 4, reward: {items: {short-bow: 1}}}
      - {id: shield, weight: 5, reward: {items: {shield: 1}}}
      - {id: lantern, weight: 7, reward: {items: {lantern: 1}}}
      - {id: rope, weight: 10, reward: {items: {rope: 1}}}
      - {id: potion, weight: 12, reward: {items: {potion: 2}}}
      - {id: herb, weight: 13, reward: {items: {herb: 3}}}
      - {id: torch, weight: 14, reward: {items: {torch: 1}}}
      - {id: arrow, weight: 15, reward: {items: {arrow: 20}}}
      - {id: stone, weight: 16, reward: {items: {stone: 5}}}
`

// raffleYAML is examples/box-raffle.yaml without its limit and with a box too large to empty.
const raffleYAML = `
kuji: 1
name: Harvest Moon box raffle
items:
  yen: {kind: currency, name: Yen}
  figure: {name: Moon Rabbit figure}
  clock: {name: Wall clock}
  lamp: {name: Night lamp}
  plush: {name: Plush rabbit}
  plate: {name: Small plate}
  hand-towel: {name: Hand towel}
  clear-file: {name: Clear file}
  rubber-strap: {name: Rubber strap}
pools:
  box:
    name: Harvest Moon, box 1
    mode: raffle
    price: {yen: 750}
    max_count: 10
    entries:
      - {id: a, stock: 100000000, reward: {items: {figure: 1}}}
      - {id: b, stock: 200000000, reward: {items: {clock: 1}}}
      - {id: c, stock: 300000000, reward: {items: {lamp: 1}}}
      - {id: d, stock: 400000000, reward: {items: {plush: 1}}}
      - {id: e, stock: 1000000000, reward: {items: {plate: 1}}}
      - {id: f, stock: 2000000000, reward: {items: {hand-towel: 1}}}
      - {id: g, stock: 2500000000, reward: {items: {clear-file: 1}}}
      - {id: h, stock: 3500000000, reward: {items: {rubber-strap: 1}}}
`

// bannerYAML is a banner with nested pools and ranges. The row pity adds two tracks, as in
// examples/gacha-banner.yaml.
const bannerYAML = `
kuji: 1
name: Lantern Festival banner
items:
  starlight: {kind: currency, name: Starlight}
  stardust: {kind: currency, name: Stardust}
  hoshimi: {name: Hoshimi of the Lanterns}
  garrick: {name: Garrick the Unbowed}
  yulan: {name: Yulan}
  serafine: {name: Serafine}
  tobias: {name: Tobias}
  minori: {name: Minori}
  quill: {name: Quill}
  iron-lantern: {name: Iron Lantern}
  reed-spear: {name: Reed Spear}
  plain-sword: {name: Plain Sword}
  oak-bow: {name: Oak Bow}
  worn-codex: {name: Worn Codex}
pools:
  banner:
    name: Lantern Festival
    price: {starlight: 160}
    max_count: 10
    entries:
      - {id: five-star, weight: 0.6, reward: {pool: five-star}}
      - {id: four-star, weight: 5.1, reward: {pool: four-star}}
      - {id: three-star, weight: 94.3, reward: {pool: three-star}}
  five-star:
    name: Five stars
    entries:
      - {id: featured, weight: 0.5, reward: {items: {hoshimi: 1, stardust: 10}}}
      - {id: other, weight: 0.5, reward: {pool: five-star-other}}
  five-star-other:
    name: Five stars, not featured
    entries:
      - {id: garrick, weight: 1, reward: {items: {garrick: 1, stardust: 10}}}
      - {id: yulan, weight: 1, reward: {items: {yulan: 1, stardust: 10}}}
      - {id: serafine, weight: 1, reward: {items: {serafine: 1, stardust: 10}}}
  four-star:
    name: Four stars
    entries:
      - {id: tobias, weight: 0.25, reward: {items: {tobias: 1, stardust: 2}}}
      - {id: minori, weight: 0.25, reward: {items: {minori: 1, stardust: 2}}}
      - {id: quill, weight: 0.1, reward: {items: {quill: 1, stardust: 2}}}
      - {id: iron-lantern, weight: 0.2, reward: {items: {iron-lantern: 1, stardust: 2}}}
      - {id: reed-spear, weight: 0.2, reward: {items: {reed-spear: 1, stardust: 2}}}
  three-star:
    name: Three stars
    entries:
      - {id: plain-sword, weight: 1, reward: {items: {plain-sword: 1, stardust: {min: 1, max: 3}}}}
      - {id: oak-bow, weight: 1, reward: {items: {oak-bow: 1, stardust: {min: 1, max: 3}}}}
      - {id: worn-codex, weight: 1, reward: {items: {worn-codex: 1, stardust: {min: 1, max: 3}}}}
start: {starlight: 1600}
`

const (
	catalogPlayers = 20_000
	catalogBatch   = 1000
	// catalogFunds pays for 100,000 draws of a player. The total of all funds is below the largest
	// balance (2^53), as it is for users: far above it, engines must check more.
	catalogFunds = 100_000_000
)

// BenchmarkCatalogs makes draws from catalogs as users write them: 20,000 players, a new request
// id for each draw, durable, 1000 draws in a call. An operation is one call. Only the time in
// DoAll counts, not that of filling in the requests. Where others share the disk and the
// processors, two more metrics are steadier than ns/draw: cpu-ns/draw is processor time, and
// p10-ns/draw is the time of the call at the fastest tenth.
func BenchmarkCatalogs(b *testing.B) {
	for _, c := range userCatalogs {
		b.Run(c.name, func(b *testing.B) { drawFrom(b, c.yaml, c.pool, c.funds, true) })
	}
}

// BenchmarkCounters is BenchmarkCatalogs with draws that move no counter, and with draws that move three.
func BenchmarkCounters(b *testing.B) {
	for _, c := range [][2]string{{"none", ""}, {"three", threeCounters}} {
		b.Run(c[0], func(b *testing.B) { drawFrom(b, chestItems+chestEntries+c[1], "chest", "gem", true) })
	}
}

// BenchmarkEventBytes is BenchmarkCatalogs without request ids. Look at its log-bytes/draw.
func BenchmarkEventBytes(b *testing.B) {
	for _, c := range userCatalogs {
		b.Run(c.name, func(b *testing.B) { drawFrom(b, c.yaml, c.pool, c.funds, false) })
	}
}

func drawFrom(b *testing.B, yaml, pool, funds string, ids bool) {
	drawAmong(b, yaml, pool, funds, ids, func(*kuji.Realm) {})
}

// drawAmong is drawFrom in a realm that is prepared.
func drawAmong(b *testing.B, yaml, pool, funds string, ids bool, prepare func(*kuji.Realm)) {
	players := make([]string, size(catalogPlayers))
	for i := range players {
		players[i] = fmt.Sprintf("player-%d", i)
	}
	// The log of a realm like the measured one, but without draws, is what draws do not add.
	empty := scratch(b)
	e, realm := fundedRealm(b, empty, yaml, funds, players)
	prepare(realm)
	must(b, e.Close())
	dir := scratch(b)
	e, realm = fundedRealm(b, dir, yaml, funds, players)
	prepare(realm)

	draws := make([]kuji.Draw, catalogBatch)
	reqs := make([]kuji.Request, catalogBatch)
	for i := range draws {
		draws[i].Pool, draws[i].Count = pool, 1
		reqs[i] = &draws[i]
	}
	choice := rand.New(rand.NewPCG(1, 2))
	var last, done uint64
	var took, cpu time.Duration
	var calls []time.Duration
	runtime.GC() // do not count the garbage of the setup
	mallocs := mallocsSoFar()
	for b.Loop() {
		if ids {
			fillIDs(draws, &last)
		}
		for i := range draws {
			draws[i].Player = players[choice.IntN(len(players))]
		}
		begin, used := time.Now(), cpuTime()
		results, err := realm.DoAll(b.Context(), reqs)
		calls = append(calls, time.Since(begin))
		cpu += cpuTime() - used
		must(b, err)
		if len(results) != len(reqs) {
			b.Fatalf("%d results for %d draws", len(results), len(reqs))
		}
		for i := range results {
			if results[i].Status != kuji.OK || results[i].Replayed || len(results[i].Outcomes) != 1 {
				b.Fatalf("draw %d ended as %v", i, results[i])
			}
		}
		done += uint64(len(results))
	}
	mallocs = mallocsSoFar() - mallocs
	must(b, e.Close())

	for _, d := range calls {
		took += d
	}
	each := func(v float64) float64 { return v / float64(done) }
	b.ReportMetric(0, "ns/op") // hide the time of filling in requests
	b.ReportMetric(each(float64(took.Nanoseconds())), "ns/draw")
	slices.Sort(calls)
	b.ReportMetric(float64(calls[len(calls)/10].Nanoseconds())/catalogBatch, "p10-ns/draw")
	b.ReportMetric(each(float64(cpu.Nanoseconds())), "cpu-ns/draw")
	b.ReportMetric(each(float64(mallocs)), "allocs/draw")
	b.ReportMetric(each(float64(logSize(b, dir)-logSize(b, empty))), "log-bytes/draw")
}

// fundedRealm makes a realm in which every player exists and can pay for every draw.
func fundedRealm(b *testing.B, dir, yaml, funds string, players []string) (*kuji.Engine, *kuji.Realm) {
	b.Helper()
	c, err := catalog.Parse([]byte(yaml))
	must(b, err)
	e, err := kuji.Open(dir, kuji.Options{})
	must(b, err)
	r, err := e.Realm("bench")
	must(b, err)
	_, err = r.Apply(b.Context(), c)
	must(b, err)
	grants := make([]kuji.Request, 0, catalogBatch)
	for i, p := range players {
		grants = append(grants, &kuji.Grant{Player: p, Items: []kuji.Stack{{Item: funds, Quantity: catalogFunds}}})
		if len(grants) < catalogBatch && i < len(players)-1 {
			continue
		}
		results, err := r.DoAll(b.Context(), grants)
		must(b, err)
		for i := range results {
			if results[i].Status != kuji.OK {
				b.Fatalf("grant %d ended as %v", i, results[i])
			}
		}
		grants = grants[:0]
	}
	return e, r
}

// fillIDs gives every draw a new request id of 16 bytes. All share one string, so that they cost
// no allocation each.
func fillIDs(draws []kuji.Draw, last *uint64) {
	text := make([]byte, 0, 16*catalogBatch)
	for range draws {
		*last++
		var raw [8]byte
		binary.BigEndian.PutUint64(raw[:], *last*0x9E3779B97F4A7C15) // odd, so that no two are equal
		text = hex.AppendEncode(text, raw[:])
	}
	all := string(text)
	for i := range draws {
		draws[i].ID = all[16*i : 16*i+16]
	}
}

func mallocsSoFar() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// logSize returns the size of all files below dir except snapshots. After Close these are the
// log's, trimmed to their content.
func logSize(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	must(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "snapshots" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	}))
	return bytes
}
