package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// through reads a feed from a position on, through a position.
func through(ctx context.Context, r *kuji.Realm, from, last uint64) (all []kuji.Record, err error) {
	for rec, err := range r.Feed().Events(ctx, from) {
		if err != nil {
			return all, err
		}
		all = append(all, rec)
		if rec.Position >= last && rec.Last {
			break
		}
	}
	return all, nil
}

// verified returns the events that Verify sees in a realm that was closed.
func verified(t testing.TB, fs vfs.FS, dir string) (all []kuji.Record) {
	t.Helper()
	if _, err := verifyIn(fs, dir, "test", func(rec kuji.Record) { all = append(all, rec) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func behind(all []kuji.Record, from uint64) []kuji.Record {
	i := slices.IndexFunc(all, func(rec kuji.Record) bool { return rec.Position >= from })
	return all[max(i, 0):]
}

func sameRecords(t *testing.T, what string, got, want []kuji.Record) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: event %d is %+v, want %+v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d events, want %d", what, len(got), len(want))
	}
}

// feedLoad does a bit of everything, from several goroutines.
func feedLoad(t *testing.T, r *kuji.Realm, tag string) {
	var writing sync.WaitGroup
	for w := range 4 {
		writing.Go(func() {
			for i := range 60 {
				tag, own := fmt.Sprint(tag, "-", w, "-", i), fmt.Sprint("p", w)
				reqs := []kuji.Request{
					kuji.Draw{ID: "d" + tag, Player: "p" + tag, Pool: []string{"free", "box", "paid"}[i%3], Count: 1 + i%4},
					kuji.Grant{ID: "g" + tag, Player: own, Items: []kuji.Stack{{Item: "gem", Quantity: 3}}},
					kuji.Atomic{ID: "a" + tag, Members: []kuji.Request{
						kuji.Transfer{From: own, To: "q" + tag, Items: []kuji.Stack{{Item: "gem", Quantity: uint64(1 + i)}}},
						kuji.Draw{Player: "q" + tag, Pool: "free"},
					}},
				}
				if _, err := r.DoAll(t.Context(), reqs); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
}

// TestFeed: readers that follow while others write see each event that the verifier sees, once and
// in order, from wherever they begin, also after a restart.
func TestFeed(t *testing.T) {
	disk := vfs.NewMem()
	o := worldOptions{FS: disk, SegmentSize: 64 << 10}
	e, r := open(t, "data", o)
	var resumed []kuji.Record // by a reader that goes on after each restart
	next := uint64(1)
	for round := range 3 {
		if round == 1 {
			if _, err := r.Apply(t.Context(), parse(t, strings.Replace(testCatalog, "gem: 25", "gem: 26", 1))); err != nil {
				t.Fatal(err)
			}
		}
		var reading sync.WaitGroup
		from := []uint64{next, 0, 1, 3, r.Stats().Position, r.Stats().Position + 1}
		got, last := make([][]kuji.Record, len(from)), fmt.Sprint("last", round)
		for i := range from {
			reading.Go(func() {
				for rec, err := range r.Feed().Events(t.Context(), from[i]) {
					if err != nil {
						t.Errorf("from %d: %v", from[i], err)
						return
					}
					if got[i] = append(got[i], rec); rec.ID == last {
						return
					}
				}
			})
		}
		feedLoad(t, r, fmt.Sprint(round))
		end := do(t, r, kuji.Draw{ID: last, Player: "p0", Pool: "free"})
		reading.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		want := verified(t, disk, "data")
		for i := range from {
			sameRecords(t, fmt.Sprintf("round %d, from %d", round, from[i]), got[i], behind(want, from[i]))
		}
		resumed, next = append(resumed, got[0]...), end.Receipt.Position+1
		sameRecords(t, fmt.Sprintf("round %d, resumed", round), resumed, want)
		var err error
		if e, err = openWorld("data", o); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if r, err = e.Realm("test"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFeedTrimmed: a reader that asks for what was trimmed is told where to begin, and from there on
// nothing is missing.
func TestFeedTrimmed(t *testing.T) {
	dir := trimmedRealm(t)
	e, r := open(t, dir, worldOptions{TrimLog: true, SegmentSize: 4096})
	last := do(t, r, kuji.Draw{Player: "p0", Pool: "free"}).Receipt.Position
	_, err := through(t.Context(), r, 1, last)
	trimmed, ok := errors.AsType[*kuji.TrimmedError](err)
	if wantCode(t, err, kuji.CodeNotFound); !ok || trimmed.First < 2 || trimmed.First > last {
		t.Fatalf("%v, want the first position kept", err)
	}
	if _, err := through(t.Context(), r, trimmed.First-1, last); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("from %d: %v, want not_found", trimmed.First-1, err)
	}
	var got [][]kuji.Record
	from := []uint64{trimmed.First, trimmed.First + 1, last - 3, last}
	for _, at := range from {
		all, err := through(t.Context(), r, at, last)
		if err != nil {
			t.Fatalf("from %d: %v", at, err)
		}
		got = append(got, all)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want := verified(t, vfs.OS(), dir)
	if want[0].Position < trimmed.First {
		t.Errorf("the verifier begins at %d, the feed at %d", want[0].Position, trimmed.First)
	}
	for i, at := range from {
		sameRecords(t, fmt.Sprint("from ", at), got[i], behind(want, at))
	}
}

// TestFeedSlow: a reader that stands still holds nobody up, and misses nothing.
func TestFeedSlow(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{SegmentSize: 4096, TrimLog: true})
	reached, goOn := make(chan struct{}), make(chan struct{})
	seen := make(chan int)
	last := ""
	go func() {
		n := 0
		for rec, err := range r.Feed().Events(t.Context(), 0) {
			if n++; n == 1 {
				close(reached)
				<-goOn
			}
			if err != nil {
				t.Errorf("event %d: %v", n, err)
				break
			}
			if rec.ID == last {
				break
			}
		}
		seen <- n
	}()
	<-reached
	drawSome(t, r, "a", 200) // they return while the reader stands still
	if s := r.Stats(); s.Readers != 1 || s.ReaderLag < 190 {
		t.Errorf("%d readers, %d behind, want 1, at least 190", s.Readers, s.ReaderLag)
	}
	last = "a199"
	close(goOn)
	if n := <-seen; n != 201 { // with the catalog
		t.Errorf("%d events, want 201", n)
	}
}

// TestFeedRefused: what cannot be read is refused with a code.
func TestFeedRefused(t *testing.T) {
	e, r := open(t, t.TempDir(), worldOptions{})
	_, err := through(t.Context(), r, r.Stats().Position+2, 0)
	wantCode(t, err, kuji.CodeInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = through(ctx, r, r.Stats().Position+1, 0)
	wantCode(t, err, kuji.CodeCanceled)
	errs := make(chan error)
	for range kuji.MaxReaders + 1 {
		go func() {
			_, err := through(t.Context(), r, r.Stats().Position+1, 0)
			errs <- err
		}()
	}
	wantCode(t, <-errs, kuji.CodeOverloaded) // the others wait
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for range kuji.MaxReaders {
		wantCode(t, <-errs, kuji.CodeClosed)
	}
	_, err = through(t.Context(), r, 1, 0)
	wantCode(t, err, kuji.CodeClosed)

	m, err := kuji.OpenMemory([32]byte{}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if r, err = m.Realm("test"); err != nil {
		t.Fatal(err)
	}
	_, err = through(t.Context(), r, 1, 0)
	wantCode(t, err, kuji.CodeConflict)
}

// TestFeedRedacted: no code that a reward gave, nor one that a player sent, is in the feed.
func TestFeedRedacted(t *testing.T) {
	_, r := openCodes(t, t.TempDir(), worldOptions{})
	importCodes(t, r, "ten-percent", someCodes("ten", 200))
	importCodes(t, r, "keys", someCodes("key", 200))
	res := do(t, r, kuji.Draw{ID: "codes", Player: "ann", Pool: "splash", Count: 50})
	all, err := through(t.Context(), r, 0, res.Receipt.Position)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(codesIn(res)) == 0 || !strings.Contains(string(text), kuji.Redacted) || strings.Contains(string(text), "SECRET") {
		t.Errorf("the draw gave %v; the feed says %s", codesIn(res), text)
	}
}

// TestFeedSurvives: whatever the policy is, what a reader was given is in the log after a crash.
func TestFeedSurvives(t *testing.T) {
	for _, policy := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			disk := vfs.NewMem()
			_, r := open(t, "data", worldOptions{FS: disk, Sync: policy})
			const draws = 100
			var got []kuji.Record
			var crashed []*vfs.Mem // when each event was shown
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			read := make(chan struct{}, 2*draws)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for rec, err := range r.Feed().Events(ctx, 0) {
					if err != nil {
						return
					}
					got = append(got, rec)
					crashed = append(crashed, disk.CrashClone(vfs.Crash{}))
					if rec.ID != "" {
						read <- struct{}{}
					}
				}
			}()
			for i := range draws {
				do(t, r, kuji.Draw{ID: fmt.Sprint("d", i), Player: "ann", Pool: "free"})
				if i%10 == 9 {
					snapshot(t, r) // which makes the log durable
					for range 10 {
						<-read
					}
				}
			}
			stop()
			<-ended
			for i, image := range crashed {
				kept := verified(t, image, "data")
				if len(kept) <= i || !reflect.DeepEqual(kept[:i+1], got[:i+1]) {
					t.Fatalf("after a crash the log has %d events, or others than the feed had shown: %d, the last %s", len(kept), i+1, got[i].ID)
				}
			}
		})
	}
}

// TestFeedPlaces: readers that begin in the middle of a long log see what the verifier sees there,
// whether the place was noted while it was written or when it was recovered.
func TestFeedPlaces(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	note := kuji.Note{Metadata: `"` + strings.Repeat("x", 1000) + `"`}
	for round := range 2 {
		from := []uint64{}
		for i := range 60 {
			reqs := make([]kuji.Request, 50)
			for k := range reqs {
				reqs[k] = kuji.Grant{Player: fmt.Sprint("p", round, "-", i, "-", k), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}, Note: note}
			}
			if _, err := r.DoAll(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
			if i == 30 {
				if _, err := r.Apply(t.Context(), parse(t, strings.Replace(testCatalog, "gem: 25", fmt.Sprint("gem: ", 30+round), 1))); err != nil {
					t.Fatal(err)
				}
			}
			if i%6 == 5 {
				from = append(from, r.Stats().Position)
			}
		}
		for again := range 2 {
			last := r.Stats().Position
			if again == 1 {
				last = from[len(from)-1] // behind it is an epoch's begin, without events
			}
			got := make([][]kuji.Record, len(from))
			for i, at := range from {
				var err error
				if got[i], err = through(t.Context(), r, at, last); err != nil {
					t.Fatalf("from %d: %v", at, err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			want := verified(t, disk, "data")
			for i, at := range from {
				sameRecords(t, fmt.Sprintf("round %d, %d, from %d", round, again, at), got[i], behind(want, at))
			}
			var err error
			if e, err = openWorld("data", worldOptions{FS: disk}); err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if r, err = e.Realm("test"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
