package history

import (
	"context"
	"errors"
	"slices"

	"github.com/kuji-dev/kuji"
)

// When a player is forgotten, the feed has the player's names no more, in no event. So the history takes the names out
// of its rows, and is then built again from the log: as far back as that goes, no row leads to the player. What is older
// loses the player too, and is no longer proven.

// errForgotten ends a follower: the history must be built again.
var errForgotten = errors.New("a player was forgotten: the history is built again")

// forget takes out of a record what is said of players who were forgotten. It returns the names of the one whom the
// record's event has forgotten.
func forget(rec *kuji.Record) (names []string) {
	if rec.Kind == "forget" && rec.Status == "ok" {
		names = rec.Names
		rec.Player, rec.Names, rec.Changes = "", nil, nil
	}
	nobody := func(c kuji.BalanceChange) bool { return c.Player == "" }
	if slices.ContainsFunc(rec.Changes, nobody) {
		rec.Changes = slices.DeleteFunc(slices.Clone(rec.Changes), nobody)
	}
	return names
}

// forgotten returns the numbers of the players whom some events have forgotten, as far as the history has them.
// Events up to one are done already.
func (w *writer) forgotten(ctx context.Context, some []event, upto *int64) (all []int64, err error) {
	for i := range some {
		seq := placeOf(&some[i].rec).seq()
		if len(some[i].forgets) == 0 || seq <= *upto {
			continue
		}
		*upto = seq
		if err := w.players.look(ctx, w.tables, some[i].forgets); err != nil {
			return nil, err
		}
		for _, name := range some[i].forgets {
			if n, ok := w.players.known[name]; ok {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// drop removes what the tables have of some players.
func (t tables) drop(ctx context.Context, players []int64) error {
	for _, n := range players {
		for _, sql := range []string{
			"UPDATE events SET sum = NULL WHERE seq IN (SELECT seq FROM changes WHERE player = $1)",
			"UPDATE events SET player = NULL, sum = NULL WHERE player = $1",
			"DELETE FROM changes WHERE player = $1",
			"DELETE FROM holdings WHERE player = $1",
			"DELETE FROM players WHERE id = $1",
		} {
			if _, err := t.exec(ctx, sql, n); err != nil {
				return err
			}
		}
	}
	return nil
}
