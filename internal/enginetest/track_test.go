package enginetest

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

const bannerCatalog = `
kuji: 1
items: {gold: {}, gem: {kind: currency}}
pools:
  banner:
    pity: {rare: {certain: 90, share: five}, gem: {certain: 100}}
    entries:
      - {id: rare, weight: 0.000001, reward: {items: {gold: 1}}}
      - {id: gem, weight: 0.000001, reward: {items: {gem: 1}}}
      - {id: blank, weight: 100}
`

// TestSetTrack: what clients see of their tracks, and that an administrator can set one. The log
// keeps who did and why, and all of it is there after a restart and can be verified.
func TestSetTrack(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	if _, err := r.Apply(t.Context(), parse(t, bannerCatalog)); err != nil {
		t.Fatal(err)
	}
	want := func(r *kuji.Realm, tracks ...kuji.TrackView) {
		t.Helper()
		v, err := r.Player(t.Context(), "ann")
		if err != nil || !reflect.DeepEqual(v.Tracks, tracks) {
			t.Errorf("ann's tracks are %+v, %v, want %+v", v.Tracks, err, tracks)
		}
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "banner", Count: 73})
	want(r, kuji.TrackView{Name: "five", Draws: 73, CertainIn: 17}, kuji.TrackView{Name: "banner/gem", Draws: 73, CertainIn: 27, Unless: "five"})

	long := strings.Repeat("ü", 512)
	set := kuji.SetTrack{ID: "fix", Player: "ann", Track: "five", Draws: 89, By: "ops", Reason: long}
	first := do(t, r, set)
	if first.Status != kuji.OK || first.Outcomes != nil || first.Paid != nil {
		t.Errorf("set: %+v", first)
	}
	want(r, kuji.TrackView{Name: "five", Draws: 89, CertainIn: 1}, kuji.TrackView{Name: "banner/gem", Draws: 73, CertainIn: 27, Unless: "five"})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "banner"}); res.Outcomes[0].Entry != "rare" {
		t.Errorf("the draw after 89 of 90 is %v", res.Outcomes)
	}
	want(r, kuji.TrackView{Name: "banner/gem", Draws: 74, CertainIn: 26, Unless: "five"})
	_, err := r.Do(t.Context(), &kuji.SetTrack{ID: "lost", Player: "bob", Track: "banner/rare", Reason: "typing error"})
	wantCode(t, err, kuji.CodeNotFound)
	mended := kuji.SetTrack{ID: "lost", Player: "bob", Track: "banner/gem", Reason: "typing error"}
	found := do(t, r, mended) // the id can be used again

	again := func(r *kuji.Realm) {
		t.Helper()
		for _, tt := range []struct {
			req  kuji.SetTrack
			want kuji.Result
		}{{set, first}, {mended, found}} {
			got := do(t, r, tt.req)
			if !got.Replayed {
				t.Errorf("%q was carried out again", tt.req.ID)
			}
			if got.Replayed = false; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q again: %+v, first %+v", tt.req.ID, got, tt.want)
			}
		}
		for _, other := range []func(*kuji.SetTrack){
			func(s *kuji.SetTrack) { s.Draws-- }, func(s *kuji.SetTrack) { s.Reason = "x" },
			func(s *kuji.SetTrack) { s.Track = "banner/gem" },
		} {
			req := set
			other(&req)
			_, err := r.Do(t.Context(), req)
			wantCode(t, err, kuji.CodeIDReused)
		}
		want(r, kuji.TrackView{Name: "banner/gem", Draws: 74, CertainIn: 26, Unless: "five"}) // nothing was set again
	}
	again(r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var records []kuji.Record
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		if rec.Kind == "set_track" {
			records = append(records, rec)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if len(records) != 2 || records[0].Track != "five" || *records[0].Draws != 89 || records[0].By != "ops" || records[0].Reason != long ||
		records[1].Status != "ok" || records[1].Track != "banner/gem" || *records[1].Draws != 0 || records[1].Reason != "typing error" {
		t.Errorf("the log has %+v", records)
	}
	e, err = openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	again(r)
}

// TestTotal: what several outcomes gave is one list.
func TestTotal(t *testing.T) {
	stack := func(item string, n uint64) kuji.Stack { return kuji.Stack{Item: item, Quantity: n} }
	res := kuji.Result{Outcomes: []kuji.Outcome{
		{Entry: "a", Items: []kuji.Stack{stack("gold", 5), stack("gem", 1)}}, {Entry: "blank"},
		{Entry: "b", Items: []kuji.Stack{stack("ring", 1), stack("gem", 2)}}, {Entry: "a", Items: []kuji.Stack{stack("gold", 7)}},
	}}
	want := []kuji.Stack{stack("gold", 12), stack("gem", 3), stack("ring", 1)}
	if got := res.Total(); !reflect.DeepEqual(got, want) {
		t.Errorf("total %v, want %v", got, want)
	}
	if res.Outcomes[0].Items[0].Quantity != 5 {
		t.Error("a total changed the outcomes")
	}
	if got := (kuji.Result{}).Total(); got != nil {
		t.Errorf("the total of nothing is %v", got)
	}
}

// TestTracksWaitForTheCatalog: which tracks a player has depends on the catalog in force. So a read
// waits until that is durable, and never shows what a crash could undo.
func TestTracksWaitForTheCatalog(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, bannerCatalog)); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "banner"})
	held, entered := make(chan struct{}), make(chan struct{}, 16)
	release := sync.OnceFunc(func() { close(held) })
	defer release() // before Close, which syncs
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			entered <- struct{}{}
			<-held
		}
		return vfs.Fault{}
	})
	applied := make(chan error, 1)
	go func() {
		_, err := r.Apply(t.Context(), parse(t, strings.Replace(bannerCatalog, "certain: 90", "certain: 50", 1)))
		applied <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := r.Player(ctx, "ann")
	if kuji.CodeOf(err) != kuji.CodeCanceled {
		t.Errorf("read %+v, %v with a catalog that is not durable", v.Tracks, err)
	}
	want := []kuji.TrackView{{Name: "five", Draws: 1, CertainIn: 49}, {Name: "banner/gem", Draws: 1, CertainIn: 99, Unless: "five"}}
	if v, err = r.Player(kuji.Stale(ctx), "ann"); err != nil || !reflect.DeepEqual(v.Tracks, want) {
		t.Errorf("a stale read: %+v, %v", v.Tracks, err)
	}
	release()
	if v, err = r.Player(t.Context(), "ann"); err != nil || !reflect.DeepEqual(v.Tracks, want) {
		t.Errorf("ann's tracks are %+v, %v, want %+v", v.Tracks, err, want)
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
}
