package demo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// streaks are the clients' book of pity, from acknowledged outcomes: draws since a track's last hit.
type streaks struct {
	tracks map[string][]streakRule // of each pool, in the catalog's order
	counts counts[uint64]          // by player and name of the track
	plain  counts[uint64]          // by pool and entry: draws whose odds were those of the weights
	wrong  []error                 // what pity promised and did not keep
}

// streakRule is what a track promises.
type streakRule struct {
	name    string // the one that pools share it by, or pool/track
	hits    map[string]bool
	certain uint64 // 0: none
	from    uint64 // the first draw with other odds; 0: none
}

func newStreaks(pools []catalog.Pool) streaks {
	s := streaks{map[string][]streakRule{}, counts[uint64]{}, counts[uint64]{}, nil}
	for i := range pools {
		p := &pools[i]
		for j := range p.Tracks {
			t := &p.Tracks[j]
			rule := streakRule{
				name: cmp.Or(t.Share, p.ID+"/"+t.Name), hits: map[string]bool{}, certain: uint64(t.Certain), from: uint64(t.Rising.From),
			}
			for _, e := range p.Entries {
				rule.hits[e.ID] = slices.Contains(t.Of, e.ID) || e.Group != "" && slices.Contains(t.Of, e.Group)
			}
			s.tracks[p.ID] = append(s.tracks[p.ID], rule)
		}
	}
	return s
}

// see books that a player's draw took an entry. Of several certain tracks, the first goes before the others.
func (s *streaks) see(player, pool, entry string) {
	counts := s.counts.of(player)
	plain, hit := true, false
	for _, t := range s.tracks[pool] {
		n := counts[t.name] + 1
		certain := t.certain != 0 && n >= t.certain
		plain = plain && !certain && (t.from == 0 || n < t.from)
		hit = hit || t.hits[entry]
		if certain && !hit {
			s.wrong = append(s.wrong, fmt.Errorf("player %s: draw %d of track %s took %s/%s, and draw %d was certain to hit", player, n, t.name, pool, entry, t.certain))
			hit = true // one error is enough
		}
	}
	for _, t := range s.tracks[pool] {
		if counts[t.name]++; t.hits[entry] {
			delete(counts, t.name)
		}
	}
	if plain {
		s.plain.of(pool)[entry]++
	}
}

// check compares what the server says of a player's tracks with the book.
func (s *streaks) check(player string, got []*kujiv1.PlayerTrack) error {
	certain := map[string]uint64{} // the earliest of all pools
	for _, rules := range s.tracks {
		for _, t := range rules {
			if at, ok := certain[t.name]; !ok || at == 0 || t.certain != 0 && t.certain < at {
				certain[t.name] = t.certain
			}
		}
	}
	left := maps.Clone(s.counts[player])
	var wrong []error
	for _, t := range got {
		want, in := left[t.GetTrack()], uint64(0)
		delete(left, t.GetTrack())
		if at := certain[t.GetTrack()]; at != 0 {
			in = max(at, want+1) - want
		}
		if t.GetDraws() != want || t.GetCertainIn() != in {
			wrong = append(wrong, fmt.Errorf("player %s: track %s is at %d, certain in %d; acknowledged %d, certain in %d",
				player, t.GetTrack(), t.GetDraws(), t.GetCertainIn(), want, in))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		wrong = append(wrong, fmt.Errorf("player %s: track %s is at 0, acknowledged %d", player, name, left[name]))
	}
	return errors.Join(wrong...)
}
