package enginetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
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
		got, err := r.Pools().Page(t.Context(), "box", tc.from, tc.count)
		if err != nil {
			t.Fatal(err)
		}
		stale, err := r.Pools().Page(kuji.Stale(t.Context()), "box", tc.from, tc.count)
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
	_, err = r.Pools().Page(t.Context(), "box", -1, 5)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Pools().Page(t.Context(), "box", 0, -1)
	wantCode(t, err, kuji.CodeInvalid)
	_, err = r.Pools().Page(t.Context(), "nosuch", 0, 1)
	wantCode(t, err, kuji.CodeNotFound)
}

// TestChangeKinds: the kinds of change that go doc shows are the ones that the rules give.
func TestChangeKinds(t *testing.T) {
	public, rules := changeKinds(t, "../../catalog.go"), changeKinds(t, "../plan/plan.go")
	if len(public) == 0 || !reflect.DeepEqual(public, rules) {
		t.Errorf("package kuji has\n%v, internal/rules\n%v", public, rules)
	}
}

// changeKinds returns the values of a file's constants named Change….
func changeKinds(t *testing.T, file string) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Change") {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				kinds[spec.Names[0].Name] = lit.Value
			}
		}
		return true
	})
	return kinds
}
