package catalog

import (
	"time"

	"github.com/kuji-dev/kuji/internal/format"
)

// An item can last for a time. Then each unit goes so long after it came.

// Bounds of how long an item lasts.
const (
	MinLasts = time.Second
	MaxLasts = 3650 * 24 * time.Hour // ten years
)

// lasting is how an item that lasts stands in the canonical form.
type lasting struct {
	place  uint32 // of the item in the catalog
	lasts  int64
	extend bool
}

// codeLasting is which items last. Read, the items are there already.
func (c *Catalog) codeLasting(x *coder) {
	var all []lasting
	if !x.reading {
		for i := range c.Items {
			if it := &c.Items[i]; it.Lasts != 0 {
				all = append(all, lasting{uint32(i), it.Lasts, it.Extend})
			}
		}
	}
	many(x, &all, MaxItems, 3, func(l *lasting, x *coder) {
		number(x, &l.place)
		number(x, &l.lasts)
		x.flags(&l.extend)
	})
	if !x.reading {
		return
	}
	next := uint32(0)
	for _, l := range all {
		if l.place < next || int(l.place) >= len(c.Items) || l.lasts == 0 {
			x.fail("expected items that last, in order, found number %d of %d, for %d ms", l.place, len(c.Items), l.lasts)
			return
		}
		next = l.place + 1
		c.Items[l.place].Lasts, c.Items[l.place].Extend = l.lasts, l.extend
	}
}

// lastingWords returns the words that the catalog uses.
func (c *Catalog) lastingWords() (words []format.Word) {
	lasts, extend := false, false
	for i := range c.Items {
		lasts = lasts || c.Items[i].Lasts != 0
		extend = extend || c.Items[i].Extend
	}
	if lasts {
		words = append(words, format.Word{Of: "catalog", Name: "lasts"})
	}
	if extend {
		words = append(words, format.Word{Of: "catalog", Name: "extend"})
	}
	return words
}

// checkItems checks what keys of an item say together.
func (k *check) checkItems() {
	for i := range k.c.Items {
		it := &k.c.Items[i]
		if it.Extend && it.Lasts == 0 && k.line == nil {
			k.at(it.ID, func() { k.faultAt("extend", "expected none: it needs lasts") })
		}
	}
}
