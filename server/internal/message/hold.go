package message

import (
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// DefaultHolds is how many holds an answer has if the request does not say it.
const DefaultHolds = 100

// Hold makes the message of a hold, or nil of none.
func Hold(v *kuji.HoldView) *kujiv1.Hold {
	if v == nil {
		return nil
	}
	return &kujiv1.Hold{
		Hold: v.ID, State: kujiv1.HoldState(kujiv1.HoldState_value["HOLD_STATE_"+strings.ToUpper(v.State)]), Refund: v.Refund,
		AskedUnixMs: v.Asked, UntilUnixMs: v.Until, EndedUnixMs: v.Ended, By: v.By,
		Parts: Each(v.Parts, func(p *kuji.HeldPart) *kujiv1.HeldPart {
			return &kujiv1.HeldPart{Kind: p.Kind, Player: p.Player, To: p.To, Pool: p.Pool, Draws: p.Draws,
				Takes: Each(p.Takes, held), Gives: Each(p.Gives, held), Codes: uint32(p.Codes)}
		}),
	}
}

// Holds makes the messages of a page of holds: of at most so many, and of fewer if they have many parts. If a player is
// named, they have those parts that are about the player. left is how many more there are.
func Holds(all []kuji.HoldView, player string, most int) (some []*kujiv1.Hold, left int) {
	lines := 0
	for i := range all {
		v := all[i]
		if player != "" {
			v.Parts = slices.DeleteFunc(slices.Clone(v.Parts), func(p kuji.HeldPart) bool { return p.Player != player && p.To != player })
		}
		lines += v.Size()
		if i == most || i > 0 && lines > most*holdLines {
			return some, len(all) - i
		}
		some = append(some, Hold(&v))
	}
	return some, 0
}

func held(h *kuji.HeldView) *kujiv1.Stack { return &kujiv1.Stack{Item: h.Item, Quantity: h.Quantity} }

func givenOf(res *kuji.Result) *kujiv1.Given {
	g := res.Given()
	if len(g.Items)+len(g.Codes) == 0 {
		return nil
	}
	return given(&g)
}

func given(g *kuji.Given) *kujiv1.Given {
	if g == nil {
		return nil
	}
	return &kujiv1.Given{Items: Stacks(g.Items), Codes: Each(g.Codes, code)}
}

func freed(f *kuji.Freed) *kujiv1.Freed { return &kujiv1.Freed{Player: f.Player, Hold: f.Hold} }
