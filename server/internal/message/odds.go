package message

import (
	"math/big"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Odds makes the message of odds.
func Odds(o *kuji.Odds) *kujiv1.Odds {
	return &kujiv1.Odds{
		Status: Status(o.Status), Subject: o.Subject, CatalogVersion: o.CatalogVersion, Position: o.Position, Count: uint32(o.Count),
		Outcomes: Each(o.Outcomes, func(e *kuji.OutcomeOdds) *kujiv1.OutcomeOdds {
			return &kujiv1.OutcomeOdds{Pool: e.Pool, Entry: e.Entry, Chance: fraction(e.Chance), Expected: fraction(e.Expected)}
		}),
		Items: Each(o.Items, func(it *kuji.ItemOdds) *kujiv1.ItemOdds {
			return &kujiv1.ItemOdds{Item: it.Item, Expected: fraction(it.Expected)}
		}),
		Pity: Each(o.Pity, func(t *kuji.TrackOdds) *kujiv1.TrackOdds {
			return &kujiv1.TrackOdds{Pool: t.Pool, Track: t.Track, Draws: t.Draws, CertainIn: t.CertainIn, Unless: t.Unless}
		}),
	}
}

// maxFraction is the longest text of an exact fraction in an answer, in bytes.
const maxFraction = 200

// fraction returns nil for nil.
func fraction(x *big.Rat) *kujiv1.Fraction {
	if x == nil {
		return nil
	}
	out := &kujiv1.Fraction{}
	out.Value, _ = x.Float64()
	if x.Num().BitLen()+x.Denom().BitLen() < 4*maxFraction { // more than three bits for each digit
		if text := x.RatString(); len(text) <= maxFraction {
			out.Exact = text
		}
	}
	return out
}
