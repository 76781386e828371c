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
	family, most := i.Family != "", i.Most != 0
	if x.flags(&lasts, &i.Extend, &grows, &family, &most); lasts {
		if number(x, &i.Lasts); i.Lasts == 0 {
			x.fail("expected how long the item lasts, found 0")
		}
	}
	if grows {
		i.Grows.code(x)
	}
	if family {
		if x.ref(&i.Family); i.Family == "" {
			x.fail("expected the id of a family, found none")
		}
	}
	if most {
		i.codeMost(x)
	}
}

// itemWords returns the words about items that the catalog uses.
func (c *Catalog) itemWords() (words []format.Word) {
	for _, w := range []struct {
		name string
		used func(i *Item) bool
	}{
		{"lasts", func(i *Item) bool { return i.Lasts != 0 }},
		{"extend", func(i *Item) bool { return i.Extend }},
		{"grows", func(i *Item) bool { return i.Grows != Grows{} }},
		{"most", func(i *Item) bool { return i.Most != 0 }},
		{"family", func(i *Item) bool { return i.Family != "" }},
	} {
		for i := range c.Items {
			if w.used(&c.Items[i]) {
				words = append(words, format.Word{Of: "catalog", Name: w.name})
				break
			}
		}
	}
	return words
}

// checkItems checks what keys of an item say together.
func (k *check) checkItems() {
	k.checkFamilies()
	for i := range k.c.Items {
		it := &k.c.Items[i]
		k.at(it.ID, func() { k.checkMost(it) })
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
