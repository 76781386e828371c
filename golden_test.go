package kuji_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

var updateGolden = flag.Bool("update-golden", false, "write testdata/golden anew: the format, the rules or the use of randomness has changed on purpose")

const goldenDir = "testdata/golden"

// goldenCatalogs are applied one after the other, a third of the requests each.
var goldenCatalogs = []string{`
kuji: 1
items: {gem: {kind: currency}, gold: {kind: currency}, sword: {}, shield: {}}
start: {gem: 30}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 3, reward: {items: {sword: 1}}}
      - {id: b, stock: 40, reward: {items: {gem: {min: 1, max: 1000000000}, gold: {min: 3, max: 9}}}}
  paid:
    price: {gem: 2}
    limits: [{per: day, draws: 4}, {per: window, window: 90m, draws: 3}, {per: forever, draws: 9}]
    entries:
      - {id: shield, weight: 0.125, stock: 5, reward: {items: {shield: {min: 1, max: 3}}}}
      - {id: dust, weight: 7, reward: nothing}
  chain:
    entries:
      - {id: inner, weight: 3, reward: {pool: box}}
      - {id: other, weight: 2, stock: 4, reward: {pool: paid}}
      - {id: gold, weight: 1, reward: {items: {gold: 2}}}
  banner:
    price: [{gold: 4}, {gem: 3}]
    bundles: [{draws: 3, price: {gem: 5}}]
    free: {per: day, draws: 1}
    pity:
      five: {certain: 6, rising: {from: 3, by: 12.5}, share: banner}
      four: {of: [four, gold], certain: 3}
    entries:
      - {id: five, weight: 1, reward: {pool: five}}
      - {id: four, weight: 5.5, group: gold, reward: {items: {gold: {min: 1, max: 4}}}}
      - {id: three, weight: 90}
  five:
    internal: true
    pity: {featured: {certain: 2, share: featured}}
    entries:
      - {id: featured, weight: 1, reward: {items: {sword: 1}}}
      - {id: lost, weight: 1, stock: 4, reward: {items: {shield: 1}}}
      - {id: other, weight: 1, reward: {items: {shield: 2}}}
`, `
kuji: 1
name: second
idempotency: {count: 1000, age: 24h}
items: {gem: {kind: currency}, gold: {kind: currency}, sword: {}, bow: {}}
start: {gem: 10, gold: 1}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 4, reward: {items: {bow: 1}}}
      - {id: b, stock: 30, reward: {items: {gem: 5}}}
  chain:
    price: {gold: 1}
    entries:
      - {id: inner, weight: 1, reward: {pool: box}}
      - {id: bow, weight: 1000000, reward: {items: {bow: {min: 1, max: 2}}}}
  banner:
    pity:
      five: {certain: 8, rising: {from: 2, by: [0.25, 4, 99]}, share: banner}
      four: {rising: {from: 2, by: 33.333}}
    guarantee: [{draws: 2, at_least: 1, of: [good]}]
    entries:
      - {id: three, weight: 900}
      - {id: five, weight: 1, group: good}
      - {id: four, weight: 50, group: good, when: {pity: {five: 2}}}
      - {id: spare, weight: 3, group: good, reward: {items: {gold: 1}}}
  wheel:
    redeem: [{code: caps}, {code: shared, times: 2, uses: 3}]
    entries:
      - {id: bow, weight: 1, reward: {items: {bow: 1}}}
      - {id: gold, weight: 5, reward: {items: {gold: {min: 1, max: 5}}}}
`, goldenRules}

