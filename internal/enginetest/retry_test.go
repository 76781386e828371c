package enginetest

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestSameIDAtOnce: however many send one request id at the same time, by
// whatever form of call, it takes effect once and everybody gets one answer.
func TestSameIDAtOnce(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	for round := range 30 {
		req := kuji.Draw{ID: fmt.Sprint("id", round), Player: "ann", Pool: "box", Count: 2}
		var mu sync.Mutex
		var answers []kuji.Result
		firsts := 0
		note := func(res kuji.Result, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			if !res.Replayed {
				firsts++
			}
			res.Replayed = false
			answers = append(answers, res)
		}
		var wg sync.WaitGroup
		for g := range 9 {
			wg.Go(func() {
				switch g % 3 {
				case 0:
					note(r.Do(t.Context(), req))
				case 1:
					done := make(chan struct{})
					r.Submit(&req, func(res kuji.Result, err error) { note(res, err); close(done) })
					<-done
				case 2:
					all, err := r.DoAll(t.Context(), []kuji.Request{req, req})
					if err != nil {
						t.Error(err)
						return
					}
					note(all[0], nil)
					note(all[1], nil)
				}
			})
		}
		wg.Wait()
		if firsts != 1 || len(answers) != 12 {
			t.Fatalf("round %d: %d answers, %d of them first", round, len(answers), firsts)
		}
		for _, a := range answers {
			if !reflect.DeepEqual(a, answers[0]) {
				t.Fatalf("round %d: two answers:\n%+v\n%+v", round, a, answers[0])
			}
		}
	}
	p, err := r.Pool(t.Context(), "box")
	if err != nil || p.Entries[0].Drawn+p.Entries[1].Drawn != 60 {
		t.Errorf("30 requests of 2 draws: %+v, %v", p.Entries, err)
	}
}

// TestOverload: a log that falls behind makes Submit refuse and Do wait, and
// nothing is lost or answered twice.
func TestOverload(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{MaxPending: 1 << 20})
	both := []kuji.Stack{{Item: "gem", Quantity: 1}, {Item: "sword", Quantity: 1}}
	var mu sync.Mutex
	granted, refused := uint64(0), 0
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				req := kuji.Grant{ID: fmt.Sprintf("%d-%d-%050d", g, i, i), Player: fmt.Sprint("p", g), Items: both}
				wg.Add(1)
				r.Submit(req, func(_ kuji.Result, err error) {
					defer wg.Done()
					mu.Lock()
					defer mu.Unlock()
					switch kuji.CodeOf(err) {
					case 0:
						granted++
					case kuji.CodeOverloaded:
						refused++
					default:
						t.Error(err)
					}
				})
				if i%1000 == 0 {
					do(t, r, kuji.Draw{Player: "q", Pool: "free"})
				}
			}
		})
	}
	wg.Wait()
	held := uint64(0)
	for g := range 4 {
		held += items(t, r, fmt.Sprint("p", g))["sword"]
	}
	if held != granted || granted+uint64(refused) != 80_000 {
		t.Errorf("%d granted, %d refused, %d held", granted, refused, held)
	}
}

// TestNoRoomForIDs: when the idempotency window is full of ids that are younger
// than its age, new ids are refused in every form of call, nothing of them is
// logged, and old ones are still answered.
func TestNoRoomForIDs(t *testing.T) {
	now := handAt(time.UnixMilli(1_800_000_000_000))
	_, r := open(t, t.TempDir(), worldOptions{Now: now.Now})
	if _, err := r.Apply(t.Context(), parse(t, testCatalog+"idempotency: {count: 2, age: 1h}\n")); err != nil {
		t.Fatal(err)
	}
	grant := func(id string) kuji.Request {
		return kuji.Grant{ID: id, Player: "ann", Items: []kuji.Stack{{Item: "sword", Quantity: 1}}}
	}
	do(t, r, grant("a"))
	do(t, r, grant("b"))
	if _, err := r.Do(t.Context(), grant("c")); kuji.CodeOf(err) != kuji.CodeOverloaded {
		t.Errorf("Do: %v, want overloaded", err)
	}
	r.Submit(grant("c"), func(_ kuji.Result, err error) {
		if kuji.CodeOf(err) != kuji.CodeOverloaded {
			t.Errorf("Submit: %v, want overloaded", err)
		}
	})
	results, err := r.DoAll(t.Context(), []kuji.Request{grant("a"), grant("c"), grant("")})
	if err != nil || !results[0].Replayed || results[1].Status != kuji.Refused || kuji.CodeOf(results[1].Err) != kuji.CodeOverloaded || results[2].Status != kuji.OK {
		t.Errorf("DoAll: %v, %v", results, err)
	}
	if got := items(t, r, "ann")["sword"]; got != 3 {
		t.Errorf("%d granted, want a, b and the one without an id", got)
	}
	if st := r.Stats(); st.RefusedIDs != 3 || st.RequestIDs != 2 || st.RequestIDLimit != 2 || st.OldestRequestID != now.Now().UnixMilli() || st.RequestIDBytes == 0 {
		t.Errorf("%+v", st)
	}
	now.Add(time.Hour + time.Millisecond)
	if res := do(t, r, grant("c")); res.Status != kuji.OK || res.Replayed {
		t.Errorf("once the oldest has aged: %v", res)
	}
}
