package server_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kuji-dev/kuji/examples"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func TestApplyCatalog(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[4]
	for range 3 {
		if _, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "standard", Count: 10}); err != nil {
			t.Fatal(err)
		}
	}
	// Every kind of change, on a catalog with something drawn.
	changed := `
kuji: 1
name: Renamed
counters: {hits: {per: day}, draws: {}}
quests: {first: {needs: {hits: 2}}, other: {needs: {draws: 1}}}
items:
  gem: {kind: currency, name: Jewel}
  sword: {name: Sword}
  bow: {name: Bow}
  ghost: {}
pools:
  standard:
    name: Better banner
    price: {gem: 1}
    max_count: 10
    entries:
      - {id: sword, weight: 0.5, reward: {items: {sword: 1}}}
      - {id: bow, weight: 0.5, stock: 7, reward: {items: {bow: 1}}}
  free:
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
  extra:
    entries:
      - {id: bow, weight: 1, reward: {items: {bow: 1}}}
      - {id: never, weight: 0, reward: {items: {ghost: 1}}}
start: {gem: 100}
`
	dry, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(changed), DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if dry.GetResult() != nil || dry.GetPlan().GetVersion() != 2 || dry.GetPlan().GetUnchanged() || len(dry.GetPlan().GetChanges()) == 0 {
		t.Errorf("dry run: %v, want a plan for version 2 and no result", dry)
	}
	if dry.GetOutline() != nil {
		t.Errorf("an outline that nobody asked for: %v", dry.GetOutline())
	}
	named, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte("kuji: 1\nstart: {topaz: 3}\nitems: {topaz: {name: {en: Topaz, de: Topas}}}\npools:\n  a: {name: The shore, entries: [{id: w, weight: 1, reward: {pool: b}}]}\n  b: {internal: true, entries: [{id: g, weight: 1, reward: {items: {topaz: 1}}}]}\n"),
		DryRun: true, Language: "de"})
	if err != nil {
		t.Fatal(err)
	}
	o := named.GetOutline()
	if len(o.GetStart()) != 1 || o.GetStart()[0].GetQuantity() != 3 || len(o.GetItems()) != 1 || o.GetItems()[0].GetDisplay().GetName() != "Topas" || len(o.GetPools()) != 2 || o.GetPools()[0].GetDisplay().GetName() != "The shore" ||
		o.GetPools()[0].GetInternal() || o.GetPools()[1].GetId() != "b" || !o.GetPools()[1].GetInternal() {
		t.Errorf("the outline is %v", o)
	}
	kinds := map[kujiv1.ChangeKind]bool{}
	for _, ch := range dry.GetPlan().GetChanges() {
		kinds[ch.GetKind()] = true
		entry := ch.GetEntry() != ""
		was := entry && ch.GetKind() != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_ADDED
		stays := entry && ch.GetKind() != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_REMOVED
		if ch.GetText() == "" || was != (ch.GetBefore() != nil) || stays != (ch.GetAfter() != nil) {
			t.Errorf("change %v: want a text, and for entries the stock before and after, where there is one", ch)
		}
		if ch.GetId() == "standard" && ch.GetEntry() == "shield" && (ch.GetBefore().GetStock() != 1000 || ch.GetBefore().GetLeft()+ch.GetDrawn() != 1000) {
			t.Errorf("the entry that goes: %v, want its stock of 1000, drawn and left", ch)
		}
	}
	for n, name := range kujiv1.ChangeKind_name {
		k := kujiv1.ChangeKind(n)
		missing := !kinds[k]
		switch k {
		case kujiv1.ChangeKind_CHANGE_KIND_UNSPECIFIED:
			missing = kinds[k]
		}
		if missing {
			t.Errorf("%s: unexpected absence or presence in the plan of\n%v", name, dry.GetPlan())
		}
	}
	before, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{})
	if err != nil || before.GetVersion() != 1 || before.GetName() != "Test" {
		t.Fatalf("after a dry run: version %d, %v; want 1", before.GetVersion(), err)
	}
	done, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(changed)})
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(dry.GetPlan(), done.GetPlan()); d != "" {
		t.Errorf("the plan differs from the dry run's:\n%s", d)
	}
	if r := done.GetResult(); r.GetReceipt().GetCatalogVersion() != 2 || r.GetReceipt().GetPosition() <= before.GetPosition() {
		t.Errorf("applied: %v, want version 2 at a later position", r)
	}
	again, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(changed)})
	if err != nil || !again.GetPlan().GetUnchanged() || again.GetResult().GetReceipt().GetPosition() != done.GetResult().GetReceipt().GetPosition() {
		t.Errorf("applied again: %v, %v; want unchanged, at the position in force", again, err)
	}
	after, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetVersion() != 2 || after.GetName() != "Renamed" || after.GetItemCount() != 4 || len(after.GetHash()) != 32 ||
		!cmp.Equal(after.GetPools(), []string{"standard", "free", "extra"}) || after.GetIdempotency().GetCount() == 0 || after.GetIdempotency().GetAgeMs() == 0 {
		t.Errorf("catalog in force: %v", after)
	}
}

