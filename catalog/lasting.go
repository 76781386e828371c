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

// codeRules is what version 4 of the form says of an item in addition.
func (i *Item) codeRules(x *coder) {
	lasts := i.Lasts != 0
	grows := i.Grows != Grows{}
	if x.flags(&lasts, &i.Extend, &grows); lasts {
		if number(x, &i.Lasts); i.Lasts == 0 {
			x.fail("expected how long the item lasts, found 0")
		}
	}
	if grows {
		i.Grows.code(x)
	}
}

// lastingWords returns the words that the catalog uses.
func (c *Catalog) lastingWords() (words []format.Word) {
	lasts, extend, grows := false, false, false
	for i := range c.Items {
		lasts = lasts || c.Items[i].Lasts != 0
		extend = extend || c.Items[i].Extend
		grows = grows || c.Items[i].Grows != Grows{}
	}
	if lasts {
		words = append(words, format.Word{Of: "catalog", Name: "lasts"})
	}
	if extend {
		words = append(words, format.Word{Of: "catalog", Name: "extend"})
	}
	if grows {
		words = append(words, format.Word{Of: "catalog", Name: "grows"})
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
		if it.Lasts > 0 && it.Grows.Every > 0 {
			k.at(it.ID, func() {
				k.faultAt("grows", "expected none: the item lasts, and nobody could say how long what grew does")
			})
		}
	}
}
