package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// errEnough ends a reader that has come far enough.
var errEnough = errors.New("enough")

// about returns what EventsOf yields of a player and a pool, up to where last says; 0: not yet.
func about(t *testing.T, r *kuji.Realm, player, pool string, last *atomic.Uint64) (all []kuji.Record) {
	pace := func(_ context.Context, at kuji.FeedPlace) error {
		if end := last.Load(); end > 0 && at.Next > end {
			return errEnough
		}
		return nil
	}
	for rec, err := range r.Feed().Query(t.Context(), kuji.EventsQuery{Player: player, Pool: pool, Pace: pace}) {
		if err != nil {
			if !errors.Is(err, errEnough) {
				t.Errorf("player %q, pool %q: %v", player, pool, err)
			}
			break
		}
		if end := last.Load(); end > 0 && rec.Position > end {
			break // it waited already when last was set, and was woken
		}
		all = append(all, rec)
	}
	return all
}

// isAbout reports whether an event, or a member of its group, names a player and a pool.
func isAbout(rec *kuji.Record, player, pool string) bool {
	for i := range rec.Members {
		if isAbout(&rec.Members[i], player, pool) {
			return true
		}
	}
	return len(rec.Members) == 0 && (player == "" || rec.Player == player || rec.To == player) && (pool == "" || rec.Pool == pool)
}

// TestFeedQuery: a reader who asks for a player or a pool gets what the whole feed says of them,
// whether it comes before them or after.
func TestFeedQuery(t *testing.T) {
	_, r := openCaps(t, "data", worldOptions{FS: vfs.NewMem()})
	if _, err := r.Apply(t.Context(), parse(t, capsCatalog+"  free:\n    entries: [{id: blank, weight: 1}]\n")); err != nil {
		t.Fatal(err)
	}
	pools := []string{"splash", "free"}
	players := []string{"", "ann", "bob", "carl", "nobody"}
	type asked struct{ player, pool string }
	var queries []asked
	for _, player := range players {
		for _, pool := range []string{"", "splash", "free", "none"} {
			queries = append(queries, asked{player, pool})
		}
	}
	var last atomic.Uint64
	var reading sync.WaitGroup
	early := make([][]kuji.Record, len(queries))
	for i, q := range queries {
		reading.Go(func() { early[i] = about(t, r, q.player, q.pool, &last) })
	}
	for i, player := range players[1:4] {
		for _, pool := range pools {
			do(t, r, kuji.Draw{Player: player, Pool: pool, Count: 1 + i}) // only codes pay for one
			do(t, r, kuji.Redeem{Player: player, Code: "guess" + pool})
		}
		do(t, r, kuji.Redeem{Player: player, Code: "SECRET-SHARED"})
		item := kuji.Stack{Item: "gem", Quantity: 5}
		do(t, r, kuji.Grant{Player: player, Items: []kuji.Stack{item}})
		to := players[1+(i+1)%3]
		item.Quantity = 1
		do(t, r, kuji.Transfer{From: player, To: to, Items: []kuji.Stack{item}})
		do(t, r, kuji.Transfer{From: "nobody", To: to, Items: []kuji.Stack{item}}) // fails
		do(t, r, kuji.Atomic{Members: []kuji.Request{
			kuji.Transfer{From: player, To: to, Items: []kuji.Stack{item}},
			kuji.Grant{Player: "dora", Items: []kuji.Stack{item}},
		}})
	}
	end := do(t, r, kuji.Register{Player: "last"}).Receipt.Position
	last.Store(end)
	do(t, r, kuji.Register{Player: "wakes the readers"})
	reading.Wait()
	whole, err := through(t.Context(), r, 1, end)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range queries {
		var want []kuji.Record
		for _, rec := range whole {
			if q == (asked{}) || isAbout(&rec, q.player, q.pool) {
				want = append(want, rec)
			}
		}
		what := fmt.Sprintf("player %q, pool %q", q.player, q.pool)
		sameRecords(t, what+", from the first", early[i], want)
		sameRecords(t, what, about(t, r, q.player, q.pool, &last), want)
		if q.player == "ann" && q.pool == "" && len(want) < 10 {
			t.Errorf("ann: %d events", len(want))
		}
	}
}

// TestFeedEnds: a reader whose caller has left reads no entry more, and describes no event more,
// however much there is.
func TestFeedEnds(t *testing.T) {
	_, r := open(t, "data", worldOptions{FS: vfs.NewMem()})
	drawSome(t, r, "d", 100)
	reqs := make([]kuji.Request, 1000)
	for i := range reqs {
		reqs[i] = kuji.Draw{Player: "ann", Pool: "free"}
	}
	if _, err := r.DoAll(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	for _, player := range []string{"", "nobody"} {
		ctx, leave := context.WithCancel(t.Context())
		paced := 0
		pace := func(context.Context, kuji.FeedPlace) error {
			if paced++; paced == 3 {
				leave()
			}
			return nil
		}
		var err error
		for _, err = range r.Feed().Query(ctx, kuji.EventsQuery{Player: player, Pace: pace}) {
		}
		if leave(); paced != 3 {
			t.Errorf("player %q: %d looks at the log, and the reader left after 3", player, paced)
		}
		wantCode(t, err, kuji.CodeCanceled)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	n := 0
	var err error
	for _, err = range r.Feed().Query(ctx, kuji.EventsQuery{Player: "ann"}) {
		if err == nil {
			n++
			leave()
		}
	}
	if wantCode(t, err, kuji.CodeCanceled); n != 1 {
		t.Errorf("%d events after the reader left in the middle of a batch", n-1)
	}
}

// TestFeedPace: a reader is behind until it comes to what is new, and an error of Pace ends it.
func TestFeedPace(t *testing.T) {
	_, r := open(t, "data", worldOptions{FS: vfs.NewMem()})
	drawSome(t, r, "d", 100)
	last := r.Stats().Position
	bytes, behind := 0, 0
	var next []uint64
	q := kuji.EventsQuery{From: 20, Player: "nobody", Pace: func(_ context.Context, at kuji.FeedPlace) error {
		bytes += at.Bytes
		next = append(next, at.Next)
		if at.Behind {
			if behind++; behind != len(next) {
				t.Errorf("at %d: behind again", at.Next)
			}
		}
		if at.Next > last {
			return errEnough
		}
		return nil
	}}
	for rec, err := range r.Feed().Query(t.Context(), q) {
		if !errors.Is(err, errEnough) {
			t.Fatalf("%+v, %v", rec, err)
		}
	}
	if !slices.IsSorted(next) || next[0] != 20 || next[len(next)-1] != last+1 || behind < len(next)-20 || behind == len(next) || bytes < 100*20 {
		t.Errorf("from 20 to %d, by %v, %d bytes, %d times behind", last, next, bytes, behind)
	}
}

// TestFeedTrimmedAgain: of a log that was trimmed, where it begins is found once. Whoever asks for
// more again and again reads no snapshot again.
func TestFeedTrimmedAgain(t *testing.T) {
	dir := trimmedRealm(t)
	_, r := open(t, dir, worldOptions{TrimLog: true, SegmentSize: 4096})
	first := uint64(0)
	for range 2 {
		_, err := through(t.Context(), r, 1, 1)
		trimmed, ok := errors.AsType[*kuji.TrimmedError](err)
		if !ok || first != 0 && trimmed.First != first {
			t.Fatalf("%v, want that the feed begins at %d", err, first)
		}
		first = trimmed.First
		files, err := filepath.Glob(filepath.Join(dir, "realms", "test", "snapshots", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}
