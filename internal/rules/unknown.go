package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

// A command that names a pool, an item or a track that the catalog in force does not have is
// refused before it is decided. It leaves no event, so that neither a typing error nor a draw that
// comes before its catalog uses up a request id.

// Unknown returns what a command names that the catalog in force does not have, or nil. The command
// must have passed Check.
func (r *Rules) Unknown(cmd *Command) *CommandError {
	for i := range cmd.Members {
		if err := r.Unknown(&cmd.Members[i]); err != nil {
			err.Field = fmt.Sprintf("members[%d].%s", i, err.Field)
			return err
		}
	}
	switch cmd.Kind {
	case KindDraw:
		pt := r.findPool(cmd.Pool)
		if pt == nil {
			return r.unknown("pool", "pool", cmd.Pool)
		}
		if pt.Config.Internal {
			return malformed("pool", "%q is internal: only other pools draw from it", cmd.Pool)
		}
		if cmd.Pay != "" {
			if _, ok := r.t.ItemNum[cmd.Pay]; !ok {
				return r.unknown("pay", "item", cmd.Pay)
			}
		}
	case KindGrant, KindConsume, KindTransfer:
		return r.unknownItem(cmd.Items)
	case KindRegister:
		if r.t.Version == 0 { // it would come too early for the starting grants
			return malformed("player", "%q cannot register: the realm has no catalog yet", cmd.Player)
		}
	case KindSetTrack:
		if r.t.Track[cmd.Set.Track] == nil {
			return r.unknown("track", "track", cmd.Set.Track)
		}
	}
	return nil
}

func (r *Rules) unknownItem(items []catalog.Stack) *CommandError {
	for i := range items {
		if _, ok := r.t.ItemNum[items[i].Item]; !ok {
			return r.unknown(fmt.Sprintf("items[%d].item", i), "item", items[i].Item)
		}
	}
	return nil
}

func (r *Rules) unknown(field, noun, id string) *CommandError {
	if r.t.Version == 0 {
		return malformed(field, "there is no %s %q: the realm has no catalog yet", noun, id)
	}
	return malformed(field, "there is no %s %q in catalog version %d", noun, id, r.t.Version)
}
