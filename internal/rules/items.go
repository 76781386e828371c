package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Grant, Consume and Transfer move items that the request names.

var (
	grantKind = kind{
		name: "grant", request: true, note: true, form: checkStacks, unknown: unknownItem,
		check: (*checks).checkGrant, write: (*drawing).writeGrant, ask: askItems, asked: (*asked).items,
	}
	consumeKind = kind{
		name: "consume", request: true, note: true, form: checkStacks, unknown: unknownItem,
		check: (*checks).checkConsume, write: (*drawing).writeConsume, ask: askItems, asked: (*asked).items,
	}
	transferKind = kind{
		name: "transfer", request: true, note: true, unknown: unknownItem,
		form: func(c *Command) *CommandError {
			if err := checkPlayer(c.To); err != nil {
				err.Field = "to"
				return err
			}
			if c.Player == c.To {
				return malformed("to", "giver and receiver are both %q; they must differ", c.To)
			}
			return checkStacks(c)
		},
		check: (*checks).checkTransfer, write: (*drawing).writeTransfer,
		ask: func(r *effects, c *Command, status Status) {
			r.w.Ref(r.playerRef(c.To, status))
			askItems(r, c, status)
		},
		asked: func(a *asked, c *Command) {
			c.To = a.player(a.Ref("the receiver"))
			a.items(c)
		},
	}
)

// askItems writes the items that a command names.
func askItems(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(len(c.Items)))
	for i := range c.Items {
		r.w.Uint(uint64(r.t.ItemNum[c.Items[i].Item]))
		r.w.Uint(c.Items[i].Quantity)
	}
}

// items reads what askItems wrote.
func (a *asked) items(c *Command) {
	for range a.Uint("the number of items", MaxStacks) {
		it := catalog.Stack{Item: a.name("an item", a.state.ItemID)}
		it.Quantity = a.Uint("a quantity", MaxQuantity)
		c.Items = append(c.Items, it)
	}
}

// unknownItem says which item a command names that the catalog in force does not have.
func unknownItem(r *checks, c *Command) *CommandError {
	for i := range c.Items {
		if id := c.Items[i].Item; !r.t.Has(id) {
			return r.unknown(fmt.Sprintf("items[%d].item", i), "item", id)
		}
	}
	return nil
}

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

func (r *drawing) writeGrant(cmd *Command, _ int) {
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

func (r *drawing) writeConsume(cmd *Command, _ int) {
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

func (r *drawing) writeTransfer(cmd *Command, _ int) {
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
