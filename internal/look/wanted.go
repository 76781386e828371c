package look

import (
	"math"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Wanted says which events a reader wants: those about a player, about a pool, or both. It compares
// numbers, so that other events need not be read.
type Wanted struct {
	Player, Pool       string // "": all
	PlayerNum, PoolNum uint32 // NotNumbered: it has none yet
	OwnNum             uint32 // of the name itself, if it is another name of the player
}

// WantedOf returns a Wanted of a player and a pool whose numbers are not known yet.
func WantedOf(player, pool string) Wanted {
	return Wanted{Player: player, Pool: pool, PlayerNum: NotNumbered, PoolNum: NotNumbered, OwnNum: NotNumbered}
}

// NotNumbered is the number of a player or a pool that has none yet.
const NotNumbered = math.MaxUint32

// All reports whether every event is wanted.
func (w *Wanted) All() bool { return w.Player == "" && w.Pool == "" }

// Match reports whether an event that was applied is wanted: whether its request, or one member of it,
// names the player, as giver or receiver, and the pool; or whether it settles what is due for the player, pays a rank of
// theirs, closes a round for them or ends a hold of theirs. An event that cannot be read is wanted: its reader says what is wrong.
func (w *Wanted) Match(ev *store.Event) bool {
	kind := rules.Kind(ev.Kind)
	switch {
	case w.All():
		return true
	case kind == rules.KindCatalog, kind == rules.KindClock, kind == rules.KindCodes, kind.Proposes():
		return false
	case kind == rules.KindDue:
		due, err := rules.DueOf(ev)
		switch {
		case err != nil:
			return true
		case due.Round != 0, due.Ranking.Count > 0, len(due.Holds) > 0:
			return w.touched(ev)
		}
		return w.Pool == "" && (slices.Contains(due.Players, w.PlayerNum) || slices.Contains(due.Players, w.OwnNum))
	case kind == rules.KindSettle, kind == rules.KindReroll, kind == rules.KindCancelRound, kind == rules.KindConfirm, kind == rules.KindCancel, kind == rules.KindReverse:
		return w.touched(ev)
	case kind != rules.KindTransfer && kind != rules.KindAtomic && kind != rules.KindHold && !w.matchPlayer(ev.Player):
		return false
	case kind == rules.KindRedeem && w.Pool != "":
		used, err := rules.RedeemedOf(ev)
		return err != nil || ev.Status == 0 && used.Drew && used.Pool == w.PoolNum
	}
	cmd, _, err := rules.CommandOf(w, ev)
	return err != nil || w.match(&cmd)
}

// touched reports whether effects of an event that names no player are about the one who is wanted.
func (w *Wanted) touched(ev *store.Event) bool {
	if w.Pool != "" || w.PlayerNum == NotNumbered {
		return false
	}
	var e store.Effect
	effects := ev.Changes()
	for effects.Next(&e) {
		if e.Verb == store.Player && e.N == w.PlayerNum {
			return true
		}
		if num, _, ok := rules.FreedIn(&e); ok && num == w.PlayerNum {
			return true
		}
	}
	return effects.Err() != nil
}

func (w *Wanted) CounterName(uint32) string { return "/count/x/quest" } // no reader asks for one

func (w *Wanted) matchPlayer(r store.Ref) bool {
	return w.Player == "" || r.ID == w.Player || r.ID == "" && (r.Num == w.PlayerNum || r.Num == w.OwnNum)
}

func (w *Wanted) match(cmd *rules.Command) bool {
	for i := range cmd.Members {
		if w.match(&cmd.Members[i]) {
			return true
		}
	}
	return len(cmd.Members) == 0 && (w.Player == "" || w.Player == cmd.Player || w.Player == cmd.To) && (w.Pool == "" || w.Pool == cmd.Pool)
}

// somethingElse is the id of everything that is not wanted. It is longer than any id.
var somethingElse = strings.Repeat("-", store.MaxID+1)

// A Wanted is a [rules.Numbered]. Players that the event itself adds have a number by now.

func (w *Wanted) Players() uint32 { return math.MaxUint32 }
func (w *Wanted) PlayerID(num uint32) string {
	if num == w.OwnNum {
		num = w.PlayerNum
	}
	return w.idOf(num, w.PlayerNum, w.Player)
}

func (w *Wanted) PoolID(num uint32) string { return w.idOf(num, w.PoolNum, w.Pool) }
func (w *Wanted) ItemID(uint32) string     { return somethingElse }

func (w *Wanted) idOf(num, wanted uint32, id string) string {
	if num == wanted && id != "" {
		return id
	}
	return somethingElse
}
