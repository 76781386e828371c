package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// NamedTrack is what a catalog's tracks of one name have in common. What a track does is in pity.go.
type NamedTrack struct {
	Name    string
	Counter uint32
	Places  []Place // in the order of the catalog
}

type tracks struct {
	Track   map[string]*NamedTrack // by name
	Counted map[uint32]*NamedTrack // by counter number
}

// Place is a track of a pool.
type Place struct {
	Pool  *Pool
	Index int // in Pool.Tracks
}

// ShownName returns a track's name for clients: the one that pools share it by, or "pool/track".
func ShownName(pool string, t *catalog.Track) string {
	if t.Share != "" {
		return t.Share
	}
	return pool + "/" + t.Name
}

// nameTracks collects a pool's tracks by name.
func (t *tracks) nameTracks(pt *Pool) {
	for i := range pt.Tracks {
		name := ShownName(pt.Config.ID, &pt.Config.Tracks[i])
		nt := t.Track[name]
		if nt == nil {
			nt = &NamedTrack{Name: name, Counter: pt.Tracks[i].Counter}
			t.Track[name], t.Counted[nt.Counter] = nt, nt
		}
		nt.Places = append(nt.Places, Place{pt, i})
	}
}

func (at Place) Track() *Track { return &at.Pool.Tracks[at.Index] }

// CertainIn returns which draw from now on is certain to hit a track that has counted draws: 1 is the
// next one; 0 if none is, or nothing of the group can be drawn. unless has what can come in its place:
// tracks by name, and entries that a moment can make certain. sums are those of the pool's classes
// before that draw. For due see [Pool.Divide].
func (at Place) CertainIn(draws uint64, due uint32, sums []uint64, moment func(entry uint32) bool, name func(track int) string) (in uint64, unless []string) {
	pt, t := at.Pool, at.Track()
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

// instead returns the groups of tracks that a draw can hit in place of a certain one: those before it
// that have nothing in common with it, alone or several together.
func (pt *Pool) instead(track int, due uint32, sums []uint64) (groups uint32) {
	own := pt.Tracks[track].Group | due
	for set := uint32(1); set < pt.Tracks[track].Group; set++ { // each set of tracks before it: their bits are the lowest
		if pt.Among(sums, set|due, 0) == 0 || pt.Among(sums, set|own, 0) > 0 {
			continue
		}
		needed := true // each track of the set is; to keep others from a draw, several must be certain
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

// DueAlone returns the group that the draw of a request for one must hit, or 0: see [Pool.Due].
func (pt *Pool) DueAlone(sums []uint64) uint32 {
	for k := range pt.Must {
		g := &pt.Must[k]
		if _, missing := g.rest(0, 1, 0); missing > 0 && pt.Among(sums, g.group, 0) > 0 {
			return g.group
		}
	}
	return 0
}

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
	pt.Constant = sums
}

// setTrackKind is a SetTrack: it sets what a player's track has counted.
type setTrackKind struct{ plain }

func (setTrackKind) barred() bool  { return false }
func (setTrackKind) alone() string { return "an atomic group cannot set a track" }

// same does not compare who asks.
func (setTrackKind) same(c, o *Command) bool {
	a, b := c.Set, o.Set
	return a.Track == b.Track && a.Draws == b.Draws && a.Reason == b.Reason
}

func (setTrackKind) form(c *Command) *CommandError {
	switch s := c.Set; {
	case s.Track == "" || len(s.Track) > MaxTrackName:
		return malformed("track", "%d bytes long; want the name of a track, 1 to %d bytes", len(s.Track), MaxTrackName)
	case s.Draws > catalog.MaxTrackDraws:
		return malformed("draws", "%d; at most %d are allowed", s.Draws, catalog.MaxTrackDraws)
	case s.Reason == "" || len(s.Reason) > MaxReason:
		return malformed("reason", "%d bytes long; want a reason of 1 to %d bytes", len(s.Reason), MaxReason)
	}
	return checkLength("by", c.Set.By, MaxBy)
}

func (setTrackKind) resolve(f *Finder, c *Command) *CommandError {
	if f.Track[c.Set.Track] == nil {
		return f.unknown("track", "track", c.Set.Track)
	}
	return nil
}

func (setTrackKind) write(r *drawing, c *Command) {
	r.turn(c.who(&r.Sight))
	r.w.Change(store.Set, r.t.Track[c.Set.Track].Counter, c.Set.Draws)
}

func (setTrackKind) ask(r *effects, c *Command, _ Status) {
	writeText(r.w, c.Set.Track)
	r.w.Uint(c.Set.Draws)
	writeText(r.w, c.Set.By)
	writeText(r.w, c.Set.Reason)
}

func (setTrackKind) asked(a *asked, c *Command) {
	c.Set = &TrackSet{Track: a.text("the name of a track", MaxTrackName)}
	c.Set.Draws = a.Uint("the draws", catalog.MaxTrackDraws)
	c.Set.By = a.text("who asks", MaxBy)
	c.Set.Reason = a.text("the reason", MaxReason)
}

// TrackSet is what a SetTrack asks for.
type TrackSet struct {
	Track  string // its name: see [ShownName]
	Draws  uint64 // since the last hit; at most catalog.MaxTrackDraws
	By     string // who asks; may be empty
	Reason string
}
