package rules

// What version 5 of the rules decided otherwise. The verifier needs it to decide version 5's epochs
// again, byte for byte; nothing new is decided by it.
//
//	a track whose group those before it had missed was passed over, even if it was certain
//	a player could use a shared code that a reward gave to this very player
const version5 = 5

// Version is the version of the rules: of what they make of the state and of the epoch's random
// values. Each epoch-begin has it. Only the verifier reads it: see [Versions].
const Version = 6

// Versions returns the versions that this build can decide again, the newest first. Recovery, followers
// and feeds read logs of all versions: they carry out effects.
func Versions() []uint8 { return []uint8{Version, version5} }

// NewVersion is New for the rules of an older version, from 5 on.
func NewVersion(version uint8, state State, t *Tables) *Rules {
	r := New(state, t)
	r.old = version <= version5
	return r
}

// divide5 is [Pool.Divide] as it was.
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
