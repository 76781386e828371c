package rules

// What version 5 of the rules decided otherwise than this one does, so that its epochs are decided
// again byte for byte. Nothing new is decided by it.
//
//	a track whose group those before it had missed was passed over, even if it was certain
//	a player could use a code to share that a reward gave to this very player

// Version numbers what decisions depend on: how they use the epoch's random values, and what rules make
// of the state. It stands in each epoch-begin. Only the verifier asks for it: see [Versions].
const Version = 6

// Versions returns those by which this build can decide again, the newest first. Recovery, followers and
// feeds read logs of all versions: they carry out effects.
func Versions() []uint8 { return []uint8{Version, version5} }

// version5 is the number of the last version that decided so.
const version5 = 5

// NewVersion is New for the rules of an older version. The versions from 5 on can be decided again.
func NewVersion(version uint8, state State, t *Tables) *Rules {
	r := New(state, t)
	r.old = version <= version5
	return r
}

// divide5 is divide as it was.
func (pt *Pool) divide5(tracks []Track, due uint32, sums []uint64, f Facts, each func(hit, missed uint32, part uint64) bool) {
	sum, whole, missed := pt.Among(sums, 0, 0), max(pt.Whole, 1), uint32(0)
	left := pt.Parts(sum)
	for i := range tracks {
		t := &tracks[i]
		n, group := t.next(f), t.Group|due
		weight := pt.Among(sums, group, missed)
		if weight == 0 {
			continue
		}
		if t.isCertain(n) {
			each(group, missed, left)
			return
		}
		part := min(weight*whole+t.added(n, whole)*sum, left)
		if !each(group, missed, part) {
			return
		}
		left -= part
		missed |= t.Group
	}
	if due != 0 && pt.Among(sums, due, missed) == 0 {
		missed = 0
	}
	each(due, missed, left)
}
