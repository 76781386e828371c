//go:build !kuji_probe

package catalog

import "github.com/kuji-dev/kuji/internal/format"

// probeKinds is what a build of tomorrow has in addition: see probe_on.go.
var probeKinds []choice[ItemKind]

func probeWords(*Catalog) []format.Word { return nil }
