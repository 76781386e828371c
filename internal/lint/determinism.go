package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// Deterministic are the rooms in which the same input must give the same output on every run and
// machine, bit for bit.
var Deterministic = []string{"internal/odds", "internal/plan", "internal/rules", "internal/store", "internal/look", "sampler"}

// Typed is a package with its types, as far as the rules need them.
type Typed struct {
	Fset  *token.FileSet
	Files []*ast.File // without tests
	Pkg   *types.Package
	Info  *types.Info
}

// NewInfo returns the tables that a type check must fill for a [Typed].
func NewInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
}

// Determinism reports what could make a deterministic package give another result on another run:
// floats, iteration over maps, goroutines and channels, package-level state, and anything from other
// packages that is not in [uses]. That leaves out the clock, entropy, files, what starts goroutines
// and what shows the order of a map.
func Determinism(p *Typed, root string) []Finding {
	c := &determinism{typed: p, root: root, seen: map[string]bool{}}
	for _, file := range p.Files {
		c.imports(file)
		c.variables(file)
		var parents []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				parents = parents[:len(parents)-1]
				return true
			}
			c.node(n, parents)
			parents = append(parents, n)
			return true
		})
	}
	return c.found
}

type determinism struct {
	typed *Typed
	root  string // findings are relative to it
	found []Finding
	seen  map[string]bool // one finding for each line and message
}

// path returns the file that pos is in, relative to the root.
func (c *determinism) path(pos token.Pos) string {
	return relative(c.root, c.typed.Fset.Position(pos).Filename)
}

func (c *determinism) report(pos token.Pos, format string, args ...any) {
	f := Finding{Rule: "Determinism", Path: c.path(pos), Line: c.typed.Fset.Position(pos).Line, Message: fmt.Sprintf(format, args...)}
	if !c.seen[f.String()] {
		c.seen[f.String()] = true
		c.found = append(c.found, f)
	}
}

func (c *determinism) node(n ast.Node, parents []ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n.Pos(), "go statement: everything runs on the caller's goroutine")
	case *ast.SelectStmt:
		c.report(n.Pos(), "select: which case runs is random")
	case *ast.ChanType:
		c.report(n.Pos(), "channel: everything runs on the caller's goroutine")
	case *ast.RangeStmt:
		if t := c.typed.Info.TypeOf(n.X); t != nil && canBeMap(t) {
			c.report(n.Pos(), "range over a map: its order is random; keep a slice with it")
		}
	case *ast.Ident:
		if obj := c.typed.Info.Uses[n]; obj != nil && obj.Pkg() != nil && obj.Pkg().Scope().Lookup(obj.Name()) == obj {
			c.name(n, obj)
			if _, ok := obj.(*types.Var); ok && c.changes(n, parents) {
				c.report(n.Pos(), "package-level variable %s is changed, or could be: state belongs to a value that the caller holds", n.Name)
			}
		}
	}
	if expr, ok := n.(ast.Expr); ok {
		if t := c.typed.Info.TypeOf(expr); t != nil && isFloat(t) {
			c.report(expr.Pos(), "floating point: everything here is counted in integers")
		}
	}
}

// canBeMap reports whether t is a map, or a type parameter that can stand for one.
func canBeMap(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Union:
		for term := range t.Terms() {
			if canBeMap(term.Type()) {
				return true
			}
		}
	case *types.Interface: // what a type parameter may be
		for embedded := range t.EmbeddedTypes() {
			if canBeMap(embedded) {
				return true
			}
		}
	}
	return false
}

func isFloat(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}
