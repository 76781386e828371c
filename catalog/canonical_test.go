package catalog_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// TestGolden holds the canonical form to bytes written down once. Once Kuji is
// released they must never be rewritten: catalogs in old logs look like this.
func TestGolden(t *testing.T) {
	source, err := os.ReadFile("testdata/canonical/v3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/canonical/v3.hex")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	want, err := catalog.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	if got := want.AppendCanonical(nil); !bytes.Equal(got, golden) {
		t.Errorf("the canonical form has changed:\n%s\nwant\n%s", hex.Dump(got), hex.Dump(golden))
	}
	got, err := catalog.Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-parsed +decoded)\n%s", diff)
	}
	const hash = "98eb00b4552db3abe9fc2ac8fe30b8cf61587afb08725d065dc28fd5453047cd"
	if sum := got.Hash(); hex.EncodeToString(sum[:]) != hash {
		t.Errorf("hash %x, want %s", sum, hash)
	}
}

// TestDecodeDamaged changes single bytes of a canonical form, cuts it and adds
// to it. Decode must refuse the result or read exactly what stands there.
func TestDecodeDamaged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawCatalog(rt).want.AppendCanonical(nil)
		switch rapid.IntRange(0, 2).Draw(rt, "damage") {
		case 0:
			at := rapid.IntRange(0, len(b)-1).Draw(rt, "at")
			b[at] = rapid.Byte().Draw(rt, "byte")
		case 1:
			b = b[:rapid.IntRange(0, len(b)-1).Draw(rt, "cut")]
			if _, err := catalog.Decode(b); err == nil {
				rt.Fatal("a cut form is accepted")
			}
		case 2:
			b = append(b, rapid.Byte().Draw(rt, "byte"))
			if _, err := catalog.Decode(b); err == nil {
				rt.Fatal("a form with more after it is accepted")
			}
		}
		decodeStrictly(rt, b)
	})
}

