package economy

import "github.com/kuji-dev/kuji/catalog"

// Outcome is what one draw gave. Outcomes are read-only: they may share their
// memory with each other.
type Outcome struct {
	Entry string          `json:"entry"`           // the entry's id in the pool that was drawn from
	Items []catalog.Stack `json:"items,omitempty"` // what the player got; nil for nothing
	// Via holds, when the entry's reward was another pool, the entries that
	// led to Items: "pool/entry" for each nested pool, outermost first.
	Via []string `json:"via,omitempty"`
}
