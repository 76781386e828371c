package stores

import (
	"errors"
	"hash/maphash"
)

// Sharded spreads players over actors. Its shards do not share a pool: a pool with limited stock
// could not be split like this.
type Sharded struct {
	seed   maphash.Seed
	shards []*Actor
}

// NewSharded returns an empty store of n shards, 1 to 256, that draws by weights, which must not
// be empty.
func NewSharded(weights []uint64, n int) *Sharded {
	s := &Sharded{seed: maphash.MakeSeed()}
	for i := range n {
		s.shards = append(s.shards, newActor(newLocked(weights, byte(i))))
	}
	return s
}

func (s *Sharded) shard(player string) *Actor {
	return s.shards[maphash.String(s.seed, player)%uint64(len(s.shards))]
}

// Draw implements Store. A request id is remembered with its player.
func (s *Sharded) Draw(id, player string) int { return s.shard(player).Draw(id, player) }

// Held implements Store.
func (s *Sharded) Held(player string, entry int) int { return s.shard(player).Held(player, entry) }

// Close implements Store.
func (s *Sharded) Close() error {
	var errs []error
	for _, a := range s.shards {
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}