// decodeStrictly wants an error of the right kind, or the very same bytes back.
func decodeStrictly(t interface{ Fatalf(string, ...any) }, b []byte) {
	c, err := catalog.Decode(b)
	switch {
	case err != nil && (c != nil || !errors.Is(err, catalog.ErrCanonical)):
		t.Fatalf("catalog %v with error %v", c, err)
	case err == nil && !bytes.Equal(c.AppendCanonical(nil), b):
		t.Fatalf("%x is read as %x", b, c.AppendCanonical(nil))
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range exampleFiles(f) {
		f.Add(example(f, file).AppendCanonical(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) { decodeStrictly(t, b) })
}

// TestDecodeRefuses builds forms with one fault each.
func TestDecodeRefuses(t *testing.T) {
	good := example(t, "gacha-banner.yaml").AppendCanonical(nil)
	at := bytes.Index(good, []byte("Lantern"))
	overlong := slices.Concat(good[:at-1], []byte{good[at-1] | 0x80, 0}, good[at:])
	// afterID replaces what follows the weight 51 and the stock of an entry of the banner.
	afterID := func(id string, with ...byte) []byte {
		at := bytes.Index(good, append(append([]byte{byte(len(id))}, id...), 51, 0)) + 1 + len(id) + 2
		return slices.Concat(good[:at], with, good[at+1:])
	}
	crowded := &catalog.Catalog{Pools: []catalog.Pool{
		{Entries: make([]catalog.Entry, catalog.MaxEntries/2+1)}, {Entries: make([]catalog.Entry, catalog.MaxEntries/2)},
	}}
	for name, c := range map[string]struct {
		form []byte
		want string
	}{
		"many entries":    {crowded.AppendCanonical(nil), "expected a count of at most 524287, found 524288"},
		"nothing":         {nil, `found the end`},
		"other magic":     {append([]byte("KUJIDOG"), good[7:]...), `expected "KUJICAT" first`},
		"other version":   {slices.Concat(good[:7], []byte{1}, good[8:]), "expected version 3 or later, found 1"},
		"newer version":   {slices.Concat(good[:7], []byte{9}, good[8:]), "catalog: written by a newer Kuji: format 9, this build knows up to "},
		"overlong":        {overlong, "in its shortest form"},
		"more after it":   {append(slices.Clone(good), 0), "found 1 more bytes"},
		"huge count":      {slices.Concat(good[:8], []byte{0, 0}, binary.AppendUvarint(nil, 65536)), "expected 65536 elements, found only 0 bytes"},
		"too many items":  {slices.Concat(good[:8], []byte{0, 0}, binary.AppendUvarint(nil, 65537)), "a count of at most 65536, found 65537"},
		"unknown flags":   {afterID("four-star", 0x20), "unknown flags 0x20"},
		"no group":        {afterID("four-star", 1, 0), "expected the name of a group"},
		"no condition":    {afterID("four-star", 2, 0, 0, 0, 0, 0), "expected a condition that asks for something"},
		"luck by what":    {afterID("four-star", 8, 4), "expected 1 to 3, what luck counts"},
		"luck by nothing": {afterID("four-star", 8, 1, 1, 'x', 0), "expected at least one step of luck"},
		"many steps":      {afterID("four-star", 8, 1, 1, 'x', 101), "expected a count of at most 100, found 101"},
		"too long":        {make([]byte, catalog.MaxCanonical+1), "expected at most 33554432 bytes"},
	} {
		_, err := catalog.Decode(c.form)
		if err == nil || !errors.Is(err, catalog.ErrCanonical) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something with %q", name, err, c.want)
		}
	}
}

// TestCheck damages compiled catalogs in ways that YAML cannot express or that
// the parser catches before the check, and wants each refused: by Check, and by
// Decode of its encoding.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(c *catalog.Catalog)
		want   string
	}{
		"item kind":          {func(c *catalog.Catalog) { c.Items[0].Kind = 3 }, "items.starlight.kind: expected item or currency"},
		"item id":            {func(c *catalog.Catalog) { c.Items[3].ID = "a b" }, `items["a b"]: expected the id of an item`},
		"item twice":         {func(c *catalog.Catalog) { c.Items[1].ID = "starlight" }, "items.starlight: duplicate id"},
		"name not UTF-8":     {func(c *catalog.Catalog) { c.Items[1].Name, c.Items[1].Display.Names = "\xff", nil }, "items.stardust.name: expected a text"},
		"pool twice":         {func(c *catalog.Catalog) { c.Pools[1].ID = "banner" }, "pools.banner: duplicate id"},
		"mode":               {func(c *catalog.Catalog) { c.Pools[0].Mode = 0 }, "pools.banner.mode: expected weighted, raffle or each"},
		"price twice":        {func(c *catalog.Catalog) { p := &c.Pools[0].Price[1]; *p = append(*p, (*p)[0]) }, "pools.banner.price[1].starlight: duplicate id"},
		"price 0":            {func(c *catalog.Catalog) { c.Pools[0].Price[1][0].Quantity = 0 }, "pools.banner.price[1].starlight: expected a whole number"},
		"time":               {func(c *catalog.Catalog) { c.Pools[0].StartsAt = 1 << 60 }, "pools.banner.starts: expected a time such as"},
		"max_count 0":        {func(c *catalog.Catalog) { c.Pools[0].MaxCount = 0 }, "pools.banner.max_count: expected a whole number from 1 to 1000, found 0"},
		"limit":              {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 9, Draws: 1}} }, "pools.banner.limits[0].per: expected"},
		"limit without end":  {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 4, Draws: 1}} }, "pools.banner.limits[0].window: expected"},
		"window of a day":    {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 2, Window: 5, Draws: 1}} }, "pools.banner.limits[0].window: expected none"},
		"no entries":         {func(c *catalog.Catalog) { c.Pools[0].Entries = nil }, "pools.banner.entries: expected a list of 1 to 1048576 entries, found 0"},
		"entry twice":        {func(c *catalog.Catalog) { c.Pools[0].Entries[1].ID = "five-star" }, "pools.banner.entries[1].id: duplicate id"},
		"weight":             {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Weight = 1 << 63 }, "pools.banner.entries[0].weight: expected odds whose sum"},
		"sum of weights":     {func(c *catalog.Catalog) { c.Pools[0].Entries[1].Weight = 1<<63 - 6 }, "pools.banner.entries[1].weight: expected odds whose sum"},
		"scale":              {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 11 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"scale 0":            {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 0 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"scale too large":    {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 1e19 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"raffle with weight": {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries[0].weight: expected none"},
		"raffle unlimited":   {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries[0].stock: expected a number"},
		"raffle scaled":      {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries: expected weights scaled by a power of ten up to 10^0, found 10"},
		"stock":              {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Stock = catalog.Stock{Count: 1 << 53} }, "pools.banner.entries[0].stock: expected a whole number"},
		"no pool":            {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Reward.Draws[0].Pool = "" }, `pools.banner.entries[0].reward.pool: expected the id of a pool`},
		"times 0":            {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Reward.Draws[0].Min = 0 }, "pools.banner.entries[0].reward.pool: expected whole numbers from 1 to 1000"},
		"quantity 0":         {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[0].Min = 0 }, "pools.five-star.entries[0].reward.items.hoshimi: expected whole numbers"},
		"max below min":      {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[1].Max = 1 }, "pools.five-star.entries[0].reward.items.stardust: expected whole numbers"},
		"item twice in reward": {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[1].Item = "hoshimi" },
			"pools.five-star.entries[0].reward.items.hoshimi: duplicate id"},
		"cycle": {func(c *catalog.Catalog) {
			c.Pools[2].Entries[0].Reward = catalog.Reward{Draws: []catalog.Inner{{Pool: "five-star", Min: 1, Max: 1}}}
		}, "expected no cycle of pools, found five-star → five-star-other → five-star"},
		"last of a pool":   {func(c *catalog.Catalog) { c.Pools[4].Last.Items = []catalog.Quantity{{Item: "quill", Min: 1, Max: 1}} }, "pools.three-star.last: expected none"},
		"refill of a pool": {func(c *catalog.Catalog) { c.Pools[4].Refill = 1 }, "pools.three-star.refill: expected none"},
		"no price":         {func(c *catalog.Catalog) { c.Pools[0].Price[1] = nil }, "pools.banner.price[1]: expected a mapping whose keys are ids"},
		"many prices":      {func(c *catalog.Catalog) { c.Pools[0].Price = make([][]catalog.Stack, 9) }, "pools.banner.price: expected a list of 1 to 8 prices, found 9"},
		"many bundles":     {func(c *catalog.Catalog) { c.Pools[0].Bundles = make([]catalog.Bundle, 9) }, "pools.banner.bundles: expected a list of 1 to 8 bundles, found 9"},
		"bundle of one":    {func(c *catalog.Catalog) { c.Pools[0].Bundles = []catalog.Bundle{{Draws: 1, Price: c.Start}} }, "pools.banner.bundles[0].draws: expected a whole number from 2"},
		"free per":         {func(c *catalog.Catalog) { c.Pools[0].Free = catalog.Free{Per: catalog.PerWindow, Draws: 1} }, "pools.banner.free.per: expected forever, day, week or month"},
		"free draws":       {func(c *catalog.Catalog) { c.Pools[0].Free = catalog.Free{Per: catalog.PerDay} }, "pools.banner.free.draws: expected"},
		"no rolls":         {func(c *catalog.Catalog) { c.Pools[0].Rolls.Min = 0 }, "pools.banner.rolls: expected whole numbers"},
		"many rolls":       {func(c *catalog.Catalog) { c.Pools[0].Rolls.Max = 1001 }, "pools.banner.rolls: expected whole numbers"},
		"many tracks":      {func(c *catalog.Catalog) { c.Pools[0].Tracks = make([]catalog.Track, 9) }, "pools.banner.pity: expected a mapping whose keys are ids, each of a track, with 1 to 8 of them, found 9"},
		"track id":         {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Name = "" }, "expected the id of a track"},
		"track twice":      {func(c *catalog.Catalog) { c.Pools[0].Tracks[1].Name = "five-star" }, "pools.banner.pity.five-star: duplicate id"},
		"track of none":    {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Of = nil }, "pools.banner.pity.five-star.of: expected at least one"},
		"track of all":     {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Of = make([]string, 65) }, "pools.banner.pity.five-star.of: expected a list of 1 to 64 names, found 65"},
		"certain":          {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Certain = 1_000_001 }, "pools.banner.pity.five-star.certain: expected"},
		"rising scale":     {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Rising.Scale = 11 }, "pools.banner.pity.five-star.rising.by: expected chances scaled"},
		"rising by":        {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Rising.By = nil }, "pools.banner.pity.five-star.rising.by: expected a number"},
		"rising far":       {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Rising.By[0] = 101 }, "pools.banner.pity.five-star.rising.by: expected at most 100"},
		"rising two":       {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Rising.By = []uint64{1, 2} }, "pools.banner.pity.five-star.rising.by: expected a number"},
		"rising finely":    {func(c *catalog.Catalog) { c.Pools[0].Entries[2].Weight = 1 << 60 }, "pools.banner.pity.five-star.rising.by: expected odds in the pool"},
		"share":            {func(c *catalog.Catalog) { c.Pools[0].Tracks[0].Share = "a b" }, "pools.banner.pity.five-star.share: expected the id of a track's counter"},
		"guarantee":        {func(c *catalog.Catalog) { c.Pools[0].Guarantees = make([]catalog.Guarantee, 9) }, "pools.banner.guarantee: expected a list of 1 to 8 guarantees, found 9"},
		"guarantee of more": {func(c *catalog.Catalog) {
			c.Pools[0].Guarantees = []catalog.Guarantee{{Draws: 2, AtLeast: 3, Of: []string{"five-star"}}}
		}, "pools.banner.guarantee[0].at_least: expected"},
		"group":         {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Group = "a b" }, "pools.banner.entries[0].group: expected the id of a group"},
		"reached":       {func(c *catalog.Catalog) { c.Pools[0].When.Tracks = []catalog.Reached{{Track: "five-star"}} }, "pools.banner.when.pity.five-star: expected a whole number"},
		"luck downward": {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Luck = luck("ticket", "", 2, 1) }, "pools.banner.entries[0].luck.weights[1].from: expected more than 2"},
		"luck of 0":     {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Luck = luck("ticket", "", 0) }, "pools.banner.entries[0].luck.weights[0].from: expected"},
		"luck weight": {func(c *catalog.Catalog) {
			c.Pools[0].Entries[0].Luck = catalog.Luck{Item: "ticket", Steps: []catalog.LuckStep{{From: 1, Weight: 1 << 63}}}
		}, "pools.banner.entries[0].weight: expected odds whose sum"},
		"luck in a box": {func(c *catalog.Catalog) {
			c.Pools[4].Mode, c.Pools[4].Entries[0].Luck = catalog.ModeRaffle, luck("ticket", "", 1)
		}, "pools.three-star.entries[0].luck: expected none outside of mode weighted"},
		"zone of none": {func(c *catalog.Catalog) { c.Zone.Name = "Asia/Tokyo" }, "zone: expected 1 to 1024 offsets"},
		"zone UTC":     {func(c *catalog.Catalog) { c.Zone = catalog.Zone{Name: "UTC", Offsets: make([]catalog.Offset, 1)} }, "zone: expected a time zone"},
		"offsets at once": {func(c *catalog.Catalog) {
			c.Zone = catalog.Zone{Name: "Asia/Tokyo", Offsets: make([]catalog.Offset, 2)}
		}, "zone.offsets: expected ascending times"},
		"an offset": {func(c *catalog.Catalog) {
			c.Zone = catalog.Zone{Name: "Asia/Tokyo", Offsets: []catalog.Offset{{Seconds: 86400}}}
		}, "zone.offsets: expected at most 86399 seconds"},
		"budget per":     {func(c *catalog.Catalog) { budget(c).Per = catalog.PerWindow }, "pools.banner.budget.per: expected hour, day, week, month or forever"},
		"budget of none": {func(c *catalog.Catalog) { budget(c).Of = nil }, "pools.banner.budget.of: expected a mapping whose keys are ids, each of an item, with 1 to 64 of them, found 0"},
		"budget share":   {func(c *catalog.Catalog) { budget(c).Share = "a b" }, "pools.banner.budget.share: expected the id of a budget"},
		"many budgets":   {func(c *catalog.Catalog) { c.Pools[0].Budgets = make([]catalog.Budget, 9) }, "pools.banner.budget: expected a list of 1 to 8 budgets, found 9"},
		"moments": {func(c *catalog.Catalog) {
			c.Pools[0].Entries[0].Moments = catalog.Moments{Count: 1, Spread: catalog.SpreadEven}
		}, "pools.banner.entries[0].moments: expected a pool with starts and ends"},
		"moments spread": {func(c *catalog.Catalog) {
			c.Pools[0].Entries[0] = catalog.Entry{ID: "five-star", Stock: catalog.Stock{Count: 1}, Moments: catalog.Moments{Count: 1}}
		}, "pools.banner.entries[0].moments.spread: expected even, slots or random"},
		"many lists":        {func(c *catalog.Catalog) { c.Pools[0].Redeem = make([]catalog.Redeem, 17) }, "pools.banner.redeem: expected a list of 1 to 16 lists of codes, found 17"},
		"redeem what":       {func(c *catalog.Catalog) { redeem(c).List = "a b" }, "pools.banner.redeem.code: expected"},
		"redeem never":      {func(c *catalog.Catalog) { redeem(c).Times = 0 }, "pools.banner.redeem.times: expected a whole number from 1 to 100"},
		"redeem much":       {func(c *catalog.Catalog) { redeem(c).Times = 101 }, "pools.banner.redeem.times: expected a whole number from 1 to 100"},
		"redeem not at all": {func(c *catalog.Catalog) { redeem(c).Uses = 0 }, "pools.banner.redeem.uses: expected a whole number from 1 to 1000000000"},
		"redeem until":      {func(c *catalog.Catalog) { redeem(c).Until = -1 }, "pools.banner.redeem.until: expected a time such as"},
		"no guesses":        {func(c *catalog.Catalog) { redeem(c); c.Guesses = catalog.Guesses{} }, "guesses: expected a limit, as codes pay for draws, found none"},
		"guesses per":       {func(c *catalog.Catalog) { c.Guesses = catalog.Guesses{Per: catalog.PerWindow, Count: 1} }, "guesses.per: expected hour, day, week, month or forever"},
		"guesses of none":   {func(c *catalog.Catalog) { c.Guesses = catalog.Guesses{Per: catalog.PerDay} }, "guesses.count: expected a whole number from 1"},
		"ids kept":          {func(c *catalog.Catalog) { c.Idempotency.Count = 0 }, "idempotency.count: expected"},
		"ids kept by":       {func(c *catalog.Catalog) { c.Idempotency.Age = 1 }, "idempotency.age: expected"},
		"ids' form":         {func(c *catalog.Catalog) { c.Idempotency.IDs = 2 }, "idempotency.ids: expected any or time-ordered"},
		"any ahead":         {func(c *catalog.Catalog) { c.Idempotency.Ahead = time.Minute }, "idempotency.ahead: expected none: it belongs to ids: time-ordered"},
		"none ahead": {func(c *catalog.Catalog) {
			c.Idempotency.IDs = catalog.IDsTimeOrdered
		}, "idempotency.ahead: expected a duration such as 12h or 1d12h, from 10s to 1h, found 0s"},
		"far ahead": {func(c *catalog.Catalog) {
			c.Idempotency = catalog.Idempotency{Count: 9, Age: time.Minute, IDs: catalog.IDsTimeOrdered, Ahead: 31 * time.Second}
		}, "idempotency.ahead: expected at most half of age, which is 1m, found 31s"},
		"default ahead": {func(c *catalog.Catalog) {
			c.Idempotency = catalog.Idempotency{Count: 9, Age: time.Minute, IDs: catalog.IDsTimeOrdered, Ahead: catalog.DefaultAhead}
		}, "idempotency.ahead: expected at most half of age, which is 1m, found 5m, the default"},
		"start": {func(c *catalog.Catalog) { c.Start[0].Item = "gold" }, `start.gold: there is no item "gold"`},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := example(t, "gacha-banner.yaml")
			if err := damaged.Check(); err != nil {
				t.Fatal(err)
			}
			c.damage(damaged)
			if err := damaged.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: got %v, want something with %q", err, c.want)
			}
			if _, err := catalog.Decode(damaged.AppendCanonical(nil)); !errors.Is(err, catalog.ErrCanonical) {
				t.Errorf("Decode: %v", err)
			}
		})
	}
}