// TestItemRules: items say what becomes of them, in the catalog and where an answer names them.
func TestItemRules(t *testing.T) {
	f := start(t, server.Options{})
	applyTo(t, f, "items", `
kuji: 1
items:
  gem: {kind: currency, name: Gem}
  pass: {lasts: 30d, extend: true}
  energy: {grows: {every: 5m, by: 2, to: 100}}
  wood: {family: box, most: 999}
  iron: {family: box, most: 10, beyond: cut}
  gold: {most: 5, beyond: mail}
  ruby: {most: 5, beyond: {mail: 1h}}
pools: {a: {price: {energy: 1}, entries: [{id: e, weight: 1, reward: {items: {ruby: 1}}}]}}
`)
	const day = int64(24 * time.Hour / time.Millisecond)
	item, currency := kujiv1.ItemKind_ITEM_KIND_ITEM, kujiv1.ItemKind_ITEM_KIND_CURRENCY
	energy := &kujiv1.Item{Id: "energy", Kind: item, Grows: &kujiv1.Growth{EveryMs: 300_000, By: 2, To: 100}}
	ruby := &kujiv1.Item{Id: "ruby", Kind: item, Most: 5, Beyond: kujiv1.ItemBeyond_ITEM_BEYOND_MAIL, MailMs: 3_600_000}
	want := []*kujiv1.Item{
		{Id: "gem", Kind: currency, Name: "Gem"},
		{Id: "pass", Kind: item, LastsMs: 30 * day, Extend: true},
		energy,
		{Id: "wood", Kind: item, Family: "box", Most: 999, Beyond: kujiv1.ItemBeyond_ITEM_BEYOND_REFUSE},
		{Id: "iron", Kind: item, Family: "box", Most: 10, Beyond: kujiv1.ItemBeyond_ITEM_BEYOND_CUT},
		{Id: "gold", Kind: item, Most: 5, Beyond: kujiv1.ItemBeyond_ITEM_BEYOND_MAIL, MailMs: 30 * day},
		ruby,
	}
	for _, c := range clients(t, f.url) {
		got, err := c.reward.GetCatalog(t.Context(), &kujiv1.GetCatalogRequest{Realm: "items"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.GetItems(), protocmp.Transform()); d != "" {
			t.Errorf("%s: items of the catalog, - wanted, + got:\n%s", c.name, d)
		}
		pool, err := c.reward.GetPool(t.Context(), &kujiv1.GetPoolRequest{Realm: "items", Pool: "a", Names: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]*kujiv1.Item{energy, ruby}, pool.GetItems(), protocmp.Transform()); d != "" {
			t.Errorf("%s: items that a pool names, - wanted, + got:\n%s", c.name, d)
		}
	}
}

// TestExpectedVersion: a catalog is applied, or planned, over the version that
// the caller has seen, or refused.
func TestExpectedVersion(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{}) // with version 1
	c := clients(t, f.url)[3]
	apply := func(name string, dry bool, expected ...uint64) (*kujiv1.ApplyCatalogResponse, error) {
		req := &kujiv1.ApplyCatalogRequest{Yaml: []byte(strings.Replace(testCatalog, "name: Test", "name: "+name, 1)), DryRun: dry}
		if expected != nil {
			req.ExpectedVersion = &expected[0]
		}
		return c.admin.ApplyCatalog(ctx, req)
	}
	for _, dry := range []bool{true, false} {
		for _, expected := range []uint64{0, 2} {
			_, err := apply("a", dry, expected)
			if connect.CodeOf(err) != connect.CodeFailedPrecondition {
				t.Fatalf("dry run %v over version %d, of 1: %v, want failed_precondition", dry, expected, err)
			}
			d := detail(t, err)
			if v := d.GetViolations(); d.GetReason() != kujiv1.Reason_REASON_CONFLICT || len(v) != 1 || v[0].GetField() != "expected_version" {
				t.Errorf("dry run %v: detail %v", dry, d)
			}
		}
		if _, err := apply("a", dry, 1); err != nil {
			t.Errorf("dry run %v over version 1: %v", dry, err)
		}
	}
	for _, dry := range []bool{true, false} {
		if again, err := apply("a", dry, 1); err != nil || !again.GetPlan().GetUnchanged() {
			t.Errorf("dry run %v, once more: %v, %v; want unchanged", dry, again, err)
		}
	}
	if res, err := apply("b", false); err != nil || res.GetPlan().GetVersion() != 3 {
		t.Errorf("over any version: %v, %v", res, err)
	}
}

