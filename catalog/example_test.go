package catalog_test

import (
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

func ExampleParse() {
	c, err := catalog.Parse([]byte(`
kuji: 1
items:
  sword: {name: Long sword}
  stone: {}
pools:
  standard:
    entries:
      - {id: sword, weight: 0.6, stock: 10, reward: {items: {sword: 1}}}
      - {id: stones, weight: 99.4, reward: {items: {stone: {min: 5, max: 10}}}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := c.Pools[0]
	for _, e := range pool.Entries {
		fmt.Println(e.ID, e.Weight, "unlimited:", e.Stock.Unlimited, e.Reward.Items)
	}
	fmt.Println("weights times", pool.WeightScale)
	// Output:
	// sword 6 unlimited: false [{sword 1 1}]
	// stones 994 unlimited: true [{stone 5 10}]
	// weights times 10
}

// Every fault is reported at once, with its place.
func ExampleErrors() {
	_, err := catalog.Parse([]byte(`kuji: 1
items:
  gem: {kind: currency}
pools:
  box:
    price: {gems: 1}
    entries:
      - {id: a, weight: 5%}
`))
	var all *catalog.Errors
	if errors.As(err, &all) {
		for _, e := range all.List {
			fmt.Printf("line %d, column %d, %s: %s\n", e.Line, e.Column, e.Path, e.Message)
		}
	}
	// Output:
	// line 6, column 13, pools.box.price.gems: there is no item or family "gems"; did you mean "gem"?
	// line 8, column 25, pools.box.entries[0].weight: expected a number such as 3 or 0.06, at least 0, with at most 18 digits after the point, found "5%": write it without "%"
}
