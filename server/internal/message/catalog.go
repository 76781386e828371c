package message

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Item makes the message of an item.
func Item(it *catalog.Item) *kujiv1.Item {
	m := &kujiv1.Item{
		Id: it.ID, Kind: kujiv1.ItemKind(it.Kind), Name: it.Name,
		LastsMs: it.Lasts, Extend: it.Extend, Family: it.Family, Most: it.Most, MailMs: it.Beyond.Mail,
	}
	if g := it.Grows; g != (catalog.Grows{}) {
		m.Grows = &kujiv1.Growth{EveryMs: g.Every, By: g.By, To: g.To}
	}
	if it.Most > 0 {
		m.Beyond = kujiv1.ItemBeyond(it.Beyond.Do) + kujiv1.ItemBeyond_ITEM_BEYOND_REFUSE
	}
	return m
}

// ItemsNamed adds the items that a message names: in fields named item, and what a player must lack.
func ItemsNamed(m protoreflect.Message, to map[string]bool) {
	if c, ok := m.Interface().(*kujiv1.Condition); ok {
		for _, item := range c.GetLacks() {
			to[item] = true
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.StringKind && f.Name() == "item":
			to[v.String()] = true
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				ItemsNamed(v.List().Get(i).Message(), to)
			}
		default:
			ItemsNamed(v.Message(), to)
		}
		return true
	})
}

// Plan makes the message of a plan.
func Plan(p *kuji.Plan) *kujiv1.Plan {
	out := &kujiv1.Plan{Unchanged: p.Unchanged, Version: p.Version, Kept: uint32(p.Kept), Changes: make([]*kujiv1.Change, len(p.Changes))}
	for i := range p.Changes {
		c := &p.Changes[i]
		to := &kujiv1.Change{
			// The contract's names are the engine's in capitals; a test checks all of them.
			Kind: kujiv1.ChangeKind(kujiv1.ChangeKind_value["CHANGE_KIND_"+strings.ToUpper(string(c.Kind))]),
			Id:   c.ID, Entry: c.Entry, Drawn: c.Drawn, Warning: c.Warning, Text: c.Text,
			Settings: Each(c.Settings, func(s *kuji.Setting) *kujiv1.Setting {
				return &kujiv1.Setting{Name: s.Name, Before: s.Before, After: s.After}
			}),
		}
		if c.Entry != "" {
			if to.Kind != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_ADDED {
				to.Before = &kujiv1.EntryStock{Unlimited: c.UnlimitedBefore, Stock: c.StockBefore, Left: c.LeftBefore}
			}
			if to.Kind != kujiv1.ChangeKind_CHANGE_KIND_ENTRY_REMOVED {
				to.After = &kujiv1.EntryStock{Unlimited: c.UnlimitedAfter, Stock: c.StockAfter, Left: c.LeftAfter}
			}
		}
		out.Changes[i] = to
	}
	return out
}

// Proposal returns the message for a catalog that waits.
func Proposal(p *kuji.ProposalView) *kujiv1.Proposal {
	return &kujiv1.Proposal{
		Number: p.Number, OverVersion: p.Over, Hash: p.Hash[:], Name: p.Name, Position: p.Position, TimeUnixMs: p.Time,
		By: p.Note.By, Reason: p.Note.Reason, Metadata: p.Note.Metadata, Bytes: p.Bytes,
	}
}
