package look

import (
	"strings"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Tracks returns what the catalog's tracks have counted, from all counters of a player. It may be
// called concurrently with the writer. If open is true, what is certain depends on stock or on what
// the player holds: then call [Promise].
func Tracks(t *rules.Tables, counters []store.CounterValue) (all []view.Track, open bool) {
	for _, c := range counters {
		nt := t.Counted[c.Counter]
		if nt == nil || c.Value == 0 {
			continue
		}
		d := view.Track{Name: nt.Name, Draws: c.Value}
		fixed := true
		for _, at := range nt.Places {
			fixed = fixed && (at.Track().Certain == 0 || at.Pool.Constant != nil)
		}
		if fixed {
			promise(&d, nt, func(at rules.Place, _ uint64) ([]uint64, func(uint32) bool) {
				return at.Pool.Constant, func(uint32) bool { return false }
			})
		}
		all, open = append(all, d), open || !fixed
	}
	return all, open
}

// Promise fills in what is certain in a player's tracks.
func Promise(r *rules.Rules, player string, now int64, tracks []view.Track) {
	r.Look(player, now, func(s *rules.Sight) {
		for i := range tracks {
			d := &tracks[i]
			nt := r.Tables().Track[d.Name]
			if nt == nil {
				continue
			}
			promise(d, nt, func(at rules.Place, draws uint64) ([]uint64, func(uint32) bool) {
				s.Suppose(nt.Counter, draws)
				sums := s.Sums(at.Pool, true)
				s.Suppose(nt.Counter, d.Draws)
				return sums, func(entry uint32) bool { return at.Pool.There(s, entry) }
			})
		}
	})
}

// promise fills in what is certain in a track. look returns the sums of a pool's classes when the
// track has counted this many draws, and whether a moment can take an entry.
func promise(d *view.Track, nt *rules.NamedTrack, look func(at rules.Place, draws uint64) ([]uint64, func(uint32) bool)) {
	d.CertainIn, d.Pool, d.Unless = 0, "", ""
	differ := false
	for k, at := range nt.Places {
		in, unless := uint64(0), []string(nil)
		if t := at.Track(); t.Certain != 0 {
			sums, moment := look(at, max(d.Draws, t.Certain-1))
			in, unless = at.CertainIn(d.Draws, at.Pool.DueAlone(sums), sums, moment, func(track int) string {
				return rules.ShownName(at.Pool.Config.ID, &at.Pool.Config.Tracks[track])
			})
		}
		text := strings.Join(unless, ", ")
		differ = differ || k > 0 && (in != d.CertainIn || text != d.Unless)
		if in != 0 && (d.CertainIn == 0 || in < d.CertainIn) {
			d.CertainIn, d.Pool, d.Unless = in, at.Pool.Config.ID, text
		}
	}
	if !differ {
		d.Pool = ""
	}
}