// goldenRules is a catalog of the rules that take several entries, or look at the player.
const goldenRules = `
kuji: 1
items: {gem: {kind: currency}, gold: {kind: currency}, key: {}, sword: {}, bow: {}, card-a: {}, card-b: {}, card-c: {}, clover: {}}
start: {gem: 10, key: 3}
guesses: {per: hour, count: 1}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 4, reward: {items: {bow: 1}}}
      - {id: b, stock: 90, reward: {items: {gem: 5}}}
  kuji:
    mode: raffle
    refill: 6
    pity: {last-a: {of: [a], certain: 3}}
    last: [{items: {bow: {min: 1, max: 3}}}, {pool: hand, times: {min: 1, max: 2}}]
    entries:
      - {id: a, stock: 1, reward: {items: {gold: 5}}}
      - {id: b, stock: 4, reward: {pool: hand}}
      - {id: c, stock: 2}
  chest:
    price: [{key: 1}, {gem: 2, gold: 1}]
    free: {per: week, draws: 2}
    rolls: {min: 2, max: 4}
    pity: {good: {certain: 5}}
    entries:
      - {id: good, weight: 1, reward: {items: {gold: {min: 3, max: 6}}}}
      - {id: both, weight: 4, reward: [{items: {gold: 1}}, {pool: drops, times: {min: 1, max: 2}}, {pool: hand}]}
      - {id: blank, weight: 6}
  drops:
    mode: each
    price: {gem: 1}
    redeem: {code: caps, times: 3, until: 2028-01-01T00:00:00Z}
    rolls: {min: 1, max: 2}
    entries:
      - {id: feather, chance: 12.5, reward: {items: {gem: {min: 1, max: 9}}}}
      - {id: never, chance: 0}
      - {id: key, chance: 40, stock: 20, reward: {items: {key: 1}}}
      - {id: clover, chance: 30, when: {lacks: [sword]}, reward: {items: {clover: 1}}}
      - {id: sure, chance: 100, unique: true, reward: {items: {sword: 1}}}
  hand:
    rolls: {min: 1, max: 3, distinct: true}
    entries:
      - {id: one, weight: 5, reward: {items: {gold: 1}}}
      - {id: two, weight: 2}
      - {id: lucky, weight: 1, luck: {item: clover, weights: [{from: 1, weight: 5}, {from: 3, weight: 0}]}, reward: {items: {gold: 9}}}
      - {id: three, weight: 1}
      - {id: rare, weight: 9, stock: 3}
  cards:
    when: {lacks: [card-c]}
    entries:
      - {id: a, weight: 1, unique: true, reward: {items: {card-a: 1}}}
      - {id: b, weight: 2, unique: true, reward: {items: {card-b: 1}}}
      - {id: c, weight: 3, unique: true, stock: 3, reward: {items: {card-c: 1}}}
  banner:
    guarantee: [{draws: 3, at_least: 1, of: [good]}]
    pity: {five: {of: [five], certain: 4, share: banner}}
    entries:
      - {id: three, weight: 900, when: {holds: {gem: 3}}}
      - {id: four, weight: 50, group: good, unique: true, reward: {items: {card-a: 1}}}
      - {id: five, weight: 1, group: good, stock: 3}
      - {id: spare, weight: 100, luck: {pity: five, weights: [{from: 2, weight: 20.5}]}}
`

// goldenCaps are codes, one for each round.
var goldenCaps = func() (all []string) {
	for i := range 12 {
		all = append(all, fmt.Sprintf("CAP-%02d", i))
	}
	return all
}()

