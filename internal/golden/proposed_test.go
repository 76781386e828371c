package golden_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// proposed returns a catalog that people see in languages.
func proposed(n int) string {
	return fmt.Sprintf(`
kuji: 1
name: {en: Shop %[1]d, de: "Laden %[1]d"}
language: en
rarities: {common: {}, epic: {name: {en: Epic, ja: "\u53f2\u8a69"}}}
items:
  gem: {kind: currency, name: {en: Gem, de: Edelstein}, rarity: common}
  sword: {name: Sword, description: {en: "A blade, %[1]d of it", de: Eine Klinge}, rarity: epic, icon: /icons/sword.png, metadata: {model: sword-%[1]d}}
pools:
  shop: {name: {en: Shop}, entries: [{id: gem, weight: %[1]d, reward: {items: {gem: 1}}}, {id: sword, weight: 1, reward: {items: {sword: 1}}}]}
`, n)
}

func proposedRequests(n int) (all []kuji.Request) {
	for i := range 3 {
		all = append(all, kuji.Draw{ID: fmt.Sprint("d", n, "-", i), Player: fmt.Sprint("p", i), Pool: "shop", Count: 1 + i})
	}
	return all
}

// makeProposed fills a data directory with catalogs of which most were proposed. One still waits.
func makeProposed(t *testing.T) string {
	t.Helper()
	dir, s := filepath.Join(t.TempDir(), "data"), newSteps()
	e, r := openIn(t, s, dir, "proposed", false)
	if _, err := r.Apply(t.Context(), parse(t, proposed(1))); err != nil {
		t.Fatal(err)
	}
	ps := kuji.ProposalsOf(r)
	for i := range 6 {
		p, err := ps.Propose(t.Context(), parse(t, proposed(2+i)), nil, kuji.Note{By: "designer", Reason: fmt.Sprint("change ", i), Metadata: "T-1"})
		switch {
		case err != nil:
		case i%3 == 1:
			_, err = ps.Withdraw(t.Context(), p.Number, kuji.Note{By: "designer"})
		case i < 5:
			_, err = ps.Approve(t.Context(), p.Number, kuji.Note{By: "lead", Reason: "as planned"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.DoAll(t.Context(), proposedRequests(i)); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(time.Hour)
		if i%2 == 1 {
			snapshot(t, r)
		}
	}
	closed(t, e)
	return dir
}
