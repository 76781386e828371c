package enginetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
)

// TestPurchases: a purchase that was carried out is never carried out again, also when its answer is forgotten, by
// another leader. One that failed can be tried again then.
func TestPurchases(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	s := drivertest.NewShared(drivertest.SharedOptions{})
	e, r := openAt(t, s, 1, kuji.Options{Now: now.Now})
	if _, err := r.Apply(t.Context(), parse(t, `{kuji: 1, items: {gem: {}}, idempotency: {count: 5, age: 1h, purchases: "order-"}}`)); err != nil {
		t.Fatal(err)
	}
	gems := []kuji.Stack{{Item: "gem", Quantity: 1}}
	buy := func(id string) error {
		_, err := r.Do(t.Context(), kuji.Grant{ID: id, Player: "ann", Items: gems})
		return err
	}
	for _, id := range []string{"order-1", "order-1", "other-1"} {
		if err := buy(id); err != nil {
			t.Fatal(err)
		}
	}
	do(t, r, kuji.Consume{ID: "order-2", Player: "bob", Items: gems}) // bob has none
	n := 0
	forget := func() {
		now.Add(2 * time.Hour)
		for range 5 {
			do(t, r, kuji.Register{ID: fmt.Sprint("r", n), Player: "cid"})
			n++
		}
		now.Add(2 * time.Hour) // there is room for others
	}
	forget()
	wantUsed := func(id string, used bool) {
		t.Helper()
		switch err := buy(id); {
		case used && (!errors.As(err, new(*kuji.Error)) || err.(*kuji.Error).Code != kuji.CodeTooOld):
			t.Errorf("%s: %v; want CodeTooOld", id, err)
		case !used && err != nil:
			t.Errorf("%s: %v", id, err)
		}
	}
	wantUsed("order-1", true)
	wantUsed("other-1", false)
	wantUsed("order-2", false)
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = openAt(t, s, 2, kuji.Options{Now: now.Now})
	forget()
	wantUsed("order-1", true)
	wantUsed("order-2", true)
	if n, err := r.Balance(t.Context(), "ann", "gem"); err != nil || n != 4 {
		t.Errorf("ann has %d gems: %v; want 4", n, err)
	}
}
