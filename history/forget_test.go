package history

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestForgottenRows: after a player is forgotten, no row of a history has a name of the player, however far the history
// was, and it is what the log says. Others keep theirs.
func TestForgottenRows(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 100)
	do := func(req kuji.Request) {
		t.Helper()
		if res, err := r.Do(t.Context(), req); err != nil || res.Status != kuji.OK {
			t.Fatalf("%+v: %v, %v", req, res, err)
		}
	}
	do(kuji.Grant{ID: "1", Player: "secret-eve", Items: []kuji.Stack{{Item: "gem", Quantity: 40}}})
	do(kuji.Link{ID: "2", Player: "twitch:secret", To: "secret-eve"})
	do(kuji.Transfer{ID: "3", From: "twitch:secret", To: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 5}}})
	do(kuji.Atomic{ID: "4", Members: []kuji.Request{kuji.Register{Player: "ann"}, kuji.Grant{Player: "secret-eve", Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}}})
	target := func(name string) string { return filepath.Join(t.TempDir(), name) }
	before := openTest(t, target("before"))
	run := func(h *DB) {
		t.Helper()
		if err := h.Run(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)); err != nil {
			t.Fatal(err)
		}
	}
	run(before)
	do(kuji.Transfer{ID: "5", From: "ann", To: "secret-eve", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	do(kuji.Forget{ID: "6", Player: "twitch:secret"})
	do(kuji.Grant{ID: "7", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
	after := openTest(t, target("after"))
	for name, h := range map[string]*DB{"before": before, "after": after} {
		run(h)
		if _, err := h.Verify(t.Context(), through(r.Feed().Events, r.Stats().LastEvent)(t.Context(), 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := h.writing(t.Context(), func(tb tables) error {
			for _, sql := range []string{"SELECT name FROM players", "SELECT detail FROM events"} {
				if err := tb.query(t.Context(), sql, func(row row) error {
					if strings.Contains(row.text(0), "secret") {
						return fmt.Errorf("a row says %s", row.text(0))
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
