package kuji

import (
	"context"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// MaxRanks is the most ranks that a read returns at a time.
const MaxRanks = 1000

// A read of the state returns as many.
var (
	_ [store.MaxRanks - MaxRanks]struct{}
	_ [MaxRanks - store.MaxRanks]struct{}
)

// DefaultRanks is how many ranks a read returns that does not say it.
const DefaultRanks = 100

// RanksQuery says which part of a standing is wanted: of the counter's period that runs, or of the last one that
// ended.
type RanksQuery struct {
	Counter string
	Ended   bool   // the standing of the last period that ended, which changes no more
	Player  string // those around a player, who is in the middle; empty: those from a rank on
	From    uint64 // the first rank, without Player; 0 means 1
	Most    int    // how many at most, up to MaxRanks; 0 means DefaultRanks
}

// RanksView is part of a standing, as of one position: the highest values first, of equal ones who reached it first.
type RanksView struct {
	Of    uint64 // how many players are in the standing, each with a value above 0
	Ranks []RankView
	// Ends is when the period ends, in Unix milliseconds. 0: never, or it has ended, or none runs.
	Ends     int64
	Position uint64 // a position that covers all this
}

// RankView is a player in a standing.
type RankView struct {
	Rank   uint64 `json:"rank"` // from 1
	Player string `json:"player"`
	Value  uint64 `json:"value"`
}

// Ranks returns part of the standing of a counter that ranks players, once it is durable. CodeNotFound: the
// catalog in force has no such counter, or the player is not in the standing. CodeInvalid: the counter ranks nobody.
func (r *Realm) Ranks(ctx context.Context, q RanksQuery) (RanksView, error) {
	var v RanksView
	if q.Most == 0 {
		q.Most = DefaultRanks
	}
	switch {
	case q.Most < 0 || q.Most > MaxRanks:
		return v, errf(CodeInvalid, "most", "%d ranks; 1 to %d are allowed, or 0 for %d", q.Most, MaxRanks, DefaultRanks)
	case len(q.Player) > MaxID:
		return v, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(q.Player), MaxID)
	case q.Player != "" && q.From != 0:
		return v, errf(CodeInvalid, "from", "%d; want none with a player, who is in the middle", q.From)
	}
	if err := r.w.gate.answers(ctx); err != nil {
		return v, err
	}
	var wrong error
	_, last, err := r.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		v, last, current, wrong = ranks(r.w, t, &q)
		return last, current
	})
	if err == nil {
		err = wrong
	}
	v.Position = last
	return value(v, err)
}

// ranks is Ranks without waiting.
func ranks(w *writer, t *rules.Tables, q *RanksQuery) (v RanksView, last uint64, current bool, err error) {
	c := t.CounterByID[q.Counter]
	switch {
	case c == nil:
		return v, 0, true, errf(CodeNotFound, "counter", "there is no counter %q in catalog version %d of realm %q", q.Counter, t.Version, w.name)
	case !c.Config.Ranked.Is:
		return v, 0, true, errf(CodeInvalid, "counter", "%q ranks nobody; want one that is ranked", q.Counter)
	}
	var at rules.Frame
	there := false
	seen, current := w.look(t, func(now int64) {
		w.rules.Look("", now, func(s *rules.Sight) {
			if at, v.Ends, there = c.Standing(s); q.Ended {
				v.Ends = 0
				at, there = c.LastStanding(s)
			}
		})
	})
	if !current {
		return v, 0, false, nil
	}
	var ranking store.Ranking
	found := there
	switch {
	case !there:
	case q.Player != "":
		ranking, _, found = w.state.ReadAround(at.Order, q.Player, (q.Most-1)/2, q.Most/2)
		found = found && ranking.Period == at.Period
	default:
		if ranking, current = w.state.ReadTop(at.Order, at.Period, max(q.From, 1), q.Most); !current {
			return v, 0, false, nil // a catalog is being put in force that ranks nobody
		}
	}
	if q.Player != "" && !found {
		return v, max(seen, ranking.Last), true, errf(CodeNotFound, "player", "%q is not in the standing of counter %q", q.Player, q.Counter)
	}
	v.Of, v.Ranks = ranking.Of, make([]RankView, len(ranking.Ranks))
	for i, of := range ranking.Ranks {
		v.Ranks[i] = RankView{of.Rank, ranking.IDs[i], of.Value}
	}
	return v, max(seen, ranking.Last), true, nil
}