// budget gives the banner a budget that is well formed.
func budget(c *catalog.Catalog) *catalog.Budget {
	c.Pools[0].Budgets = []catalog.Budget{{Per: catalog.PerDay, Of: []catalog.Stack{{Item: "ticket", Quantity: 1}}}}
	return &c.Pools[0].Budgets[0]
}

// redeem lets codes pay for the banner.
func redeem(c *catalog.Catalog) *catalog.Redeem {
	c.Guesses = catalog.DefaultGuesses
	c.Pools[0].Redeem = []catalog.Redeem{{List: "bottles", Times: 1, Uses: 1}}
	return &c.Pools[0].Redeem[0]
}

// luck makes a luck with steps from each count.
func luck(item, track string, from ...uint64) catalog.Luck {
	l := catalog.Luck{Item: item, Track: track}
	for _, n := range from {
		l.Steps = append(l.Steps, catalog.LuckStep{From: n, Weight: 1})
	}
	return l
}

// TestNothing: a catalog built in Go may have neither items nor pools, and logs may have such catalogs.
func TestNothing(t *testing.T) {
	c := &catalog.Catalog{Idempotency: catalog.Idempotency{Count: 1, Age: time.Hour}}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if _, err := catalog.Decode(c.AppendCanonical(nil)); err != nil {
		t.Error(err)
	}
}

