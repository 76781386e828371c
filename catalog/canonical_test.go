package catalog_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// TestGolden holds the canonical form to bytes written down once. They must
// never be rewritten: catalogs in old logs look like this.
func TestGolden(t *testing.T) {
	source, err := os.ReadFile("testdata/canonical/v1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/canonical/v1.hex")
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
	const hash = "9e1dbe3d33665521422179b8239102b1756c80c0d9c2b43e2c0505be799d56b1"
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
		t.Fatalf("catalog %v beside error %v", c, err)
	case err == nil && !bytes.Equal(c.AppendCanonical(nil), b):
		t.Fatalf("%x is read as %x", b, c.AppendCanonical(nil))
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range []string{"instant-win.yaml", "gacha-banner.yaml", "box-raffle.yaml"} {
		f.Add(example(f, file).AppendCanonical(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) { decodeStrictly(t, b) })
}

// TestDecodeRefuses builds forms with one fault each.
func TestDecodeRefuses(t *testing.T) {
	good := example(t, "gacha-banner.yaml").AppendCanonical(nil)
	at := bytes.Index(good, []byte("Lantern"))
	overlong := slices.Concat(good[:at-1], []byte{good[at-1] | 0x80, 0}, good[at:])
	crowded := &catalog.Catalog{Pools: []catalog.Pool{
		{Entries: make([]catalog.Entry, catalog.MaxEntries/2+1)}, {Entries: make([]catalog.Entry, catalog.MaxEntries/2)},
	}}
	for name, c := range map[string]struct {
		form []byte
		want string
	}{
		"many entries":   {crowded.AppendCanonical(nil), "expected a count of at most 524287, found 524288"},
		"nothing":        {nil, `found the end`},
		"other magic":    {append([]byte("KUJIDOG"), good[7:]...), `expected "KUJICAT" first`},
		"other version":  {slices.Concat(good[:7], []byte{2}, good[8:]), "expected version 1, found 2"},
		"overlong":       {overlong, "in its shortest form"},
		"more after it":  {append(slices.Clone(good), 0), "found 1 more bytes"},
		"huge count":     {slices.Concat(good[:8], []byte{0}, binary.AppendUvarint(nil, 65536)), "expected 65536 elements, found only 0 bytes"},
		"too many items": {slices.Concat(good[:8], []byte{0}, binary.AppendUvarint(nil, 65537)), "a count of at most 65536, found 65537"},
		"too long":       {make([]byte, catalog.MaxCanonical+1), "expected at most 33554432 bytes"},
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
		"name not UTF-8":     {func(c *catalog.Catalog) { c.Items[1].Name = "\xff" }, "items.stardust.name: expected a text"},
		"pool twice":         {func(c *catalog.Catalog) { c.Pools[1].ID = "banner" }, "pools.banner: duplicate id"},
		"mode":               {func(c *catalog.Catalog) { c.Pools[0].Mode = 0 }, "pools.banner.mode: expected weighted or raffle"},
		"price twice":        {func(c *catalog.Catalog) { p := &c.Pools[0].Price; *p = append(*p, (*p)[0]) }, "pools.banner.price.starlight: duplicate id"},
		"price 0":            {func(c *catalog.Catalog) { c.Pools[0].Price[0].Quantity = 0 }, "pools.banner.price.starlight: expected a whole number"},
		"time":               {func(c *catalog.Catalog) { c.Pools[0].StartsAt = 1 << 60 }, "pools.banner.starts: expected Unix milliseconds"},
		"max_count 0":        {func(c *catalog.Catalog) { c.Pools[0].MaxCount = 0 }, "pools.banner.max_count: expected a whole number from 1 to 1000, found 0"},
		"limit":              {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 9, Draws: 1}} }, "pools.banner.limits[0].per: expected"},
		"limit without end":  {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 4, Draws: 1}} }, "pools.banner.limits[0].window: expected"},
		"window of a day":    {func(c *catalog.Catalog) { c.Pools[0].Limits = []catalog.PlayerLimit{{Per: 2, Window: 5, Draws: 1}} }, "pools.banner.limits[0].window: expected none"},
		"no entries":         {func(c *catalog.Catalog) { c.Pools[0].Entries = nil }, "pools.banner: expected at least one entry"},
		"entry twice":        {func(c *catalog.Catalog) { c.Pools[0].Entries[1].ID = "five-star" }, "pools.banner.entries[1].id: duplicate id"},
		"weight":             {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Weight = 1 << 63 }, "pools.banner.entries[0].weight: expected odds whose sum"},
		"sum of weights":     {func(c *catalog.Catalog) { c.Pools[0].Entries[1].Weight = 1<<63 - 6 }, "pools.banner.entries[1].weight: expected odds whose sum"},
		"scale":              {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 11 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"scale 0":            {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 0 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"scale too large":    {func(c *catalog.Catalog) { c.Pools[0].WeightScale = 1e19 }, "pools.banner.entries: expected weights scaled by a power of ten"},
		"raffle with weight": {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries[0].weight: expected none"},
		"raffle unlimited":   {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries[0].stock: expected a number"},
		"raffle scaled":      {func(c *catalog.Catalog) { c.Pools[1].Mode = catalog.ModeRaffle }, "pools.five-star.entries: expected weights scaled by a power of ten up to 10^18 (by 1 in a raffle)"},
		"stock":              {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Stock = catalog.Stock{Count: 1 << 53} }, "pools.banner.entries[0].stock: expected a whole number"},
		"reward kind":        {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Reward.Kind = 0 }, "pools.banner.entries[0].reward: expected items, a pool or nothing"},
		"no pool":            {func(c *catalog.Catalog) { c.Pools[0].Entries[0].Reward.Pool = "" }, "pools.banner.entries[0].reward: expected a pool"},
		"no items":           {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items = nil }, "pools.five-star.entries[0].reward: expected items"},
		"quantity 0":         {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[0].Min = 0 }, "pools.five-star.entries[0].reward.items.hoshimi: expected whole numbers"},
		"max below min":      {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[1].Max = 1 }, "pools.five-star.entries[0].reward.items.stardust: expected whole numbers"},
		"item twice in reward": {func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Items[1].Item = "hoshimi" },
			"pools.five-star.entries[0].reward.items.hoshimi: duplicate id"},
		"cycle":       {func(c *catalog.Catalog) { c.Pools[2].Entries[0].Reward = catalog.Reward{Kind: 3, Pool: "five-star"} }, "expected no cycle of pools, found five-star → five-star-other → five-star"},
		"ids kept":    {func(c *catalog.Catalog) { c.Idempotency.Count = 0 }, "idempotency.count: expected"},
		"ids kept by": {func(c *catalog.Catalog) { c.Idempotency.Age = 1 }, "idempotency.age: expected"},
		"start":       {func(c *catalog.Catalog) { c.Start[0].Item = "gold" }, `start.gold: there is no item "gold"`},
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

// TestCheckOnly holds Check to what no encoding can express.
func TestCheckOnly(t *testing.T) {
	for name, damage := range map[string]func(c *catalog.Catalog){
		"negative time":       func(c *catalog.Catalog) { c.Pools[0].EndsAt = -1 },
		"unlimited, with 5":   func(c *catalog.Catalog) { c.Pools[0].Entries[0].Stock.Count = 5 },
		"nothing, with items": func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Kind = catalog.RewardNothing },
		"items, with a pool":  func(c *catalog.Catalog) { c.Pools[1].Entries[0].Reward.Pool = "three-star" },
		"too many pools":      func(c *catalog.Catalog) { c.Pools = make([]catalog.Pool, catalog.MaxPools+1) },
		"too many items":      func(c *catalog.Catalog) { c.Items = make([]catalog.Item, catalog.MaxItems+1) },
		"too many entries":    func(c *catalog.Catalog) { c.Pools[4].Entries = make([]catalog.Entry, catalog.MaxEntries) },
		"too much to start":   func(c *catalog.Catalog) { c.Start = make([]catalog.Stack, catalog.MaxBundle+1) },
		"too large a form": func(c *catalog.Catalog) {
			w := catalog.Reward{Kind: catalog.RewardItems}
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
