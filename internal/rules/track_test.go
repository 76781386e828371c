package rules_test

import (
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// tracks returns what the catalog's tracks have counted for a player.
func (r *realm) tracks(player string) []view.Track {
	r.t.Helper()
	_, counters, _, _ := r.state.Holdings(player)
	all, open := look.Tracks(r.rules.Tables(), counters)
	if open {
		look.Promise(r.rules, player, r.now, all)
	}
	return all
}

func (r *realm) wantTracks(player string, want ...view.Track) {
	r.t.Helper()
	if got := r.tracks(player); !reflect.DeepEqual(got, want) {
		r.t.Errorf("%s's tracks are %v, want %v", player, got, want)
	}
}

// TestTracks: what clients see of tracks, and what administrators set.
func TestTracks(t *testing.T) {
	r := newRealm(t, 1)
	const items = `{kuji: 1, items: {gem: {kind: currency}}, start: {gem: 5}, pools: {`
	const entries = `entries: [{id: ssr, weight: 0.000001}, {id: sr, weight: 0.000001}, {id: r, weight: 99}]`
	r.put(items + `
		first: {limits: [{per: day, draws: 100}], pity: {ssr: {certain: 10, share: five}, sr: {certain: 4}, r: {rising: {from: 2, by: 1}}}, ` + entries + `},
		second: {pity: {ssr: {certain: 8, share: five}}, ` + entries + `}}}`)

	r.wantTracks("ann")
	r.want(draw("ann", "first", 2), rules.OK, "")
	// Of two pools the sooner one counts. A track that was just hit is not listed, and neither is the
	// counter of a limit.
	r.wantTracks("ann", view.Track{Name: "five", Draws: 2, CertainIn: 6, Pool: "second"}, view.Track{Name: "first/sr", Draws: 2, CertainIn: 2, Unless: "five"})

	// A track that is set decides the next draw.
	r.want(setTrack("ann", "five", 9, "ops", "lost in a crash of the game"), rules.OK, "")
	r.wantTracks("ann", view.Track{Name: "five", Draws: 9, CertainIn: 1}, view.Track{Name: "first/sr", Draws: 2, CertainIn: 2, Unless: "five"})
	ev := r.want(draw("ann", "first", 1), rules.OK, "")
	if got := r.lines(&ev); len(got) != 1 || got[0] != "take first/ssr" {
		t.Errorf("the draw after a track was set to 9 of 10 takes %v", got)
	}
	r.wantTracks("ann", view.Track{Name: "first/sr", Draws: 3, CertainIn: 1, Unless: "five"}, view.Track{Name: "first/r", Draws: 1})
	r.want(setTrack("ann", "first/sr", 0, "", "done"), rules.OK, "")
	r.wantTracks("ann", view.Track{Name: "first/r", Draws: 1})

	// Who was never seen joins, but not by asking for a track that there is not.
	r.want(setTrack("bob", "five", 7, "", "moved from the old server"), rules.OK, "")
	r.wantTracks("bob", view.Track{Name: "five", Draws: 7, CertainIn: 1, Pool: "second"})
	if n := r.holds("bob", "gem"); n != 0 {
		t.Errorf("bob joined with %d gems, want none: he has not come", n)
	}
	r.want(setTrack("cat", "ssr", 1, "", "x"), rules.Refused, "track")
	r.want(setTrack("cat", "first/five", 1, "", "x"), rules.Refused, "track")
	if _, ok := r.state.Player("cat"); ok {
		t.Error("cat joined by a command that failed")
	}

	// Only tracks of the catalog in force are seen. They count on when they come back.
	r.put(items + `third: {pity: {sr: {share: five}}, ` + entries + `}}}`)
	r.wantTracks("bob", view.Track{Name: "five", Draws: 7})
	r.wantTracks("ann")
	r.want(setTrack("ann", "first/sr", 1, "", "x"), rules.Refused, "track")
	r.put(items + `first: {pity: {r: {certain: 2}}, ` + entries + `}}}`)
	r.wantTracks("ann", view.Track{Name: "first/r", Draws: 1, CertainIn: 1})
	r.wantTracks("bob")

	again := r.replay()
	again.wantTracks("ann", r.tracks("ann")...)
}
