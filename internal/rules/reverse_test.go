package rules_test

import (
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

func reverse(of string) rules.Command {
	return rules.Command{Kind: rules.KindReverse, Hands: rules.Hands{Hold: &rules.HoldOf{Of: of}}, Note: &rules.Note{Reason: "a chargeback"}}
}

func named(id string, c rules.Command) rules.Command {
	c.ID = id
	return c
}

// missing returns what an event says was missing.
func (r *realm) missing(ev *store.Event) (n uint64) {
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		if e.Verb == store.Beyond && e.Bytes[0] == byte(store.Missing) {
			n += e.Value
		}
	}
	return n
}

// TestReverse: a grant or a draw is undone once, as far as what it gave is still there.
func TestReverse(t *testing.T) {
	r := newRealm(t, 1)
	r.codes("list", "one")
	r.put(holds)
	r.want(named("g", grant("ann", of("coin", 100))), rules.OK, "")
	r.want(named("d", draw("ann", "shop", 2)), rules.OK, "")
	r.want(reverse("nothing"), rules.UnknownRequest, "")
	r.want(named("c", consume("ann", of("coin", 1))), rules.OK, "")
	r.want(reverse("c"), rules.NotReversible, "")
	r.want(named("poor", draw("bob", "shop", 1)), rules.InsufficientItems, "coin")
	r.want(reverse("poor"), rules.NotReversible, "")

	ev := r.want(reverse("d"), rules.OK, "") // the prizes go back, and the price
	r.wantHas("ann", "prize", 0, 0)
	r.wantHas("ann", "coin", 99, 0)
	if n := r.missing(&ev); n != 0 || r.leftOf("shop", "prize") != 4 {
		t.Errorf("%d are missing, %d left", n, r.leftOf("shop", "prize"))
	}
	r.want(reverse("d"), rules.AlreadyReversed, "")

	r.want(named("e", draw("ann", "shop", 2)), rules.OK, "")
	r.want(transfer("ann", "bob", of("prize", 1)), rules.OK, "")
	ev = r.want(reverse("e"), rules.OK, "") // one prize is gone, so only the other one is taken
	r.wantHas("ann", "prize", 0, 0)
	r.wantHas("ann", "coin", 79, 0)
	if n := r.missing(&ev); n != 1 || r.leftOf("shop", "prize") != 2 {
		t.Errorf("%d are missing, %d left", n, r.leftOf("shop", "prize"))
	}
	ev = r.want(reverse("g"), rules.OK, "")
	r.wantHas("ann", "coin", 0, 0)
	if n := r.missing(&ev); n != 21 {
		t.Errorf("%d are missing", n)
	}

	r.want(named("code", draw("ann", "codes", 1)), rules.OK, "")
	r.want(reverse("code"), rules.OK, "")
	r.want(named("b1", draw("ann", "box", 2)), rules.OK, "") // empties the box, which is filled again
	r.want(reverse("b1"), rules.OK, "")
	r.wantHas("ann", "sword", 0, 0)
	r.want(named("h", heldFor("h", false, grant("ann", of("coin", 1)))), rules.OK, "")
	r.want(reverse("h"), rules.NotReversible, "")
	r.replay()
}
