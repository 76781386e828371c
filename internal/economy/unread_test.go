package economy_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
)

// TestUnreadEvents: a state whose events nobody reads gives the same, and remembers the same
// of ids, as one whose events are read, and appends none but those it remembers.
func TestUnreadEvents(t *testing.T) {
	read, unread := newMachine(t, 1), newMachine(t, 1)
	unread.s.Unread()
	machines := []*machine{read, unread}
	for _, m := range machines {
		m.apply(plainCatalog)
	}
	r := rand.New(rand.NewPCG(1, 10))
	skipped, remembered := 0, 0
	for n := range 600 {
		cmd := plainCommand(r, n)
		if cmd.Pool == "heavy" { // behind which no grant is plain
			cmd.Pool = "common"
		}
		if r.IntN(3) == 0 {
			cmd = economy.Command{Kind: economy.KindGrant, ID: cmd.ID, Player: cmd.Player, Items: []catalog.Stack{{Item: "gem", Quantity: 1 + r.Uint64N(9)}, {Item: "sword", Quantity: 2}}}
		}
		var events [2][]byte
		var carried [2]bool
		for i, m := range machines {
			m.now = 1_700_000_000_000 + int64(n)*60_000
			at := economy.At{Position: uint64(n) + 2, Time: m.now}
			var err error
			if cmd.Kind == economy.KindGrant {
				events[i], carried[i], err = m.s.GrantPlain(&cmd, m.s.HashIDs(cmd.ID, cmd.Player), &at, nil)
			} else {
				events[i], _, carried[i], err = drawPlain(m.s, &cmd, m.src, at, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !carried[i] {
				ev := m.s.Decide(&cmd, m.now, m.src)
				if err := m.s.Apply(ev, economy.AppendEvent(nil, ev), at); err != nil {
					t.Fatal(err)
				}
			}
		}
		switch {
		case carried[0] != carried[1]:
			t.Fatalf("%+v: carried out in one go: %v", cmd, carried)
		case carried[0] && cmd.ID == "":
			skipped++
			if len(events[0]) == 0 || len(events[1]) != 0 {
				t.Fatalf("%+v: events %x", cmd, events)
			}
		case carried[0]:
			remembered++
			if !bytes.Equal(events[0], events[1]) {
				t.Fatalf("%+v: events %x", cmd, events)
			}
		}
		if read.s.Hash() != unread.s.Hash() {
			t.Fatalf("behind %+v the states differ", cmd)
		}
	}
	if skipped < 100 || remembered < 100 {
		t.Errorf("%d events were left out and %d remembered: too few to tell", skipped, remembered)
	}
}
