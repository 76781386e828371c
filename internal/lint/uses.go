package lint

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// use is a package of others that the deterministic rooms may use.
type use struct {
	pkg   string
	names string // the only ones of its names, or "" for all
	file  string // the only one that may, an exception; or "" for any
	why   string // the rest of its names, or other files, may not
}

// uses is all that the deterministic rooms may use of other modules and of the
// standard library, which is little: whoever needs more adds it here, if what
// it gives follows from its arguments on every machine. Locks are allowed:
// readers run beside the one writer, who alone decides what comes out.
var uses = []use{
	{pkg: "cmp"},
	{pkg: "crypto/sha256"},
	{pkg: "encoding/binary"},
	{pkg: "errors"},
	{pkg: "hash"},
	{pkg: "math"},
	{pkg: "math/bits"},
	{pkg: "slices"},
	{pkg: "sort"},
	{pkg: "strings"},
	{pkg: "sync/atomic"},
	{pkg: "unsafe"},
	{pkg: "fmt", names: "Errorf Sprint Sprintf", why: "rules neither read nor write"},
	{pkg: "iter", names: "Seq Seq2", why: "Pull starts a goroutine"},
	{pkg: "maps", names: "Clone", why: "the rest has a random order"},
	{pkg: "math/big", names: "Int", why: "everything here is counted in integers"},
	{pkg: "runtime", names: "Gosched", why: "differs by machine and by run"},
	{pkg: "sync", names: "Mutex", why: "WaitGroup starts goroutines, Map has a random order, Pool depends on the garbage collector"},
	{pkg: "time", names: "Duration Millisecond", why: "time is an argument, and there are no timers"},
	// The key by which ids are found is new at every start, so that nobody finds ids
	// that collide. Nothing that comes out depends on it.
	{pkg: "hash/maphash", names: "MakeSeed String", file: "internal/economy/hashkey.go", why: "a seed is entropy, which is an argument"},
}

// useOf returns what may be used of a package. Those of the project stand in the
// plan of the house: see [Imports].
func useOf(pkg string) (use, bool) {
	if _, ours := projectDir(pkg); ours {
		return use{pkg: pkg}, true
	}
	i := slices.IndexFunc(uses, func(u use) bool { return u.pkg == pkg })
	if i < 0 {
		return use{}, false
	}
	return uses[i], true
}

// imports reports packages that a file may not use, and what it takes from others
// without an import.
func (c *determinism) imports(file *ast.File) {
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		switch u, ok := useOf(target); {
		case !ok:
			c.report(spec.Pos(), "import of %s: rules know no clock, entropy, files, network or goroutines; what they may use stands in internal/lint/uses.go", target)
		case u.file != "" && u.file != c.path(spec.Pos()):
			c.report(spec.Pos(), "import of %s: only %s may: %s", target, u.file, u.why)
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:linkname ") {
				c.report(comment.Pos(), "go:linkname: what it leads to cannot be checked")
			}
		}
	}
}

// name reports a name of another package that may not be used, where the package may.
func (c *determinism) name(id *ast.Ident, obj types.Object) {
	if obj.Pkg() == c.typed.Pkg {
		return
	}
	u, ok := useOf(obj.Pkg().Path())
	if ok && u.names != "" && !slices.Contains(strings.Fields(u.names), obj.Name()) {
		c.report(id.Pos(), "%s.%s: %s", u.pkg, obj.Name(), u.why)
	}
}
