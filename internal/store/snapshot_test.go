package store_test

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// snapshot is one snapshot's blocks, as a file would hold them.
type snapshot []block

type block struct {
	kind store.BlockKind
	data []byte
}

// taken writes a capture down.
func taken(c *store.Capture) (snap snapshot) {
	for kind, data := range c.Blocks(func() {}) {
		snap = append(snap, block{kind, slices.Clone(data)})
	}
	return snap
}

// load loads snapshots that build on each other.
func load(chain []snapshot) (*store.State, store.Mark, error) {
	l := store.NewLoader()
	for _, snap := range chain {
		for _, b := range snap {
			if err := l.Block(b.kind, b.data); err != nil {
				return nil, store.Mark{}, err
			}
		}
		if err := l.Loaded(); err != nil {
			return nil, store.Mark{}, err
		}
	}
	return l.State()
}
