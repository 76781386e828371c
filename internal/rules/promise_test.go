package rules_test

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// randomTracks writes a pool with random tracks over random groups of few entries, some of which have
// conditions, luck, little stock or moments.
func randomTracks(pick picker) string {
	var b strings.Builder
	names := []string{"a", "b", "c", "d", "e"}[:2+pick("entries", 4)]
	tracks := []string{"t0", "t1", "t2", "t3"}[:1+pick("tracks", 4)]
	b.WriteString("{kuji: 1, items: {key: {}, prize: {}}, pools: {p: {max_count: 20, pity: {")
	for i, t := range tracks {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: {of: %s", t, list(pick, names...))
		certain := []int{0, 2, 3, 5, 9}[pick("certain", 5)]
		if certain > 0 {
			fmt.Fprintf(&b, ", certain: %d", certain)
		}
		if pick("rising", 3) == 0 {
			from := 1 + pick("from", 3)
			if certain > 0 {
				from = min(from, certain)
			}
			fmt.Fprintf(&b, ", rising: {from: %d, by: %s}", from, []string{"5", "40", "100", "[10, 0, 99.5]"}[pick("by", 4)])
		}
		b.WriteString("}")
	}
	b.WriteString("}, ")
	if pick("guarantee", 4) == 0 {
		fmt.Fprintf(&b, "guarantee: [{draws: %d, of: %s}], ", 1+pick("draws", 4), list(pick, names...))
	}
	if pick("timed", 4) == 0 {
		b.WriteString("starts: 2023-11-12T00:00:00Z, ends: 2023-11-20T00:00:00Z, ")
	}
	timed := strings.Contains(b.String(), "ends:")
	b.WriteString("entries: [")
	for _, name := range names {
		if timed && pick("moment", 4) == 0 {
			fmt.Fprintf(&b, "{id: %s, moments: {count: %d, spread: even}}, ", name, 1+pick("count", 50))
			continue
		}
		fmt.Fprintf(&b, "{id: %s, weight: %d", name, []int{1, 1, 3, 50}[pick("weight", 4)])
		switch pick("stock", 4) {
		case 0:
			fmt.Fprintf(&b, ", stock: %d", pick("left", 3))
		case 1:
			b.WriteString(", stock: 9")
		}
		switch pick("condition", 8) {
		case 0:
			b.WriteString(", when: {holds: {key: 1}}")
		case 1:
			b.WriteString(", when: {lacks: [key]}")
		case 2:
			fmt.Fprintf(&b, ", when: {pity: {%s: %d}}", tracks[pick("of", len(tracks))], 1+pick("from", 4))
		case 3:
			b.WriteString(", unique: true, reward: {items: {prize: 1}}")
		case 4:
			fmt.Fprintf(&b, ", luck: {pity: %s, weights: [{from: %d, weight: %d}]}", tracks[pick("of", len(tracks))], 1+pick("from", 4), 7*pick("luck", 2))
		}
		b.WriteString("}, ")
	}
	b.WriteString("{id: z, weight: 100}]}}}")
	return b.String()
}

// promises holds the odds of a player's next draw, and every certainty that is displayed, against each
// other, and returns the entries that the draw can take.
func promises(r *realm, m *model, player string) (can map[string]bool) {
	r.t.Helper()
	p := m.pool("p")
	o := r.odds("p", player)
	if o.Status != rules.OK {
		r.t.Fatalf("a draw now: %v", o.Status)
	}
	can = map[string]bool{}
	sum := func(groups ...string) *big.Rat { // of entries in any of some tracks, or by their ids
		all := new(big.Rat)
		for i := range p.Entries {
			e := &p.Entries[i]
			if slices.ContainsFunc(groups, func(name string) bool {
				name = strings.TrimPrefix(name, "p/")
				return name == e.ID || slices.ContainsFunc(p.Tracks, func(t catalog.Track) bool { return t.Name == name && in(e, t.Of) })
			}) {
				all.Add(all, o.Outcomes[i].Chance)
			}
		}
		return all
	}
	total := new(big.Rat)
	for _, e := range o.Outcomes {
		can[e.Entry] = e.Chance.Sign() > 0
		total.Add(total, e.Chance)
	}
	if one := big.NewRat(1, 1); total.Cmp(one) != 0 {
		r.t.Fatalf("the chances add up to %v", total)
	}
	seen := map[string]view.Track{}
	for _, d := range r.tracks(player) {
		seen[d.Name] = d
	}
	for i, t := range o.Pity {
		var others []string
		if t.Unless != "" {
			others = strings.Split(t.Unless, ", ")
		}
		if got := sum(append(others, t.Track)...); t.CertainIn == 1 && got.Cmp(total) != 0 {
			r.t.Fatalf("%s is certain in 1 unless %q, and comes at %v", t.Track, others, got)
		}
		due := p.Tracks[i].Certain > 0 && t.Draws+1 >= uint64(p.Tracks[i].Certain) && len(p.Guarantees) == 0 &&
			!slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return e.Moments.Count > 0 })
		if due && t.CertainIn == 0 && sum(t.Track).Sign() > 0 {
			r.t.Fatalf("%s is due and can come, but is not said to be certain", t.Track)
		}
		if due && len(others) == 0 && sum(t.Track).Sign() > 0 && sum(t.Track).Cmp(total) != 0 {
			r.t.Fatalf("%s is due, nothing is in its way, and it comes at %v", t.Track, sum(t.Track))
		}
		for _, name := range others { // only what has nothing in common with it, or not together with others
			if slices.ContainsFunc(p.Tracks[i:], func(t catalog.Track) bool { return t.Name == name }) {
				r.t.Fatalf("%s is certain unless %s, which is not before it", t.Track, name)
			}
		}
		if t.Draws == 0 {
			continue
		}
		var shown []string
		for _, name := range others {
			if slices.ContainsFunc(p.Tracks, func(t catalog.Track) bool { return t.Name == name }) {
				name = "p/" + name
			}
			shown = append(shown, name)
		}
		want := view.Track{Name: "p/" + t.Track, Draws: t.Draws, CertainIn: t.CertainIn, Unless: strings.Join(shown, ", ")}
		if d := seen[want.Name]; d != want {
			r.t.Fatalf("the player's track is %+v, odds say %+v", d, want)
		}
	}
	return can
}

