package catalog_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/catalog"
)

// TestPriceBy: a price by a counter is the same after each way of writing it down, and only a catalog that
// has one needs the newer form.
func TestPriceBy(t *testing.T) {
	const without = `kuji: 1
items: {gem: {}, key: {}}
pools: {p: {price: {gem: 1}, entries: [{id: x, weight: 1}]}}
counters: {sold: {of: {draws: p}, per: day}}`
	with := bytes.Replace([]byte(without), []byte("price: {gem: 1}"),
		[]byte("price: {gem: 1}, price_by: {counter: sold, prices: [{from: 2, price: {gem: 5}}, {from: 9, price: {gem: 5, key: 1}}]}"), 1)
	c, err := catalog.Parse(with)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := catalog.Decode(c.AppendCanonical(nil)); err != nil || cmp.Diff(c, got) != "" {
		t.Errorf("decoded: %v\n%s", err, cmp.Diff(c, got))
	}
	wantSameYAML(t, c)
	if err := c.Allow(3); err == nil {
		t.Error("a realm of level 3 takes the catalog")
	}
	var price string
	for _, s := range c.Pools[0].Settings() {
		if s.Key == "price_by" {
			price = s.Value
		}
	}
	if want := "{counter: sold, prices: [{from: 2, price: {gem: 5}}, {from: 9, price: {gem: 5, key: 1}}]}"; price != want {
		t.Errorf("the setting is %q, want %q", price, want)
	}
}
