package enginetest

import (
	"maps"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestGranted: what grants gave since a time is counted from the log, so a restart changes nothing.
func TestGranted(t *testing.T) {
	for _, o := range []worldOptions{{}, {SnapshotEvery: 300}, {SnapshotEvery: 300, SegmentSize: 4096}, {Sync: kuji.SyncNone}} {
		now := handAt(time.UnixMilli(1_700_000_000_000))
		o.FS, o.Now = vfs.NewMem(), now.Now
		e, r := open(t, "data", o)
		give := func(by, player string, gems uint64) {
			t.Helper()
			items := []kuji.Stack{{Item: "gem", Quantity: gems}, {Item: "sword", Quantity: 1}}
			do(t, r, kuji.Grant{Player: player, Items: items, Note: kuji.Note{By: by}})
		}
		check := func(since time.Time, by string, gems, swords uint64) {
			t.Helper()
			all, err := r.Feed().Granted(t.Context(), since)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]uint64{"gem": gems, "sword": swords}
			if gems == 0 {
				want = nil
			}
			if !maps.Equal(all[by], want) {
				t.Errorf("%+v: %s granted %v since %v, want %v", o, by, all[by], since, want)
			}
			if all[""] != nil {
				t.Errorf("nobody granted %v", all[""])
			}
		}
		day := now.Now()
		check(day, "shop", 0, 0)
		for range 30 {
			give("shop", "ann", 1)
			now.Add(time.Second)
		}
		noon := now.Now()
		for range 30 {
			give("shop", "bob", 2)
			give("desk", "bob", 5)
			give("", "bob", 100)
			now.Add(time.Second)
		}
		do(t, r, kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 7}}},
			kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 3}}}}, Note: kuji.Note{By: "shop"}})
		do(t, r, kuji.Atomic{ID: "held", Hold: kuji.Holding{For: time.Hour}, Members: []kuji.Request{kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 2}}}},
			Note: kuji.Note{By: "shop"}})
		do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: []kuji.Stack{{Item: "gem", Quantity: 1}}, Note: kuji.Note{By: "shop"}})
		if res, err := r.Do(t.Context(), kuji.Atomic{Members: []kuji.Request{kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1000}}},
			kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 1 << 50}}}}, Note: kuji.Note{By: "shop"}}); err != nil || res.Status == kuji.OK {
			t.Fatal(res, err) // what failed gave nothing
		}
		all := func() {
			t.Helper()
			check(day, "shop", 30+60+7+2, 60)
			check(noon, "shop", 60+7+2, 30)
			check(noon, "desk", 150, 30)
			check(now.Now().Add(time.Hour), "shop", 0, 0)
		}
		all()
		for range 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e, r = open(t, "data", o)
			all()
		}
		give("shop", "ann", 1)
		check(noon, "shop", 60+7+2+1, 31)
		if o.SnapshotEvery > 0 {
			if st := r.Stats(); st.Snapshot == 0 {
				t.Error("no snapshot was taken")
			}
		}
	}
}