// TestPromises holds odds, draws and every displayed "certain in" against each other, for random
// tracks over random groups.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		yaml := randomTracks(pick)
		c, err := catalog.Parse([]byte(yaml))
		if err != nil {
			rt.Skip(err)
		}
		r, m := newRealm(rt, rapid.Uint64().Draw(rt, "seed")), newModel()
		r.put(yaml)
		m.put(c)
		p := m.pool("p")
		if pick("has a key", 2) == 0 {
			m.step(r, grant("ann", of("key", 1)))
		} else {
			m.step(r, grant("ann", of("prize", uint64(1+pick("prizes", 2)))))
		}
		for range 8 {
			for i := range p.Tracks {
				if t := &p.Tracks[i]; pick("set", 2) == 0 {
					n := uint64(pick("draws", 12))
					r.want(setTrack("ann", "p/"+t.Name, n, "", "test"), rules.OK, "")
					m.since["ann "+counter(p, t.Name)] = n
				}
			}
			if pick("time", 3) == 0 {
				r.now += 7_200_000
			}
			foretold(r, m, p, pick)
			can := promises(r, m, "ann")
			drawn := maps.Clone(m.drawn)
			m.step(r, draw("ann", "p", 1))
			for i := range p.Entries {
				id := p.Entries[i].ID
				if m.drawn["p/"+id] > drawn["p/"+id] && !can[id] {
					rt.Fatalf("%s was drawn, which has no chance\n%s", id, yaml)
				}
			}
			m.step(r, draw("ann", "p", 1+pick("count", 3)))
		}
	})
}

// foretold sets one track to the last draw before it is certain, and holds what was said before
// against what is said then.
func foretold(r *realm, m *model, p *catalog.Pool, pick picker) {
	i := pick("track", len(p.Tracks))
	t := &p.Tracks[i]
	said := r.odds("p", "ann").Pity[i]
	if said.CertainIn < 2 {
		return
	}
	at := "ann " + counter(p, t.Name)
	was := m.since[at]
	r.want(setTrack("ann", "p/"+t.Name, uint64(t.Certain)-1, "", "test"), rules.OK, "")
	now := r.odds("p", "ann").Pity[i]
	if now.CertainIn != 1 || now.Unless != said.Unless || said.CertainIn != uint64(t.Certain)-was {
		r.t.Fatalf("at %d draws, %+v was said; at %d, %+v", was, said, t.Certain-1, now)
	}
	promises(r, m, "ann")
	r.want(setTrack("ann", "p/"+t.Name, was, "", "test"), rules.OK, "")
}

