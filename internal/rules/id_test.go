package rules_test

import (
	"bytes"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// TestNewIDs: what a terminal takes for an order, and what is no UTF-8, is refused in new ids. A player
// who came before that was refused goes on.
func TestNewIDs(t *testing.T) {
	r := newRealm(t, 1)
	r.put("{kuji: 1, items: {gem: {kind: currency}}}")
	gem := []catalog.Stack{{Item: "gem", Quantity: 1}}
	r.do(rules.Command{Kind: rules.KindGrant, Player: "old\x1b", Items: gem}) // Decide lets it in, as older builds did
	r.do(rules.Command{Kind: rules.KindGrant, Player: "old\xff", Items: gem})
	for _, id := range []string{"a\x00", "\x1b[2J", "a\nb", "\t", "\x7f", "\u0085", "\u009b", "\xff", "a\xc3", "\xed\xa0\x80"} {
		grant := rules.Command{Kind: rules.KindGrant, Player: id, Items: gem}
		for field, cmd := range map[string]rules.Command{
			"player": grant,
			"id":     {Kind: rules.KindGrant, ID: id, Player: "ann", Items: gem},
			"from":   {Kind: rules.KindTransfer, Player: id, To: "ann", Items: gem},
			"to":     {Kind: rules.KindTransfer, Player: "old\x1b", To: id, Items: gem},
			"members[1].player": {Kind: rules.KindAtomic, Members: []rules.Command{
				{Kind: rules.KindGrant, Player: "ann", Items: gem}, grant}},
		} {
			if err := r.rules.CheckNew(&cmd); err == nil || err.Field != field {
				t.Errorf("%q as %s: %v", id, field, err)
			}
		}
	}
	for _, id := range []string{"old\x1b", "old\xff", "", "ann", "花子", "\ufffd", "a b", "=1+1", "\u202e"} {
		cmd := rules.Command{Kind: rules.KindTransfer, Player: id, To: id, Items: gem}
		if err := r.rules.CheckNew(&cmd); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestPrintable compares with a look at one byte after the other, each byte at each place.
func TestPrintable(t *testing.T) {
	for n := range 20 {
		text := bytes.Repeat([]byte("~ a"), 7)[:n]
		for at := range text {
			for b := range 256 {
				was := text[at]
				text[at] = byte(b)
				if got, want := rules.Printable(string(text)), b >= ' ' && b < 0x7f; got != want {
					t.Fatalf("%q: %v", text, got)
				}
				text[at] = was
			}
		}
	}
	if !rules.Printable("") {
		t.Error("nothing is not printable")
	}
}
