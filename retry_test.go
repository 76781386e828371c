package kuji_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestSameIDAtOnce: however many send one request id at the same time, by
// whatever form of call, it takes effect once and everybody gets one answer.
func TestSameIDAtOnce(t *testing.T) {
	_, r := open(t, t.TempDir(), kuji.Options{})
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
	_, r := open(t, t.TempDir(), kuji.Options{MaxPending: 1 << 20})
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
