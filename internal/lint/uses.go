package lint

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// use is another module's or the standard library's package that the deterministic rooms may use.
type use struct {
	pkg   string
	names string // its names that may be used; "": all
	in    string // the files or rooms that may use it; "": all
	why   string // why other names, or other files, may not
}

// uses is everything that the deterministic rooms may use from other modules and the standard library.
// Add to it only what gives the same result for the same arguments on every machine. The store has
// locks because readers run concurrently with the one writer. The writer alone decides results.
var uses = []use{
	{pkg: "bytes"},
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
	{pkg: "sync/atomic", in: "internal/store", why: "only the store has readers next to its writer"},
	{pkg: "unsafe", in: "internal/store/player.go internal/store/arena.go internal/store/index.go", why: "it stays in the memory of players"},
	{pkg: "fmt", names: "Errorf Sprint Sprintf", why: "rules neither read nor write"},
	{pkg: "iter", names: "Seq Seq2", why: "Pull starts a goroutine"},
	{pkg: "maps", names: "Clone", why: "the rest has a random order"},
	{pkg: "math/big", names: "Float Int NewInt NewRat Rat", why: "everything here is counted in integers, fractions of them, and numbers of a fixed precision"},
	{pkg: "sync", names: "Mutex", in: "internal/store", why: "WaitGroup starts goroutines, Map has a random order, Pool depends on the garbage collector"},
	{pkg: "time", names: "Duration Millisecond Minute", why: "time is an argument, and there are no timers"},
	// Unicode never changes what it says about a character. No state depends on it.
	{pkg: "unicode", names: "In Zs Pd Pc Cf", in: "internal/store/fold.go", why: "tables grow with Unicode"},
	{pkg: "golang.org/x/text/cases", names: "Fold", in: "internal/store/fold.go", why: "tables grow with Unicode"},
	{pkg: "golang.org/x/text/unicode/norm", names: "NFKC", in: "internal/store/fold.go", why: "tables grow with Unicode"},
	// The hash key of ids is new at every start, so that nobody can look for ids that collide. No
	// result depends on it.
	{pkg: "hash/maphash", names: "Bytes MakeSeed Seed String", in: "internal/store/hashkey.go", why: "a seed is entropy, which is an argument"},
}

// useOf returns what may be used of a package. [Imports] checks the project's own packages.
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

// within reports whether a file is named in all, or is in a room that is.
func within(file, all string) bool {
	return slices.ContainsFunc(strings.Fields(all), func(one string) bool {
		return file == one || strings.HasPrefix(file, one+"/")
	})
}

// imports reports packages that a file may not use, and names that it takes by go:linkname.
func (c *determinism) imports(file *ast.File) {
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		switch u, ok := useOf(target); {
		case !ok:
			c.report(spec.Pos(), "import of %s: rules know no clock, entropy, files, network or goroutines; what they may use stands in internal/lint/uses.go", target)
		case u.in != "" && !within(c.path(spec.Pos()), u.in):
			c.report(spec.Pos(), "import of %s: only %s may: %s", target, u.in, u.why)
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

// name reports a name that may not be used, of a package that may.
func (c *determinism) name(id *ast.Ident, obj types.Object) {
	if obj.Pkg() == c.typed.Pkg {
		return
	}
	u, ok := useOf(obj.Pkg().Path())
	if ok && u.names != "" && !slices.Contains(strings.Fields(u.names), obj.Name()) {
		c.report(id.Pos(), "%s.%s: %s", u.pkg, obj.Name(), u.why)
	}
}
