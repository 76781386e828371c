package rules

import (
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Clients and administrators know a track by its name: the one that pools share it by, or
// "pool/track". What a track does is in pity.go.

// namedTrack is what a catalog's tracks with one name have in common.
type namedTrack struct {
	name    string
	counter uint32
	places  []Place // in the order of the catalog
}

// place is a track of a pool.
type Place struct {
	Pool  *Pool
	Index int // in Pool.Tracks
}

// TrackDraws is what a player's track has counted.
type TrackDraws struct {
	Name      string
	Draws     uint64 // since the last hit; not 0
	CertainIn uint64 // at the latest this draw from now on is certain to hit; 0: none is
	Pool      string // from which pool it must be, if the pools of the track promise different things
	// Unless names what can come in place of that hit, in the order of the catalog, with ", " between:
	// tracks before it that have nothing in common with it, and entries with moments. Then the track
	// waits for the next draw.
	Unless string
}

// shownName returns the name by which clients know a track.
func ShownName(pool string, t *catalog.Track) string {
	if t.Share != "" {
		return t.Share
	}
	return pool + "/" + t.Name
}

// nameTracks collects a pool's tracks by name.
func (t *Tables) nameTracks(pt *Pool, counters []uint32) {
	for i := range pt.Config.Tracks {
		name := ShownName(pt.Config.ID, &pt.Config.Tracks[i])
		nt := t.track[name]
		if nt == nil {
			nt = &namedTrack{name: name, counter: counters[i]}
			t.track[name], t.counted[nt.counter] = nt, nt
		}
		nt.places = append(nt.places, Place{pt, i})
	}
}

// Tracks returns what the catalog's tracks have counted, by all counters of a player. It may be
// called concurrently with the writer. If open is true, what is certain depends on what is in stock, or
// on what the player holds: then [Rules.Promise] fills that in.
func (t *Tables) Tracks(counters []store.CounterValue) (all []TrackDraws, open bool) {
	for _, c := range counters {
		nt := t.counted[c.Counter]
		if nt == nil || c.Value == 0 {
			continue
		}
		d := TrackDraws{Name: nt.name, Draws: c.Value}
		fixed := true
		for _, at := range nt.places {
			fixed = fixed && (at.track().Certain == 0 || at.Pool.constant != nil)
		}
		if fixed {
			d.promise(nt, func(at Place, _ uint64) ([]uint64, func(uint32) bool) { return at.Pool.constant, nothingDue })
		}
		all, open = append(all, d), open || !fixed
	}
	return all, open
}

// Promise fills in what is certain of a player's tracks, as the next draws would keep it.
func (r *Rules) Promise(player string, now int64, tracks []TrackDraws) {
	r.begin(now, nil, nil)
	defer r.d.end()
	r.d.player = r.see(player)
	for i := range tracks {
		d := &tracks[i]
		nt := r.t.track[d.Name]
		if nt == nil {
			continue
		}
		d.promise(nt, func(at Place, draws uint64) ([]uint64, func(uint32) bool) {
			key := valueKey(r.d.player, counterKey|nt.counter)
			r.d.values.put(key, draws)
			r.weigh(at.Pool, true)
			r.d.values.put(key, d.Draws)
			return r.d.sums, func(entry uint32) bool {
				e := &at.Pool.Entries[entry]
				return r.left(at.Pool, entry) > 0 && r.affords(e) && r.codesLeft(&e.Reward)
			}
		})
	}
}

func nothingDue(uint32) bool { return false }

// promise fills in what is certain, by the pools of the track. look returns the sums of a pool's
// classes when the track has counted so many draws, and whether a moment can take an entry.
func (d *TrackDraws) promise(nt *namedTrack, look func(at Place, draws uint64) ([]uint64, func(uint32) bool)) {
	d.CertainIn, d.Pool, d.Unless = 0, "", ""
	differ := false
	for k, at := range nt.places {
		in, unless := uint64(0), []string(nil)
		if t := at.track(); t.Certain != 0 {
			sums, moment := look(at, max(d.Draws, t.Certain-1))
			in, unless = at.CertainIn(d.Draws, at.Pool.DueAlone(sums), sums, moment, func(track int) string {
				return ShownName(at.Pool.Config.ID, &at.Pool.Config.Tracks[track])
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

func (at Place) track() *Track { return &at.Pool.Tracks[at.Index] }

// certainIn returns which draw from now on is certain to hit a track that has counted draws, and what
// can come in its place: tracks by their names, and entries that a moment can make certain. It is 0 if
// none is, or if nothing can be drawn of the group. sums are those of the pool's classes before that
// draw, and due is as for [Pool.Divide].
func (at Place) CertainIn(draws uint64, due uint32, sums []uint64, moment func(entry uint32) bool, name func(track int) string) (in uint64, unless []string) {
	pt, t := at.Pool, at.track()
	if t.Certain == 0 || pt.Among(sums, t.Group|due, 0) == 0 {
		return 0, nil
	}
	instead := pt.instead(at.Index, due, sums)
	for k := range pt.Tracks {
		if instead&pt.Tracks[k].Group != 0 {
			unless = append(unless, name(k))
		}
	}
	for _, m := range pt.Moments {
		groups := pt.Classes[pt.Entries[m.Entry].Class].Groups
		if groups&t.Group == 0 && groups&due == due && moment(m.Entry) {
			unless = append(unless, pt.Entries[m.Entry].ID)
		}
	}
	return t.Certain - min(draws, t.Certain-1), unless
}

// instead returns the groups of tracks that a draw can hit in place of one that is certain: those
// before it that have nothing in common with it, each by itself or several together.
func (pt *Pool) instead(track int, due uint32, sums []uint64) (groups uint32) {
	own := pt.Tracks[track].Group | due
	for set := uint32(1); set < pt.Tracks[track].Group; set++ { // each set of tracks before it: their bits are the lowest
		if pt.Among(sums, set|due, 0) == 0 || pt.Among(sums, set|own, 0) > 0 {
			continue
		}
		needed := true // all of the set are; and several must be certain to keep others from a draw
		for k := range track {
			t := &pt.Tracks[k]
			if set&t.Group != 0 && set != t.Group {
				needed = needed && pt.Among(sums, set&^t.Group|own, 0) > 0 && (t.Certain != 0 || t.From != 0)
			}
		}
		if needed {
			groups |= set
		}
	}
	return groups
}

// dueAlone returns the group of the guarantee that the draw of a request for one must hit, or 0: see
// [Pool.Due].
func (pt *Pool) DueAlone(sums []uint64) uint32 {
	for k := range pt.Must {
		g := &pt.Must[k]
		if _, missing := g.rest(0, 1, 0); missing > 0 && pt.Among(sums, g.group, 0) > 0 {
			return g.group
		}
	}
	return 0
}

// fix sets the sums of a pool's classes, if they are the same for every player at any time.
func (pt *Pool) fix() {
	if len(pt.Tracks) == 0 || pt.conditional || pt.raffle || len(pt.Moments) > 0 {
		return
	}
	sums := make([]uint64, len(pt.Classes))
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if target := e.Target(); e.Weight > 0 && (e.Limited || target != nil && !target.Endless) {
			return
		}
		sums[e.Class] += e.Weight
	}
	pt.constant = sums
}

func (r *Rules) writeSetTrack(cmd *Command) {
	r.turn(r.see(cmd.Player))
	r.d.w.Change(store.Set, r.t.track[cmd.Set.Track].counter, cmd.Set.Draws)
}
