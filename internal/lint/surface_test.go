package lint

import (
	"go/ast"
	"go/types"
	"testing"
)

// imported resolves imports of the test's own internal package.
type imported map[string]*types.Package

func (i imported) Import(path string) (*types.Package, error) { return i[path], nil }

func TestSurface(t *testing.T) {
	const inner = Module + "/internal/seam"
	s := source(t, "internal/seam/seam.go", "package seam\ntype FS interface{}\ntype List[T any] []T\nconst Max = 3")
	seam, err := new(types.Config).Check(inner, s.Fset, []*ast.File{s.AST}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"field", "type O struct { FS seam.FS }", "O.FS is exported"},
		{"field of no name", "type O struct { seam.FS }", "O.FS is exported"},
		{"field not exported", "type O struct { fs seam.FS }", ""},
		{"parameter", "func Open(fs seam.FS) {}", "Open is exported"},
		{"function not exported", "func open(fs seam.FS) {}", ""},
		{"result with a pointer", "func Open() *seam.FS { return nil }", "Open is exported"},
		{"method", "type O struct{}\nfunc (o O) FS() []seam.FS { return nil }", "O.FS is exported"},
		{"method not exported", "type O struct{}\nfunc (o O) fs() seam.FS { return nil }", ""},
		{"method of an interface", "type O interface { Open(map[string]seam.FS) }", "O.Open is exported"},
		{"alias", "type O = seam.FS", ""}, // which names it
		{"alias of something made of one", "type O = []seam.FS", "O is exported"},
		{"field with an alias", "type F = seam.FS\ntype O struct { FS seam.FS }", ""},
		{"variable", "var FS seam.FS", "FS is exported"},
		{"type made of one", "type O []seam.FS", "O is exported"},
		{"type argument", "type O struct { All seam.List[int] }", "O.All is exported"},
		{"a number", "const Max = seam.Max", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, "p.go", "package p\nimport \""+inner+"\"\nvar _ seam.FS\n"+tt.text)
			pkg, err := (&types.Config{Importer: imported{inner: seam}}).Check(Module+"/p", s.Fset, []*ast.File{s.AST}, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, Surface(&Typed{Fset: s.Fset, Pkg: pkg}, ""), tt.want)
		})
	}
}

func TestConstants(t *testing.T) {
	for _, tt := range []struct{ path, text, want string }{
		{"limit.go", "const Max = 3", ""},
		{"limit.go", "const Max = rules.Max", "Max is rules.Max"},
		{"limit.go", "const (\n\tMin = 1\n\tMax = 2*rules.Max + 1\n)", "Max is rules.Max"},
		{"limit.go", "const Max = catalog.Max", ""},
		{"limit.go", "const _ = uint(Max - rules.Max)", ""},
		{"limit.go", "const most = rules.Max", ""},
		{"internal/ledger/limit.go", "const Max = rules.Max", ""},
	} {
		text := "package p\nimport (\"" + Module + "/internal/rules\"; \"" + Module + "/catalog\")\n" + tt.text
		check(t, Constants(source(t, tt.path, text)), tt.want)
	}
}
