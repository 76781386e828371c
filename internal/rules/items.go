package rules

import (
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// itemsKind is what Grant, Consume and Transfer have in common: they move items.
type itemsKind struct{ noted }

func (itemsKind) form(c *Command) *CommandError { return checkStacks(c.Items) }

func (itemsKind) resolve(f *Finder, c *Command) *CommandError {
	c.stacks = c.stacks[:0]
	for i := range c.Items {
		it := &c.Items[i]
		num, ok := f.ItemNum[it.Item]
		if !ok {
			return f.unknown(fmt.Sprintf("items[%d].item", i), "item", it.Item)
		}
		c.stacks = append(c.stacks, Stack{num, it.Quantity})
	}
	return nil
}

func (itemsKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(len(c.stacks)))
	b := r.w.Buf // the processor keeps it in registers
	for _, st := range c.stacks {
		b = store.AppendUint(store.AppendUint(b, uint64(st.Item)), st.Quantity)
	}
	r.w.Buf = b
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
	r.w.Ref(r.ref(c.whom(&r.Sight), c.To, status))
	k.itemsKind.ask(r, c, status)
}

func (k transferKind) asked(a *asked, c *Command) {
	c.To = a.player(a.Ref("the receiver"))
	k.itemsKind.asked(a, c)
}

// move checks that items can move from one player to another. Either may be noPlayer.
func (r *checks) move(from, to uint32, items []Stack) failure {
	if from == noPlayer && r.alone && len(r.t.lots)+len(r.t.caps) == 0 && r.fitTogether(items) {
		return failure{}
	}
	r.moves, r.moved = from != noPlayer && to != noPlayer, r.moved[:0]
	f := r.moveEach(from, to, items)
	r.moves = false
	return f
}

func (r *checks) moveEach(from, to uint32, items []Stack) failure {
	for i, st := range items {
		if from != noPlayer && !r.spend(from, st.Item, st.Quantity) {
			return r.lacking(len(items)-i, func(k int) Lack {
				st := items[i+k]
				return Lack{st.Item, r.balance(from, st.Item), st.Quantity}
			})
		}
		if from != noPlayer {
			r.takeUnits(from, st.Item, st.Quantity)
		}
		if to == noPlayer {
			continue
		}
		if f := r.gets(to, st); f.status != OK {
			return f
		}
	}
	return failure{}
}

// gets checks that a player has room for some of an item, and adds it.
func (r *checks) gets(player uint32, st Stack) failure {
	if c := r.t.CapOf(st.Item); c != nil {
		if f := r.fill(c, player, st.Quantity, true); f.status != OK {
			return f
		}
	} else if !r.gain(player, st.Item, st.Quantity) {
		return failure{BalanceOverflow, st.Item}
	}
	switch {
	case !r.placeUnits(player, st.Item, st.Quantity):
		return failure{TooManyLots, st.Item}
	}
	return failure{}
}

func (grantKind) check(r *checks, cmd *Command) failure {
	player, f := r.come(cmd)
	if f.status != OK {
		return f
	}
	if !r.alone {
		r.each(r.t.gains, player, cmd.stacks, 1)
	}
	return r.move(noPlayer, player, cmd.stacks)
}

func (grantKind) write(r *drawing, cmd *Command) {
	r.arrive(cmd.who(&r.Sight))
	r.writeItems(store.Gain, cmd.stacks)
	r.each(r.t.gains, r.player, cmd.stacks, 1)
}

func (consumeKind) check(r *checks, cmd *Command) failure {
	player := cmd.who(&r.Sight)
	if !r.alone {
		r.each(r.t.consumes, player, cmd.stacks, 1)
	}
	return r.move(player, noPlayer, cmd.stacks)
}

func (consumeKind) write(r *drawing, cmd *Command) {
	r.turn(cmd.who(&r.Sight))
	r.writeItems(store.Spend, cmd.stacks)
	r.each(r.t.consumes, r.player, cmd.stacks, 1)
}

func (transferKind) check(r *checks, cmd *Command) failure {
	return r.move(cmd.who(&r.Sight), cmd.whom(&r.Sight), cmd.stacks)
}

func (transferKind) write(r *drawing, cmd *Command) {
	if len(r.t.lots) > 0 {
		r.moveItems(cmd.who(&r.Sight), cmd.whom(&r.Sight), cmd.stacks)
		return
	}
	r.turn(cmd.who(&r.Sight))
	r.writeItems(store.Spend, cmd.stacks)
	r.turn(cmd.whom(&r.Sight))
	r.writeItems(store.Gain, cmd.stacks)
}

func (r *effects) writeItems(v store.Verb, items []Stack) {
	if (len(r.t.Watched) == 0 || r.alone && r.t.asking == nil) && len(r.t.lots)+len(r.t.Growths)+len(r.t.caps) == 0 { // nothing later asks for the balances
		b := r.w.Buf
		for _, st := range items {
			b = store.AppendChange(b, v, st.Item, st.Quantity)
		}
		r.w.Buf = b
		return
	}
	for _, st := range items {
		r.change(v, st.Item, st.Quantity)
	}
}

// ofStake names what is wrong with items as requests do.
func ofStake(err *CommandError) *CommandError {
	if err != nil {
		err.Field = "stake" + strings.TrimPrefix(err.Field, "items")
	}
	return err
}