// TestCertainInEveryOrder: a promise of certainty holds in every order of tracks, whatever their groups
// have in common.
func TestCertainInEveryOrder(t *testing.T) {
	for name, c := range map[string]struct {
		pity string
		set  map[string]uint64
		want string // the chances of five, four and three
		text string // what is certain in the next draw
	}{
		"inside, after":         {"four-plus: {of: [five, four], certain: 10}, five: {certain: 90, rising: {from: 74, by: 6}}", map[string]uint64{"five": 89}, "1 0 0", "five"},
		"inside, before":        {"five: {certain: 90, rising: {from: 74, by: 6}}, four-plus: {of: [five, four], certain: 10}", map[string]uint64{"five": 89}, "1 0 0", "five"},
		"both, around first":    {"four-plus: {of: [five, four], certain: 10}, five: {certain: 90}", map[string]uint64{"five": 89, "four-plus": 9}, "1 0 0", "four-plus five"},
		"around, after":         {"five: {certain: 90}, four-plus: {of: [five, four], certain: 10}", map[string]uint64{"four-plus": 9}, "3/500 497/500 0", "four-plus"},
		"rising, inside, after": {"four-plus: {of: [five, four], certain: 10}, five: {certain: 90, rising: {from: 74, by: 6}}", map[string]uint64{"five": 73}, "33/500 51/1000 883/1000", ""},
		"counting, before":      {"five: {}, four: {}, any: {of: [five, four], certain: 10}", map[string]uint64{"any": 9}, "3/500 497/500 0", "any"},
		"equal":                 {"soft: {of: [five], rising: {from: 2, by: 10}}, hard: {of: [five], certain: 90}", map[string]uint64{"soft": 5, "hard": 89}, "1 0 0", "hard"},
		"across":                {"low: {of: [four, three], certain: 20}, high: {of: [five, four], certain: 10}", map[string]uint64{"high": 9}, "949/1000 51/1000 0", "high"},
		"both, across":          {"low: {of: [four, three], certain: 20}, high: {of: [five, four], certain: 10}", map[string]uint64{"low": 19, "high": 9}, "0 1 0", "low high"},
		"apart":                 {"five: {certain: 90}, four: {certain: 10}", map[string]uint64{"four": 9}, "3/500 497/500 0", "four unless five"},
		"both, apart":           {"five: {certain: 90}, four: {certain: 10}", map[string]uint64{"five": 89, "four": 9}, "1 0 0", "five four unless five"},
		"apart, the other way":  {"four: {certain: 10}, five: {certain: 90}", map[string]uint64{"five": 89}, "949/1000 51/1000 0", "five unless four"},
		"three, two by two":     {"x: {of: [five, four], certain: 9}, y: {of: [four, three], certain: 9}, z: {of: [five, three], certain: 9}", map[string]uint64{"x": 8, "y": 8, "z": 8}, "0 1 0", "x y z unless x, y"},
		"one of three misses":   {"x: {of: [five, four]}, y: {of: [four, three], certain: 9}, z: {of: [five, three], certain: 9}", map[string]uint64{"y": 8, "z": 8}, "0 0 1", "y z"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(`{kuji: 1, items: {gem: {}}, pools: {p: {pity: {` + c.pity + `}, entries: [{id: five, weight: 0.6}, {id: four, weight: 5.1}, {id: three, weight: 94.3}]}}}`)
			for track, n := range c.set {
				r.want(setTrack("ann", "p/"+track, n, "", "test"), rules.OK, "")
			}
			o := r.odds("p", "ann")
			got, text := []string{}, []string{}
			for _, e := range o.Outcomes {
				got = append(got, e.Chance.RatString())
			}
			for _, tr := range o.Pity {
				switch {
				case tr.CertainIn == 1 && tr.Unless != "":
					text = append(text, tr.Track+" unless "+tr.Unless)
				case tr.CertainIn == 1:
					text = append(text, tr.Track)
				}
			}
			if strings.Join(got, " ") != c.want || strings.Join(text, " ") != c.text {
				t.Errorf("chances %v, want %s; certain %q, want %q", got, c.want, text, c.text)
			}
		})
	}
}

