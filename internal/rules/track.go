package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Clients and administrators know a track by its name: the one that pools share it by, or
// "pool/track". What a track does is in pity.go.

// namedTrack is what a catalog's tracks with one name have in common.
type namedTrack struct {
	name    string
	counter uint32
	certain uint64 // the earliest draw that is certain to hit in one of the pools; 0: none
}

// TrackDraws is what a player's track has counted.
type TrackDraws struct {
	Name      string
	Draws     uint64 // since the last hit; not 0
	CertainIn uint64 // at the latest this draw from now on is certain to hit; 0: none is
}

// shownName returns the name by which clients know a track.
func shownName(pool string, t *catalog.Track) string {
	if t.Share != "" {
		return t.Share
	}
	return pool + "/" + t.Name
}

// nameTracks collects a pool's tracks by name.
func (t *Tables) nameTracks(p *catalog.Pool, counters []uint32) {
	for i := range p.Tracks {
		c := &p.Tracks[i]
		name := shownName(p.ID, c)
		nt := t.track[name]
		if nt == nil {
			nt = &namedTrack{name: name, counter: counters[i]}
			t.track[name], t.counted[nt.counter] = nt, nt
		}
		if certain := uint64(c.Certain); certain != 0 && (nt.certain == 0 || certain < nt.certain) {
			nt.certain = certain
		}
	}
}

// Tracks returns what the catalog's tracks have counted, by all counters of a player. It may be
// called concurrently with the writer.
func (t *Tables) Tracks(counters []store.CounterValue) []TrackDraws {
	var out []TrackDraws
	for _, c := range counters {
		nt := t.counted[c.Counter]
		if nt == nil || c.Value == 0 {
			continue
		}
		d := TrackDraws{Name: nt.name, Draws: c.Value}
		if nt.certain != 0 {
			d.CertainIn = max(nt.certain, c.Value+1) - c.Value
		}
		out = append(out, d)
	}
	return out
}

func (r *Rules) writeSetTrack(cmd *Command) {
	r.turn(r.see(cmd.Player))
	r.d.w.Change(store.Set, r.t.track[cmd.Set.Track].counter, cmd.Set.Draws)
}
