package message

import (
	"strings"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Event makes the message of an event.
func Event(rec *kuji.Record) *kujiv1.Event {
	m := &kujiv1.Event{
		Position: rec.Position, Index: uint32(rec.Index), TimeUnixMs: rec.Time, Kind: rec.Kind, RequestId: rec.ID,
		Status:  kujiv1.Status(kujiv1.Status_value["STATUS_"+strings.ToUpper(rec.Status)]),
		Subject: rec.Subject, Limit: Limit(rec.Limit), Lacks: Each(rec.Lacks, lack), CatalogVersion: rec.CatalogVersion, NewCatalogVersion: rec.NewCatalogVersion,
		Player: rec.Player, To: rec.To, Pool: rec.Pool, Count: uint32(rec.Count), List: rec.List, Number: rec.Number, Pay: rec.Pay,
		Items: Stacks(rec.Items), Outcomes: Each(rec.Outcomes, outcome), Paid: Stacks(rec.Paid),
		Track: rec.Track, Draws: rec.Draws, By: rec.By, Reason: rec.Reason, Metadata: rec.Metadata,
		Members: Each(rec.Members, Event), Level: uint32(rec.Level), Bytes: uint32(rec.Bytes), Last: rec.Last,
		Changes: Each(rec.Changes, func(c *kuji.BalanceChange) *kujiv1.BalanceChange {
			return &kujiv1.BalanceChange{Player: c.Player, Item: c.Item, Delta: c.Delta, Balance: c.Balance}
		}),
	}
	if c := rec.Clock; c != nil {
		m.Clock = &kujiv1.EventClock{ToUnixMs: c.To, By: c.By, Reason: c.Reason}
	}
	return m
}