// TestNeverAgain: nothing is certain that can never be given to this player again.
func TestNeverAgain(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {hero: {}}, pools: {p: {pity: {hero: {certain: 5}}, entries: [{id: hero, weight: 1, unique: true, reward: {items: {hero: 1}}}, {id: z, weight: 1000000}]}}}`)
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.wantTracks("ann", view.Track{Name: "p/hero", Draws: 1, CertainIn: 4})
	r.want(grant("ann", of("hero", 1)), rules.OK, "")
	r.wantTracks("ann", view.Track{Name: "p/hero", Draws: 1})
	if o := r.odds("p", "ann"); o.Pity[0] != (view.TrackOdds{Pool: "p", Track: "hero", Draws: 1}) {
		t.Errorf("%+v", o.Pity[0])
	}
}

// TestCompleteCollection: who has everything of a collection draws nothing more, and the odds say so.
func TestCompleteCollection(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {a: {}, b: {}}, pools: {p: {pity: {a: {certain: 5}}, entries: [{id: a, weight: 1, unique: true, reward: {items: {a: 1}}}, {id: b, weight: 4, unique: true, reward: {items: {b: 1}}}]}}}`)
	r.want(draw("ann", "p", 2), rules.OK, "")
	r.want(draw("ann", "p", 1), rules.SoldOut, "p")
	o := r.odds("p", "ann")
	if o.Status != rules.SoldOut || len(o.Items) > 0 || o.Pity[0].CertainIn != 0 {
		t.Errorf("%v, gives %v, %+v", o.Status, o.Items, o.Pity)
	}
	for _, e := range o.Outcomes {
		if e.Chance.Sign() != 0 {
			t.Errorf("%s has a chance of %v", e.Entry, e.Chance)
		}
	}
}

