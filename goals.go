package kuji

import (
	"context"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
)

// GoalsView is all that a page of quests shows of a player, as of one moment.
type GoalsView struct {
	Counters []CounterView // of the catalog in force, the realm's too, those at 0 left out
	Quests   []QuestView   // in the order of the catalog
	// Configs are the same quests, as in the catalog. They are read-only.
	Configs []catalog.Quest
	Free    []PoolLimit // what is left of the free draws of every pool that has some

	CatalogVersion uint64
	Position       uint64 // of the newest batch then: nothing newer is in the view
}

// Goals returns where the counters of the catalog in force stand for a player, how far the player is in its
// quests, and what is left of free draws, once that is durable. A player who was never seen has what a new one
// would have.
func (r *Realm) Goals(ctx context.Context, player string) (v GoalsView, err error) {
	if len(player) > MaxID {
		return v, errf(CodeInvalid, "player", "%d bytes long; at most %d are allowed", len(player), MaxID)
	}
	if err := r.w.gate.answers(ctx); err != nil {
		return v, err
	}
	t, _, err := r.w.read(ctx, func(t *rules.Tables) (last uint64, current bool) {
		return goalsOf(r.w, t, player, func(g *GoalsView) {
			v = *g
			_, held, _, _ := r.w.state.Holdings(player)
			clock := r.w.clockView()
			v.Free = look.FreeOfAll(t, held, clock.Time, clock.Back)
		})
	})
	v.CatalogVersion = t.Version
	for _, q := range t.Quests {
		v.Configs = append(v.Configs, *q.Config)
	}
	return value(v, err)
}

// goalsOf calls each with what counters and quests of the catalog in force say of a player, under the realm's lock.
func goalsOf(w *writer, t *rules.Tables, player string, each func(*GoalsView)) (seen uint64, current bool) {
	w.mu.Lock()
	defer w.unlock()
	if w.rules.Tables() != t {
		return 0, false
	}
	v := GoalsView{Position: w.state.Position()}
	if !t.Together() { // then nobody else's events matter
		_, v.Position, _ = w.state.HoldingOf(player, "")
	}
	v.Counters, v.Quests = look.Goals(w.rules, player, w.clockView().Time)
	each(&v)
	return v.Position, true
}
