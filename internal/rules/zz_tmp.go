package rules

import "github.com/kuji-dev/kuji/catalog"

func (z Zone) Number(per catalog.Per, now int64) uint64 { return z.Period(per, now) + 1 }