// TestOddsOfRequests: what a request for several draws gives is what draws come to, with guarantees,
// tracks, stock and inner pools.
func TestOddsOfRequests(t *testing.T) {
	for name, c := range map[string]struct {
		pools string
		count int
		want  string // of the first entry, on average in the request; empty: only sampled
	}{
		"a guarantee":         {`p: {guarantee: [{draws: 2, of: [five, four]}], entries: [{id: five, weight: 1}, {id: four, weight: 3}, {id: z, weight: 6}]}`, 2, "29/100"}, // 2/10 + 6/10 * (1/4 - 1/10)
		"no full set":         {`p: {guarantee: [{draws: 3, of: [five, four]}], entries: [{id: five, weight: 1}, {id: four, weight: 3}, {id: z, weight: 6}]}`, 2, "1/5"},
		"the rare rate alone": {`p: {pity: {five: {}}, guarantee: [{draws: 2, of: [five, four]}], entries: [{id: five, weight: 1}, {id: four, weight: 3}, {id: z, weight: 6}]}`, 2, "1/5"},
		"without":             {`p: {entries: [{id: five, weight: 1}, {id: z, weight: 9}]}`, 10, "1"},
		"pity":                {`p: {pity: {five: {certain: 2}}, entries: [{id: five, weight: 1}, {id: z, weight: 1}]}`, 2, "5/4"},
		"draws count":         {`p: {entries: [{id: x, weight: 1, when: {counters: {c: 1}}}, {id: z, weight: 1}]}}, counters: {c: {of: {draws: p}}`, 3, "1"},
		"draws in a row":      {`p: {entries: [{id: x, weight: 1, when: {counters: {c: 2}}}, {id: z, weight: 1}]}}, counters: {c: {of: {draws: p}, streak: day}`, 3, "0"},
		"draws and a cap":     {`p: {entries: [{id: x, weight: 1, when: {counters: {c: {min: 1, max: 2}}}}, {id: z, weight: 1}]}}, counters: {c: {of: {draws: p}, most: {per: day, count: 2}}`, 5, "2"},
		"draws and entries": {`p: {max_count: 6, guarantee: [{draws: 3, of: [five]}], entries: [{id: five, weight: 1, luck: {counter: c, weights: [{from: 3, weight: 4}, {from: 5, weight: 0}]}}, {id: q, weight: 3, reward: {pool: q}}, {id: z, weight: 9, when: {counters: {d: {max: 2}}}}]},
			q: {internal: true, entries: [{id: x, weight: 1}, {id: y, weight: 2, when: {counters: {c: 2}}}]}}, counters: {c: {of: {draws: p, entries: q/x}}, d: {of: {draws: p, entries: [p/q, q/x, q/y]}, distinct: 3}`, 6, ""},
		"everything": {`p: {max_count: 12, pity: {five: {certain: 5}, four: {of: [four, five], certain: 2}}, guarantee: [{draws: 5, of: [five, four]}, {draws: 6, at_least: 2, of: [few, four]}], entries: [
			{id: five, weight: 1, reward: {pool: q}}, {id: four, weight: 3}, {id: few, weight: 4, stock: 2}, {id: z, weight: 60}]},
			q: {internal: true, pity: {x: {certain: 2}}, entries: [{id: x, weight: 1}, {id: y, weight: 2}]}`, 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 3)
			r.put(`{kuji: 1, items: {gem: {}}, pools: {` + c.pools + `}}`)
			s, err := odds.Stand(r.rules, "p", "", c.count, r.now)
			if err != nil {
				t.Fatal(err)
			}
			o, err := s.Odds(func() bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			if got := o.Outcomes[0].Expected.RatString(); c.want != "" && got != c.want {
				t.Errorf("%s on average, want %s", got, c.want)
			}
			for _, e := range o.Outcomes {
				if e.Chance != nil {
					t.Errorf("%s has a chance", e.Entry)
				}
			}
			if c.want != "" {
				return
			}
			const n = 30_000
			cmd, src, got := draw("ann", "p", c.count), rand.NewPCG(7, 7), map[string][3]float64{}
			for range n {
				_, ev := r.decide(&cmd, src)
				one := map[string]float64{}
				for _, line := range r.lines(&ev) {
					one[strings.TrimPrefix(line, "take ")]++
				}
				for what, times := range one {
					got[what] = [3]float64{got[what][0] + 1, got[what][1] + times, got[what][2] + times*times}
				}
				r.rules.Reset(r.rules.Tables()) // the event is not applied
			}
			for _, e := range o.Outcomes {
				r.wantMean(e.Pool+"/"+e.Entry, got[e.Pool+"/"+e.Entry], n, float(e.Expected))
			}
		})
	}
}

// TestVersion5: older epochs are decided as they were: a group that earlier tracks had missed was passed
// over, and a player could use an invitation of their own.
func TestVersion5(t *testing.T) {
	for _, version := range []uint8{5, 6} {
		r := newRealm(t, 1)
		r.put(`{kuji: 1, items: {gem: {}}, pools: {
			give: {entries: [{id: invite, weight: 1000000, reward: {code: invites}}, {id: z, weight: 0.000001}]},
			p: {redeem: {code: invites, uses: 5}, entries: [{id: z, weight: 1}]},
			q: {pity: {low: {of: [five, four], certain: 90}, five: {certain: 90}}, entries: [{id: five, weight: 0.0001}, {id: four, weight: 0.0001}, {id: z, weight: 100}]}}}`)
		r.rules = rules.NewVersion(version, r.state, r.rules.Tables())
		r.want(setTrack("ann", "q/five", 89, "", "test"), rules.OK, "")
		if got := r.takes(draw("ann", "q", 1), 1, nil); got["q/five"] != int(version-5) {
			t.Errorf("version %d takes %v", version, got)
		}
		r.imports("invites", 2)
		r.rules = rules.NewVersion(version, r.state, r.rules.Tables())
		r.want(draw("ann", "give", 1), rules.OK, "")
		want := map[uint8]rules.Status{5: rules.OK, 6: rules.CodeRedeemed}[version]
		if ev := r.do(redeem("ann", "invites0")); rules.Status(ev.Status) != want {
			t.Errorf("version %d: an invitation of one's own ends %v, want %v", version, rules.Status(ev.Status), want)
		}
	}
}
