package kuji_test

import (
	"reflect"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestPoolPage: a page has some of the entries, and all else of the pool.
func TestPoolPage(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{})
	for range 3 {
		do(t, r, kuji.Draw{Player: "ann", Pool: "box"})
	}
	whole, err := r.Pool(t.Context(), "box")
	if err != nil {
		t.Fatal(err)
	}
	n := len(whole.Entries)
	for _, tc := range []struct{ from, count, end int }{{0, n, n}, {1, 1, 2}, {0, 0, 0}, {n - 1, 5, n}, {n, 5, n}, {n + 7, 1, n}} {
		want := whole
		want.Entries = whole.Entries[min(tc.from, n):tc.end]
		got, err := r.PoolPage(t.Context(), "box", tc.from, tc.count)
		if err != nil {
			t.Fatal(err)
		}
		stale, err := r.PoolPage(kuji.Stale(t.Context()), "box", tc.from, tc.count)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Entries) == 0 {
			want.Entries = []kuji.EntryView{}
		}
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(stale, want) {
			t.Errorf("%d entries from %d on:\n%+v, stale\n%+v, want\n%+v", tc.count, tc.from, got, stale, want)
		}
	}
	_, err = r.PoolPage(t.Context(), "box", -1, 5)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.PoolPage(t.Context(), "box", 0, -1)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.PoolPage(t.Context(), "nosuch", 0, 1)
	wantCode(t, err, kuji.CodeNotFound)
}
