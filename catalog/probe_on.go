//go:build kuji_probe

package catalog

import "github.com/kuji-dev/kuji/internal/format"

// With the build tag kuji_probe, this tree is the next build, which has a kind of item more. Tests let it
// meet the build without: see package format.

const kindProbe ItemKind = 3

var probeKinds = []choice[ItemKind]{{"probe", kindProbe, "A word of the next format level."}}

func probeWords(c *Catalog) []format.Word {
	for i := range c.Items {
		if c.Items[i].Kind == kindProbe {
			return []format.Word{{Of: "catalog", Name: "kind: probe"}}
		}
	}
	return nil
}