func TestBadCatalog(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[1]
	_, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte("kuji: 1\nitems:\n  gem: {knid: currency}\npools:\n  a:\n    entries:\n      - {id: x, weight: -1}\n")})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Fatalf("%v, want invalid_argument", err)
	}
	if want := "yaml: 3:9: "; !strings.Contains(err.Error(), want) {
		t.Errorf("%q, want %q in it", err, want)
	}
	lines := map[uint32]bool{}
	for _, v := range detail(t, err).GetViolations() {
		lines[v.GetLine()] = true
		if v.GetDescription() == "" || v.GetColumn() == 0 {
			t.Errorf("violation %v, want a description and a column", v)
		}
	}
	if !lines[3] || !lines[7] {
		t.Errorf("violations in lines %v, want 3 and 7 among them", lines)
	}
	_, err = c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: "nope", Yaml: []byte(testCatalog)})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("apply to a realm that does not exist: %v, want not_found", err)
	}
	got, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{})
	if err != nil || got.GetVersion() != 1 {
		t.Errorf("after refusals: version %d, %v; want 1", got.GetVersion(), err)
	}
}

func TestExampleCatalogs(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[0]
	files, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		data, err := examples.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		realm := strings.TrimSuffix(name, ".yaml")
		if _, err := c.admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: data}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cat, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{Realm: realm})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range cat.GetPools() {
			got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Realm: realm, Pool: id})
			if err != nil {
				t.Fatal(err)
			}
			p := got.GetPool()
			if p.GetMode() == 0 || len(p.GetEntries()) == 0 || p.GetMaxCount() == 0 || p.GetTotalWeight() == 0 || p.GetWeightScale() == 0 {
				t.Errorf("%s: pool %v lacks something", name, p)
			}
			for _, l := range p.GetLimits() {
				if l.GetPer() == 0 || l.GetDraws() == 0 {
					t.Errorf("%s: pool %s: limit %v", name, id, l)
				}
			}
		}
	}
}

// TestPages reads a pool and a catalog in pages and as a whole.
func TestPages(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[4]
	const n = 1500
	var y strings.Builder
	y.WriteString("kuji: 1\nitems:\n")
	for i := range n {
		fmt.Fprintf(&y, "  i%d: {name: Item %d}\n", i, i)
	}
	y.WriteString("pools:\n  big:\n    entries:\n")
	for i := range n {
		fmt.Fprintf(&y, "      - {id: e%d, weight: %d, stock: %d, reward: {items: {i%d: 1}}}\n", i, i+1, i, i)
	}
	if _, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(y.String())}); err != nil {
		t.Fatal(err)
	}
	pool := func(offset, limit uint32) *kujiv1.Pool {
		got, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "big", EntryOffset: offset, EntryLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetPool().GetEntryCount() != n {
			t.Errorf("%d entries in all, want %d", got.GetPool().GetEntryCount(), n)
		}
		return got.GetPool()
	}
	whole := pool(0, server.MaxPage).GetEntries()
	if len(whole) != n || len(pool(0, 0).GetEntries()) != server.DefaultPage || len(pool(n, 10).GetEntries()) != 0 || len(pool(1<<31, 10).GetEntries()) != 0 {
		t.Error("pages of the wrong size")
	}
	if e := whole[0]; e.Left == nil || e.GetLeft() != 0 || e.GetWeight() != 0 || e.GetCatalogWeight() != 1 {
		t.Errorf("an entry without stock: %v, want left 0 said explicitly, weight 0, weight 1 in the catalog", e)
	}
	var pages []*kujiv1.Entry
	for offset := uint32(0); offset < n; offset += 400 {
		pages = append(pages, pool(offset, 400).GetEntries()...)
	}
	if d := cmp.Diff(whole, pages, protocmp.Transform()); d != "" {
		t.Error(d)
	}
	got, err := c.reward.GetCatalog(ctx, &kujiv1.GetCatalogRequest{ItemOffset: 1490, ItemLimit: 100})
	if err != nil || len(got.GetItems()) != 10 || got.GetItemCount() != n || got.GetItems()[0].GetId() != "i1490" || got.GetItems()[0].GetKind() != kujiv1.ItemKind_ITEM_KIND_ITEM {
		t.Errorf("items: %v, %v", got.GetItems(), err)
	}
}
