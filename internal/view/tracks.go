package view

import (
	"strings"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// TrackDraws is what a track of the catalog in force has counted for a player.
type TrackDraws struct {
	Name  string // the one that pools share it by, or "pool/track"
	Draws uint64 // since the last hit; not 0
	// CertainIn is in how many draws, at most, one is certain to hit: 1 is the next one. 0: none is, or
	// nothing of the group is in stock and for this player.
	CertainIn uint64
	Pool      string // from which pool that draw must be; empty: each pool of the track promises the same
	// Unless names, with ", " between, what can come in place of that hit: earlier tracks that have no entry
	// in common with it, and entries with winning moments. Then the track waits for the next draw.
	Unless string
}

// Tracks returns what the catalog's tracks have counted, by all counters of a player, concurrently with the
// writer. open: what is certain depends on the stock or on what the player holds, and [Promise] fills it in.
func Tracks(t *rules.Tables, counters []store.CounterValue) (all []TrackDraws, open bool) {
	for _, c := range counters {
		nt := t.Counted[c.Counter]
		if nt == nil || c.Value == 0 {
			continue
		}
		d := TrackDraws{Name: nt.Name, Draws: c.Value}
		fixed := true
		for _, at := range nt.Places {
			fixed = fixed && (at.Track().Certain == 0 || at.Pool.Constant != nil)
		}
		if fixed {
			d.promise(nt, func(at rules.Place, _ uint64) ([]uint64, func(uint32) bool) {
				return at.Pool.Constant, func(uint32) bool { return false }
			})
		}
		all, open = append(all, d), open || !fixed
	}
	return all, open
}

// Promise fills in what is certain of a player's tracks, as the next draws would keep it.
func Promise(r *rules.Rules, player string, now int64, tracks []TrackDraws) {
	r.Look(player, now, func(s *rules.Sight) {
		for i := range tracks {
			d := &tracks[i]
			nt := r.Tables().Track[d.Name]
			if nt == nil {
				continue
			}
			d.promise(nt, func(at rules.Place, draws uint64) ([]uint64, func(uint32) bool) {
				s.Suppose(nt.Counter, draws)
				sums := s.Sums(at.Pool, true)
				s.Suppose(nt.Counter, d.Draws)
				return sums, func(entry uint32) bool { return at.Pool.There(s, entry) }
			})
		}
	})
}

// promise fills in what is certain, by the pools of the track. look returns the sums of a pool's
// classes when the track has counted so many draws, and whether a moment can take an entry.
func (d *TrackDraws) promise(nt *rules.NamedTrack, look func(at rules.Place, draws uint64) ([]uint64, func(uint32) bool)) {
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
