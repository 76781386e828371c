package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// itemsKind is what Grant, Consume and Transfer have in common: they move items.
type itemsKind struct{ noted }

func (itemsKind) form(c *Command) *CommandError { return checkStacks(c.Items) }

func (itemsKind) unknown(r *checks, c *Command) *CommandError {
	for i := range c.Items {
		if id := c.Items[i].Item; !r.t.Has(id) {
			return r.unknown(fmt.Sprintf("items[%d].item", i), "item", id)
		}
	}
	return nil
}

func (itemsKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(len(c.Items)))
	for i := range c.Items {
		r.w.Uint(uint64(r.t.ItemNum[c.Items[i].Item]))
		r.w.Uint(c.Items[i].Quantity)
	}
}

func (itemsKind) asked(a *asked, c *Command) {
	for range a.Uint("the number of items", MaxStacks) {
		it := catalog.Stack{Item: a.name("an item", a.state.ItemID)}
		it.Quantity = a.Uint("a quantity", MaxQuantity)
		c.Items = append(c.Items, it)
	}
}

type (
	grantKind    struct{ itemsKind }
	consumeKind  struct{ itemsKind }
	transferKind struct{ itemsKind }
)

func (k transferKind) form(c *Command) *CommandError {
	if err := checkPlayer("to", c.To); err != nil {
		return err
	}
	if c.Player == c.To {
		return malformed("to", "giver and receiver are both %q; they must differ", c.To)
	}
	return k.itemsKind.form(c)
}

func (k transferKind) ask(r *effects, c *Command, status Status) {
	r.w.Ref(r.playerRef(c.To, status))
	k.itemsKind.ask(r, c, status)
}

func (k transferKind) asked(a *asked, c *Command) {
	c.To = a.player(a.Ref("the receiver"))
	k.itemsKind.asked(a, c)
}

// move checks that items can move from one player to another. Either may be noPlayer.
func (r *checks) move(from, to uint32, items []catalog.Stack) failure {
	for i := range items {
		item, q := r.t.ItemNum[items[i].Item], items[i].Quantity
		if from != noPlayer && !r.spend(from, item, q) {
			return r.lacking(from, len(items)-i, func(k int) (item uint32, need uint64) {
				return r.t.ItemNum[items[i+k].Item], items[i+k].Quantity
			})
		}
		if to != noPlayer && !r.gain(to, item, q) {
			return failure{BalanceOverflow, item}
		}
	}
	return failure{}
}

func (grantKind) check(r *checks, cmd *Command) failure {
	player, f := r.come(cmd.Player)
	if f.status != OK {
		return f
	}
	return r.move(noPlayer, player, cmd.Items)
}

func (grantKind) write(r *drawing, cmd *Command, _ int) {
	r.arrive(r.see(cmd.Player))
	r.writeItems(store.Gain, cmd.Items)
}

func (consumeKind) check(r *checks, cmd *Command) failure {
	return r.move(r.see(cmd.Player), noPlayer, cmd.Items)
}

func (consumeKind) write(r *drawing, cmd *Command, _ int) {
	r.turn(r.see(cmd.Player))
	r.writeItems(store.Spend, cmd.Items)
}

func (transferKind) check(r *checks, cmd *Command) failure {
	return r.move(r.see(cmd.Player), r.see(cmd.To), cmd.Items)
}

func (transferKind) write(r *drawing, cmd *Command, _ int) {
	r.turn(r.see(cmd.Player))
	r.writeItems(store.Spend, cmd.Items)
	r.turn(r.see(cmd.To))
	r.writeItems(store.Gain, cmd.Items)
}

func (r *effects) writeItems(v store.Verb, items []catalog.Stack) {
	for i := range items {
		r.change(v, r.t.ItemNum[items[i].Item], items[i].Quantity)
	}
}