// TestCheckOnly holds Check to what no encoding can express.
func TestCheckOnly(t *testing.T) {
	for name, damage := range map[string]func(c *catalog.Catalog){
		"negative time":          func(c *catalog.Catalog) { c.Pools[0].EndsAt = -1 },
		"unlimited, with 5":      func(c *catalog.Catalog) { c.Pools[0].Entries[0].Stock.Count = 5 },
		"luck of two things":     func(c *catalog.Catalog) { c.Pools[0].Entries[0].Luck = luck("ticket", "five-star", 1, 2) },
		"offsets without a zone": func(c *catalog.Catalog) { c.Zone.Offsets = make([]catalog.Offset, 1) },
		"luck without steps":     func(c *catalog.Catalog) { c.Pools[0].Entries[0].Luck.Item = "ticket" },
		"free draws, of none":    func(c *catalog.Catalog) { c.Pools[0].Free.Draws = 1 },
		"rising from nothing":    func(c *catalog.Catalog) { c.Pools[1].Tracks[0].Rising.Scale = 1 },
		"too many entries with moments": func(c *catalog.Catalog) {
			for i := range catalog.MaxMomentEntries + 1 {
				e := catalog.Entry{ID: fmt.Sprint("e", i), Stock: catalog.Stock{Count: 1}, Moments: catalog.Moments{Count: 1, Spread: catalog.SpreadEven}}
				c.Pools[0].Entries = append(c.Pools[0].Entries, e)
			}
			c.Pools[0].StartsAt, c.Pools[0].EndsAt = 1, 2
		},
		"too many budgets of items": func(c *catalog.Catalog) {
			for i := range c.Pools {
				for range catalog.MaxBudgets {
					b := catalog.Budget{Per: catalog.PerDay, Share: "s"}
					for j := range catalog.MaxBudgetCounters/8/len(c.Pools) + 1 {
						b.Of = append(b.Of, catalog.Stack{Item: fmt.Sprint(j), Quantity: 1})
					}
					c.Pools[i].Budgets = append(c.Pools[i].Budgets, b)
				}
			}
		},
		"too many pools":    func(c *catalog.Catalog) { c.Pools = make([]catalog.Pool, catalog.MaxPools+1) },
		"too many items":    func(c *catalog.Catalog) { c.Items = make([]catalog.Item, catalog.MaxItems+1) },
		"too many entries":  func(c *catalog.Catalog) { c.Pools[4].Entries = make([]catalog.Entry, catalog.MaxEntries) },
		"too much to start": func(c *catalog.Catalog) { c.Start = make([]catalog.Stack, catalog.MaxBundle+1) },
		"too large a form": func(c *catalog.Catalog) {
			w := catalog.Reward{}
			for _, i := range c.Items {
				w.Items = append(w.Items, catalog.Quantity{Item: i.ID, Min: 1, Max: 1 << 50})
			}
			c.Pools[4].Entries = nil
			for i := range 1 << 18 {
				c.Pools[4].Entries = append(c.Pools[4].Entries, catalog.Entry{ID: hex.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(i))), Weight: 1, Stock: catalog.Stock{Unlimited: true}, Reward: w})
			}
		},
	} {
		c := example(t, "gacha-banner.yaml")
		damage(c)
		var all *catalog.Errors
		if err := c.Check(); !errors.As(err, &all) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
