package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Grant, Consume and Transfer move items that the request names.

func (r *checks) checkGrant(cmd *Command) failure {
	player, f := r.come(cmd.Player)
	if f.status != OK {
		return f
	}
	for i := range cmd.Items {
		if item := r.t.ItemNum[cmd.Items[i].Item]; !r.gain(player, item, cmd.Items[i].Quantity) {
			return failure{BalanceOverflow, item}
		}
	}
	return failure{}
}

func (r *drawing) writeGrant(cmd *Command) {
	r.arrive(r.see(cmd.Player))
	r.writeItems(store.Gain, cmd.Items)
}

func (r *checks) checkConsume(cmd *Command) failure {
	player := r.see(cmd.Player)
	for i := range cmd.Items {
		if item := r.t.ItemNum[cmd.Items[i].Item]; !r.spend(player, item, cmd.Items[i].Quantity) {
			return r.tooPoor(player, cmd.Items[i:])
		}
	}
	return failure{}
}

func (r *drawing) writeConsume(cmd *Command) {
	r.turn(r.see(cmd.Player))
	r.writeItems(store.Spend, cmd.Items)
}

func (r *checks) checkTransfer(cmd *Command) failure {
	from, to := r.see(cmd.Player), r.see(cmd.To)
	for i := range cmd.Items {
		item, q := r.t.ItemNum[cmd.Items[i].Item], cmd.Items[i].Quantity
		if !r.spend(from, item, q) {
			return r.tooPoor(from, cmd.Items[i:])
		}
		if !r.gain(to, item, q) {
			return failure{BalanceOverflow, item}
		}
	}
	return failure{}
}

func (r *drawing) writeTransfer(cmd *Command) {
	r.turn(r.see(cmd.Player))
	r.writeItems(store.Spend, cmd.Items)
	r.turn(r.see(cmd.To))
	r.writeItems(store.Gain, cmd.Items)
}

// tooPoor is the failure of a player who holds too few of the first of some items, and perhaps of
// others.
func (r *accounts) tooPoor(player uint32, items []catalog.Stack) failure {
	r.lacks = r.lacks[:0]
	for i := range items {
		r.lack(player, r.t.ItemNum[items[i].Item], items[i].Quantity)
	}
	return failure{InsufficientItems, r.lacks[0].Item}
}

func (r *effects) writeItems(v store.Verb, items []catalog.Stack) {
	for i := range items {
		r.change(v, r.t.ItemNum[items[i].Item], items[i].Quantity)
	}
}
