package lint

import (
	"go/ast"
	"go/importer"
	"go/types"
	"testing"
)

func TestDeterminism(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"integers", "func f(a []int) (n int) { for _, x := range a { n += x }; return n }", ""},
		{"float variable", "var x = 1\nfunc f() { var y float32; _ = y }", "floating point"},
		{"float literal", "func f(n int) bool { return n > int(0.5*2) }", "floating point"},
		{"float hidden in a type", "type rate float64", "floating point"},
		{"float result", `import "math"; func f(n uint64) bool { return math.Sqrt(4) > 1 }`, "floating point"},

		{"map look-up", "func f(m map[string]int) int { return m[``] }", ""},
		{"map range", "func f(m map[string]int) { for range m {} }", "range over a map"},
		{"map range behind a type", "type set map[string]bool\nfunc f(m set) { for range m {} }", "range over a map"},
		{"map range behind a type parameter", "func f[M ~map[int]int](m M) int { for k := range m { return k }; return 0 }", "range over a map"},
		{"map range behind a constraint", "type set interface { ~map[int]int; Len() int }\nfunc f[M set](m M) { for range m {} }", "range over a map"},
		{"slice range behind a type parameter", "func f[S ~[]int](s S) { for range s {} }", ""},
		{"map keys", `import "maps"; func f(m map[string]int) any { return maps.Keys(m) }`, "maps.Keys"},
		{"map cloned", `import "maps"; func f(m map[string]int) map[string]int { return maps.Clone(m) }`, ""},
		{"map deleted from in order", `import "maps"; func f(m map[int]int) (l int) { maps.DeleteFunc(m, func(k, v int) bool { l = k; return false }); return l }`, "maps.DeleteFunc"},
		{"map of the sync package", `import "sync"; func f(m *sync.Map) (l any) { m.Range(func(k, v any) bool { l = k; return false }); return l }`, "sync.Map"},
		{"map by reflection", `import "reflect"; func f(m map[int]int) any { return reflect.ValueOf(m).MapKeys()[0].Interface() }`, "import of reflect"},

		{"clock", `import "time"; func f() int64 { return time.Now().Unix() }`, "time.Now"},
		{"clock under another name", `import tt "time"; var now = 1; func f() any { return tt.Now }`, "time.Now"},
		{"clock under no name", `import . "time"; func f() any { return Now }`, "time.Now"},
		{"clock by a context", `import ("context"; "time"); func f() bool { c, cancel := context.WithTimeout(context.Background(), time.Millisecond); defer cancel(); return c.Err() != nil }`, "import of context"},
		{"clock by the linker", "import _ \"unsafe\"\n//go:linkname f runtime.nanotime\nfunc f() int64 { return 0 }", "go:linkname"},
		{"duration", `import "time"; func f(d time.Duration) int64 { return int64(d / time.Millisecond) }`, ""},
		{"shared random source", `import "math/rand/v2"; func f() int { return rand.IntN(3) }`, "import of math/rand/v2"},
		{"own random source", `import "math/rand"; func f() int { return rand.New(rand.NewSource(1)).Int() }`, "import of math/rand"},
		{"entropy", `import _ "crypto/rand"`, "import of crypto/rand"},
		{"entropy by a hash", `import "hash/maphash"; func f() uint64 { return maphash.Bytes(maphash.MakeSeed(), nil) }`, "import of hash/maphash: only internal/store/hashkey.go"},
		{"environment", `import _ "os/exec"`, "import of os/exec"},
		{"network", `import _ "net/http"`, "import of net/http"},
		{"machine", `import "runtime"; func f() int { return runtime.NumCPU() }`, "import of runtime"},

		{"lock", `import "sync"; func f(m *sync.Mutex) { m.Lock() }`, ""},
		{"goroutine", "func f() { go f() }", "go statement"},
		{"goroutine of a group", `import "sync"; func f() { var w sync.WaitGroup; w.Go(func() {}); w.Wait() }`, "sync.WaitGroup"},
		{"goroutine of an iterator", `import "iter"; func f(s iter.Seq[int]) { n, _ := iter.Pull(s); n() }`, "iter.Pull"},
		{"goroutine of a context", `import "context"; func f() { context.AfterFunc(context.Background(), func() {}) }`, "import of context"},
		{"goroutine of a timer", `import "time"; func f() { time.AfterFunc(0, f) }`, "time.AfterFunc"},
		{"goroutine of the collector", `import "runtime"; func f(p *int) { runtime.AddCleanup(p, func(int) {}, 1) }`, "import of runtime"},
		{"channel", "type t struct { c chan int }", "channel"},
		{"select", "func f() { select {} }", "select"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkFirst(t, Determinism(typed(t, "internal/store/player.go", tt.text), ""), tt.want)
		})
	}
}

