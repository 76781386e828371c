package rules_test

import (
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// stopped carries out a command that must reach a limit, and returns what the event says of it.
func (r *realm) stopped(cmd rules.Command) view.Limit {
	r.t.Helper()
	ev := r.do(cmd)
	limit, _, err := rules.WhyOf(&ev)
	if err != nil || rules.Status(ev.Status) != rules.LimitReached {
		r.t.Fatalf("%+v ends %v, %v, want a limit", cmd, rules.Status(ev.Status), err)
	}
	return limit
}

// limits returns where a player stands, as a reader finds it.
func (r *realm) limits(player string) []view.PoolLimit {
	_, counters, _, _ := r.state.Holdings(player)
	limits, _ := look.LimitsUsed(r.rules.Tables(), counters, r.now, r.state.Back())
	return limits
}

// TestLimitStates: what is left of each kind of limit, and from when there is more.
func TestLimitStates(t *testing.T) {
	r := newRealm(t, 1)
	r.put(limited("{per: forever, draws: 50}, {per: day, draws: 9}, {per: week, draws: 11}, {per: window, window: 1h, draws: 5}"))
	all := func(player string) []view.Limit {
		_, counters, _, _ := r.state.Holdings(player)
		states, known := look.Limits(r.rules.Tables(), "p", counters, r.now, r.state.Back())
		if !known {
			t.Fatal("no pool p")
		}
		return states
	}
	state := func(per catalog.Per, draws, left uint64, resets int64) view.Limit {
		s := view.Limit{Per: per, Draws: draws, Left: left, Resets: resets}
		if per == catalog.PerWindow {
			s.Window = hour
		}
		return s
	}
	want := func(player string, forever, day_, week, window view.Limit) {
		t.Helper()
		states := []view.Limit{forever, day_, week, window}
		if got := all(player); !reflect.DeepEqual(got, states) {
			t.Errorf("%s stands at\n%+v, want\n%+v", player, got, states)
		}
		var used []view.PoolLimit
		for _, s := range states {
			if s.Left < s.Draws {
				used = append(used, view.PoolLimit{Pool: "p", Limit: s})
			}
		}
		if got := r.limits(player); !reflect.DeepEqual(got, used) {
			t.Errorf("%s has used\n%+v, want\n%+v", player, got, used)
		}
	}
	r.now = monday + 10*hour
	want("ann", state(1, 50, 50, 0), state(2, 9, 9, 0), state(3, 11, 11, 0), state(4, 5, 5, 0))
	r.want(draw("ann", "p", 2), rules.OK, "")
	r.now += 1000
	r.want(draw("ann", "p", 2), rules.OK, "")
	want("ann", state(1, 50, 46, 0), state(2, 9, 5, monday+day), state(3, 11, 7, monday+7*day), state(4, 5, 1, monday+11*hour))
	if got, want := r.stopped(draw("ann", "p", 2)), state(4, 5, 1, monday+11*hour); got != want {
		t.Errorf("stopped by %+v, want %+v", got, want)
	}
	// A group sees what its members before have used.
	if got, want := r.stopped(group(draw("ann", "p", 1), draw("ann", "p", 1))), state(4, 5, 0, monday+11*hour); got != want {
		t.Errorf("a group is stopped by %+v, want %+v", got, want)
	}
	r.now = monday + 11*hour // the first two count no more
	want("ann", state(1, 50, 46, 0), state(2, 9, 5, monday+day), state(3, 11, 7, monday+7*day), state(4, 5, 3, monday+11*hour+1000))
	r.setBack(monday + 10*hour) // the stamps go back, what counts does not
	want("ann", state(1, 50, 46, 0), state(2, 9, 5, monday+day), state(3, 11, 7, monday+7*day), state(4, 5, 3, monday+10*hour+1000))
	r.put(limited("{per: forever, draws: 3}, {per: day, draws: 9}"))
	if got := all("ann"); !reflect.DeepEqual(got, []view.Limit{state(1, 3, 0, 0), state(2, 9, 5, monday+day)}) {
		t.Errorf("after the limit was lowered ann stands at %+v", got)
	}
	if _, known := look.Limits(r.rules.Tables(), "nope", nil, r.now, 0); known {
		t.Error("a pool that is not in the catalog has limits")
	}
	r.replay()
}

// TestLacks: what the player has and what the command needs, of every item of which there is too
// little, and of the first price that could have been paid.
func TestLacks(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}, gold: {}, dust: {}}, start: {gem: 3, dust: 7}, pools: {
		p: {price: [{gem: 2, gold: 4, dust: 1}, {gold: 9}], max_count: 100, entries: [{id: e, weight: 1}]},
		q: {price: {gem: 2}, free: {per: day, draws: 1}, bundles: [{draws: 9, price: {gem: 17}}, {draws: 10, price: {gem: 16}}],
			max_count: 100, entries: [{id: e, weight: 1}]}}}`)
	r.want(register("cat"), rules.OK, "")
	for _, c := range []struct {
		cmd rules.Command
		all []rules.Lack
	}{
		{draw("ann", "p", 1), []rules.Lack{{Item: 1, Have: 0, Need: 4}}},
		{draw("ann", "p", 3), []rules.Lack{{Item: 0, Have: 3, Need: 6}, {Item: 1, Have: 0, Need: 12}}},
		{rules.Command{Kind: rules.KindDraw, Player: "ann", Pool: "p", Count: 2, Pay: "gold"}, []rules.Lack{{Item: 0, Have: 3, Need: 4}, {Item: 1, Have: 0, Need: 8}}},
		// One draw of each is free: what was tried first is a bundle of the rest, or the rest one by one.
		{draw("ann", "q", 10), []rules.Lack{{Item: 0, Have: 3, Need: 17}}},
		{draw("ann", "q", 9), []rules.Lack{{Item: 0, Have: 3, Need: 16}}},
		{draw("ann", "q", 12), []rules.Lack{{Item: 0, Have: 3, Need: 22}}},
		{consume("ann", of("dust", 7), of("gem", 4)), []rules.Lack{{Item: 2, Have: 0, Need: 7}, {Item: 0, Have: 0, Need: 4}}}, // she has not come
		{consume("cat", of("dust", 7), of("gem", 4), of("gold", 1)), []rules.Lack{{Item: 0, Have: 3, Need: 4}, {Item: 1, Have: 0, Need: 1}}},
		{transfer("cat", "bob", of("dust", 8)), []rules.Lack{{Item: 2, Have: 7, Need: 8}}},
		{group(consume("cat", of("gem", 1)), consume("cat", of("gem", 3))), []rules.Lack{{Item: 0, Have: 2, Need: 3}}},
	} {
		ev := r.do(c.cmd)
		_, got, err := rules.WhyOf(&ev)
		if err != nil || rules.Status(ev.Status) != rules.InsufficientItems || !reflect.DeepEqual(got, c.all) {
			t.Errorf("%+v: %v, %+v, want %+v", c.cmd, err, got, c.all)
		}
	}
	r.replay()
}

// TestWhyIsRead: bytes that no command writes are refused.
func TestWhyIsRead(t *testing.T) {
	for _, why := range []string{"", "\x01", "\x01\x00\x05\x06\x00", "\x01\x00\x05\x01\x00\x00"} {
		if _, _, err := rules.WhyOf(&store.Event{Status: uint8(rules.LimitReached), Why: []byte(why)}); err == nil {
			t.Errorf("limit %x is read", why)
		}
	}
	for _, why := range []string{"", "\x41", "\x01\x00\x00"} {
		if _, _, err := rules.WhyOf(&store.Event{Status: uint8(rules.InsufficientItems), Why: []byte(why)}); err == nil {
			t.Errorf("lacks %x are read", why)
		}
	}
	if _, _, err := rules.WhyOf(&store.Event{Status: uint8(rules.SoldOut), Why: []byte{0}}); err == nil {
		t.Error("a status that says nothing more says more")
	}
}