// goldenRequests are of every kind, with every outcome.
func goldenRequests(i int) []kuji.Request {
	id := func(s string) string { return fmt.Sprint(s, "-", i) }
	player := fmt.Sprint("p", i%5)
	stacks := func(item string, n uint64) []kuji.Stack { return []kuji.Stack{{Item: item, Quantity: n}} }
	return []kuji.Request{
		kuji.Draw{ID: id("box"), Player: player, Pool: "box", Count: 1 + i%3},
		kuji.Draw{ID: id("paid"), Player: player, Pool: "paid"},
		kuji.Draw{Player: player, Pool: "chain", Count: 1 + i%2},
		kuji.Draw{ID: id("poor"), Player: id("poor"), Pool: "box", Count: 21},
		kuji.Draw{ID: id("banner"), Player: player, Pool: "banner", Count: 1 + i%4},
		kuji.Draw{ID: id("banner-gem"), Player: player, Pool: "banner", Count: 3, Pay: "gem"},
		kuji.Draw{ID: id("banner-bow"), Player: "p1", Pool: "banner", Pay: "bow"},
		kuji.Draw{ID: id("chest"), Player: player, Pool: "chest", Count: 1 + i%2},
		kuji.Draw{ID: id("drops"), Player: "p0", Pool: "drops", Count: 2},
		kuji.Draw{ID: id("hand"), Player: "p0", Pool: "hand", Count: 1 + i%3},
		kuji.Draw{ID: id("kuji"), Player: player, Pool: "kuji", Count: 3 + 3*(i%3)},
		kuji.Draw{ID: id("cards"), Player: player, Pool: "cards", Count: 1 + i%2},
		kuji.Redeem{ID: id("cap"), Player: player, Code: fmt.Sprintf("cap %02d", i)},
		kuji.Redeem{ID: id("cap-again"), Player: "p1", Code: fmt.Sprintf("CAP-%02d", i)},
		kuji.Redeem{ID: id("shared"), Player: player, Code: "Shared-Code"},
		kuji.Redeem{ID: id("guess"), Player: fmt.Sprint("guesser", i/4), Code: id("no such code")},
		kuji.Transfer{ID: id("gift"), From: player, To: id("gifted"), Items: stacks("gem", 1)},
		kuji.Register{ID: id("register"), Player: id("gifted"), Note: kuji.Note{Reason: "came"}},
		kuji.Grant{ID: id("grant"), Player: id("new"), Items: []kuji.Stack{{Item: "gem", Quantity: 1 << 40}, {Item: "gold", Quantity: 7}}},
		kuji.Consume{ID: id("consume"), Player: player, Items: stacks("gem", 3)},
		kuji.Transfer{ID: id("transfer"), From: player, To: id("new"), Items: stacks("gem", uint64(1+i))},
		kuji.Atomic{ID: id("atomic"), Members: []kuji.Request{
			kuji.Grant{Player: player, Items: stacks("gold", 5)},
			kuji.Draw{Player: player, Pool: "chain", Count: 2},
			kuji.Transfer{From: player, To: "bank", Items: stacks("gold", 1)},
			kuji.Draw{Player: "bank", Pool: "box"},
			kuji.Transfer{From: player, To: id("heir"), Items: stacks("gold", 1)},
			kuji.Register{Player: id("heir")},
		}},
		kuji.Atomic{ID: id("several"), Members: []kuji.Request{
			kuji.Draw{Player: id("fresh"), Pool: "chest"},
			kuji.Draw{Player: "p0", Pool: "drops"},
			kuji.Grant{Player: player, Items: stacks("gem", 1)},
			kuji.Draw{Player: player, Pool: "banner", Count: 2},
			kuji.Draw{Player: player, Pool: "hand"},
		}},
		kuji.Consume{ID: id("noted"), Player: player, Items: stacks("gem", 1), Note: kuji.Note{By: "ops", Reason: "ticket 7", Metadata: "{}"}},
		kuji.Draw{ID: id("limit"), Player: player, Pool: "paid", Count: 5},
		kuji.Atomic{ID: id("undone"), Members: []kuji.Request{
			kuji.Grant{Player: "bank", Items: stacks("gem", 5)},
			kuji.Consume{Player: "bank", Items: stacks("sword", 1<<53-1)},
			kuji.Draw{Player: "bank", Pool: "box"},
		}},
	}
}

// idOf returns the request id of a golden request.
func idOf(req kuji.Request) string { return reflect.ValueOf(req).FieldByName("ID").String() }

