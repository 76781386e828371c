package catalog

import "github.com/kuji-dev/kuji/internal/document"

import "time"

// Bounds of how an item grows.
const (
	MinEvery = time.Second
	MaxEvery = 366 * 24 * time.Hour
	MaxGrown = 1_000_000_000 // the highest bound, and the most at once
)

// Grows says that an item grows by itself: so many every so often, up to a bound. The zero value: it does not.
type Grows struct {
	Every int64  `json:"every"` // milliseconds
	By    uint64 `json:"by"`
	To    uint64 `json:"to"`
}

var growsShape = mapping("grows", "An item that grows by itself, also when nobody looks.",
	key("every", duration[int64](time.Millisecond, MinEvery, MaxEvery), func(g *Grows) *int64 { return &g.Every },
		"How often, such as 5m; from "+document.FormatDuration(MinEvery)+" to "+document.FormatDuration(MaxEvery)+".").must(),
	keyOr("by", integer[uint64](1, MaxGrown), func(g *Grows) *uint64 { return &g.By }, 1, "By how many."),
	key("to", integer[uint64](1, MaxGrown), func(g *Grows) *uint64 { return &g.To },
		"Up to how many. A player who holds as many or more gets none.").must(),
)

func (g *Grows) code(x *coder) {
	number(x, &g.Every)
	number(x, &g.By)
	if number(x, &g.To); g.Every == 0 {
		x.fail("expected how often the item grows, found 0")
	}
}
