package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/ledger"
)

// away is a realm whose files cannot be read a few times.
type away struct {
	driver.Realm
	times int
}

func (a *away) OpenFile(ctx context.Context, name string) (driver.File, error) {
	if a.times > 0 {
		a.times--
		return nil, driver.ErrUnavailable
	}
	return a.Realm.OpenFile(ctx, name)
}

// TestFollow: a ledger that follows yields each entry that counts once, and goes on where it was after
// what failed for now. It takes over from there.
func TestFollow(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	leader, _, f := open(t, s, 1, 1)
	commit(t, leader, "a")
	kept, err := s.Node(2).Open(t.Context(), realm, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &tape{}
	l := ledger.New(ledger.Options{Realm: realm, Log: &away{kept, 2}, Rules: 1, Key: [32]byte{1}, Entropy: func(p []byte) { p[0] = 9 }})
	defer l.Close()
	if err := l.Recover(m, nil); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", f.MaxEntry())
	commit(t, leader, "b")
	commit(t, leader, large)
	commit(t, leader, "c")
	next, _, _ := open(t, s, 3, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := 0
	for ctx.Err() == nil {
		for e, err := range l.Follow(ctx) {
			switch {
			case errors.Is(err, driver.ErrUnavailable):
				failed++
			case err != nil && ctx.Err() == nil:
				t.Fatal(err)
			case err == nil:
				if err := m.Change(&e); err != nil {
					t.Fatal(err)
				}
				if begun, _ := e.Begun(); begun.Number == next.Epoch() {
					cancel()
				}
			}
		}
	}
	if failed != 2 {
		t.Errorf("%d attempts failed, want 2", failed)
	}
	commit(t, next, "d")
	if err := l.TakeOver(m, func() int64 { return 1 }); err != nil {
		t.Fatal(err)
	}
	commit(t, l, "e")
	want := "a b " + large + " c d"
	if got := strings.Join(m.batches, " "); got != want {
		t.Errorf("%d batches were followed, %d bytes, want %d", len(m.batches), len(got), len(want))
	}
	if got, err := read(t, s); got != want+" e" || err != nil {
		t.Errorf("%d bytes in the log, %v", len(got), err)
	}
	if epochs := l.Epochs(); len(epochs) != 3 || !epochs[0].Revealed {
		t.Errorf("epochs %+v", epochs)
	}
}