// makeGolden fills a data directory and returns it: three lives, of which the
// second ends in a crash, with snapshots in the others.
func makeGolden(t *testing.T) string {
	t.Helper()
	dir, s, round := t.TempDir(), newSteps(), 0
	for life := range 3 {
		e, err := openWorld(dir, worldOptions{Steps: s, Now: s.Now, SegmentSize: 4096, SnapshotEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() }) // of the one that crashes nobody wants to know
		r, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		if life < len(goldenCatalogs) {
			if _, err := r.Apply(t.Context(), parse(t, goldenCatalogs[life])); err != nil {
				t.Fatal(err)
			}
		}
		importCodes(t, r, "caps", goldenCaps[4*life:4*life+4])
		importCodes(t, r, "shared", []string{"SHARED-CODE"})
		for range 4 {
			if _, err := r.DoAll(t.Context(), goldenRequests(round)); err != nil {
				t.Fatal(err)
			}
			round++
			s.now = s.now.Add(31 * time.Minute)
			if life != 1 && round%2 == 0 {
				snapshot(t, r)
			}
		}
		if life == 1 {
			crashed := t.TempDir()
			if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			dir = crashed
		} else if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readGolden verifies a data directory, opens it, asks for what is remembered,
// and returns a line for everything that it gives.
func readGolden(t *testing.T, dir string) (lines []string) {
	t.Helper()
	line := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	answered := map[string]bool{}
	rep, err := kuji.Verify(dir, "test", func(rec kuji.Record) {
		line(rec)
		answered[rec.ID] = rec.ID != ""
	})
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, fmt.Sprintf("position %d, %d batches, %d events, %d draws, %d players, catalog %d, %d snapshots, %d bytes",
		rep.Position, rep.Batches, rep.Events, rep.Draws, rep.Players, rep.Catalog, rep.Snapshots, rep.LogBytes),
		fmt.Sprintf("chain %x", rep.ChainHash), fmt.Sprintf("state %x", rep.StateHash))
	for _, e := range rep.Epochs {
		lines = append(lines, fmt.Sprintf("epoch %d from %d, %d events, commitment %x, revealed %v", e.Epoch, e.First, e.Events, e.Commitment, e.Revealed))
	}
	s := newSteps()
	e, err := openWorld(dir, worldOptions{Steps: s, Now: s.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if hash, _, err := r.StateHash(t.Context()); err != nil || hash != rep.StateHash {
		t.Errorf("opened with state %x, verified %x: %v", hash, rep.StateHash, err)
	}
	for round := range 12 {
		for _, req := range goldenRequests(round) {
			if !answered[idOf(req)] { // the catalog of the time did not have what it names
				continue
			}
			res := do(t, r, req)
			if !res.Replayed {
				t.Errorf("round %d: %+v is carried out again: %v", round, req, res)
			}
			rc := res.Receipt
			lines = append(lines, fmt.Sprintf("answer %v %v, index %d, time %d, catalog %d, epoch %d, commitment %x", res, res.Outcomes, rc.Index, rc.Time, rc.CatalogVersion, rc.Epoch, rc.Commitment[:4]))
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestGolden: a data directory that an older build wrote is read as it was: its
// log, its snapshots, every answer, every choice computed again from the seeds,
// the state's hash; and the same requests with the same entropy give the same
// log to the byte. A change of a format, of the rules, or of the way in which
// randomness is used shows here and nowhere else.
func TestGolden(t *testing.T) {
	fresh := makeGolden(t)
	if *updateGolden {
		writeGolden(t, fresh)
		return
	}
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(goldenDir+"/data")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"log", "snapshots", "closed"} {
		was, is := entriesOf(t, old, dir), entriesOf(t, fresh, dir)
		if !slices.Equal(was, is) {
			t.Errorf("%s is written otherwise than it was:\n%s", dir, firstDifference(was, is))
		}
	}
	want, err := os.ReadFile(goldenDir + "/reads.txt")
	if err != nil {
		t.Fatal(err)
	}
	if was, is := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), readGolden(t, old); !slices.Equal(was, is) {
		t.Errorf("the realm of old is read otherwise:\n%s", firstDifference(was, is))
	}
}

// entriesOf returns the records of a log, the snapshots, or what says where the log was closed.
func entriesOf(t *testing.T, dir, what string) (all []string) {
	t.Helper()
	switch what {
	case "log":
		for _, b := range logEntries(t, dir) {
			all = append(all, fmt.Sprintf("%x", b))
		}
		return all
	case "closed":
		b, err := os.ReadFile(dir + "/realms/test/closed")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(b), "\n")
	}
	for _, name := range snapshotFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", filepath.Base(name), b))
	}
	return all
}

func firstDifference(was, is []string) string {
	for i := range max(len(was), len(is)) {
		a, b := "nothing", "nothing"
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			return fmt.Sprintf("line %d was\n%s\nand is\n%s", i, a, b)
		}
	}
	return "no difference"
}

func writeGolden(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(goldenDir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(goldenDir, 0o755); err != nil {
		t.Fatal(err)
	}
	const realm = "/realms/test/"
	for _, what := range []string{"log", "snapshots"} {
		if err := os.CopyFS(goldenDir+"/data"+realm+what, os.DirFS(dir+realm+what)); err != nil {
			t.Fatal(err)
		}
	}
	closed, err := os.ReadFile(dir + realm + "closed")
	if err == nil {
		err = os.WriteFile(goldenDir+"/data"+realm+"closed", closed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(readGolden(t, dir), "\n") + "\n"
	if err := os.WriteFile(goldenDir+"/reads.txt", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