func TestState(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"table", "var names = [...]string{`a`}\nfunc f(i int) string { return names[i] + names[0][:1] }", ""},
		{"table of structures", "var all = [2]struct{ a int; b [2]bool }{}\nfunc f() int { for _, x := range all { _ = x.b }; return all[0].a }", ""},
		{"sentinel", `import "errors"; var errX = errors.New("x"); func f() error { return errX }`, ""},
		{"variable of another package", `import "encoding/binary"; func f(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }`, ""},
		{"interface checked", "type t struct{}\nfunc (*t) Error() string { return `` }\nvar _ error = (*t)(nil)", ""},

		{"slice", "var names = []string{`a`}", "package-level variable names is a []string"},
		{"map", "var ids = map[string]int{}", "package-level variable ids"},
		{"map with a method", "type c map[string]int\nfunc (x c) inc() int { x[`a`]++; return x[`a`] }\nvar v = c{}\nfunc f() int { return v.inc() }", "package-level variable v"},
		{"pointers", "type t struct{ n int }\nvar all = [1]*t{{}}\nfunc f() int { for _, p := range all { p.n++ }; return len(all) }", "package-level variable all"},
		{"pointer inside", "var v struct{ a [1]struct{ p *int } }", "package-level variable v"},
		{"pointer of no type", "import \"unsafe\"\nvar p unsafe.Pointer", "package-level variable p"},
		{"interface", "type source interface{ Uint64() uint64 }\nvar src source\nfunc f() uint64 { return src.Uint64() }", "package-level variable src"},
		{"closure", "var next = func() func() int { n := 0; return func() int { n++; return n } }()\nfunc f() int { return next() }", "package-level variable next"},
		{"channel", "var c <-chan int", "package-level variable c"},
		{"error with state", "type t struct{ n int }\nfunc (x *t) Error() string { x.n++; return string(rune(x.n)) }\nvar err error = &t{}", "package-level variable err"},

		{"counter", "var n int\nfunc f() { n++ }", "package-level variable n"},
		{"assigned", "var n int\nfunc f() { n = 2 }", "package-level variable n"},
		{"assigned with others", "var n int\nfunc f() { var m int; m, n = 1, 2; _ = m }", "package-level variable n"},
		{"assigned inside", "var n [3]struct{ a int }\nfunc f() { (n[1]).a = 2 }", "package-level variable n"},
		{"assigned by another package", "import \"errors\"\nfunc f() { errors.ErrUnsupported = nil }", "package-level variable ErrUnsupported"},
		{"address taken", "var n int\nfunc f() *int { return &n }", "package-level variable n"},
		{"address of a part taken", "var n [3]int\nfunc f() *int { return &n[2] }", "package-level variable n"},
		{"array sliced", "var a [3]int\nfunc f() []int { return a[:] }", "package-level variable a"},
		{"pointer method", "type t struct{ n int }\nfunc (x *t) inc() { x.n++ }\nvar v t\nfunc f() { v.inc() }", "package-level variable v"},
		{"pointer method of an atomic", "import \"sync/atomic\"\nvar v atomic.Uint64\nfunc f() { v.Add(1) }", "package-level variable v"},
		{"range target", "var n int\nfunc f() { for n = range 3 {} }", "package-level variable n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkFirst(t, Determinism(typed(t, "internal/store/player.go", tt.text), ""), tt.want)
		})
	}
}

// TestUseByOneFile: an exception for a file holds for that file alone, and for no more than it says.
func TestUseByOneFile(t *testing.T) {
	const head = `import "hash/maphash"; func f() uint64 { `
	for _, tt := range []struct{ path, text, want string }{
		{"internal/store/hashkey.go", `return maphash.String(maphash.MakeSeed(), "")`, ""},
		{"internal/store/hashkey.go", `return new(maphash.Hash).Sum64()`, "hash/maphash.Hash"},
		{"internal/store/names.go", `return maphash.String(maphash.MakeSeed(), "")`, "only internal/store/hashkey.go may"},
		{"sampler/hashkey.go", `return maphash.String(maphash.MakeSeed(), "")`, "only internal/store/hashkey.go may"},
	} {
		checkFirst(t, Determinism(typed(t, tt.path, head+tt.text+" }"), ""), tt.want)
	}
}

// TestUseByOneRoom: locks are for the store, and unsafe is for its players' memory.
func TestUseByOneRoom(t *testing.T) {
	for _, tt := range []struct{ path, text, want string }{
		{"internal/store/view.go", `import "sync"; func f(m *sync.Mutex) { m.Lock() }`, ""},
		{"internal/store/view.go", `import "sync/atomic"; func f(n *atomic.Uint32) { n.Load() }`, ""},
		{"internal/rules/view.go", `import "sync"; func f(m *sync.Mutex) { m.Lock() }`, "only internal/store may"},
		{"internal/rules/view.go", `import "sync/atomic"; func f(n *atomic.Uint32) { n.Load() }`, "only internal/store may"},
		{"internal/storeroom/view.go", `import "sync"; func f(m *sync.Mutex) { m.Lock() }`, "only internal/store may"},
		{"internal/store/view.go", `import "unsafe"; func f() uintptr { return unsafe.Sizeof(1) }`, "it stays in the memory of players"},
		{"internal/rules/view.go", `import "unsafe"; func f() uintptr { return unsafe.Sizeof(1) }`, "it stays in the memory of players"},
	} {
		checkFirst(t, Determinism(typed(t, tt.path, tt.text), ""), tt.want)
	}
}

// checkFirst checks the first finding: others may say the same.
func checkFirst(t *testing.T, found []Finding, want string) {
	t.Helper()
	check(t, found[:min(1, len(found))], want)
}

func typed(t *testing.T, path, text string) *Typed {
	t.Helper()
	s := source(t, path, "package p\n"+text)
	info := NewInfo()
	pkg, err := (&types.Config{Importer: importer.Default()}).Check("p", s.Fset, []*ast.File{s.AST}, info)
	if err != nil {
		t.Fatal(err)
	}
	return &Typed{Fset: s.Fset, Files: []*ast.File{s.AST}, Pkg: pkg, Info: info}
}
