package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// Deterministic are the rooms in which the same input must give the same
// output, bit for bit, on every run and every machine.
var Deterministic = []string{"internal/economy", "sampler"}

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

// noImport are packages that bring the world in: entropy, the clock of another
// process, files. Locks are allowed: readers run beside the one writer, who
// alone decides what comes out; starting a goroutine is not.
var noImport = map[string]string{
	"crypto/rand": "entropy is an argument",
	"log":         "rules do not log",
	"log/slog":    "rules do not log",
	"net":         "rules do not communicate",
	"os":          "rules know no files and no environment",
	"syscall":     "rules know no system",
}

// noFunc are functions whose result depends on something other than their arguments.
var noFunc = map[string]map[string]string{
	"time": {
		"Now": "time is an argument", "Since": "time is an argument", "Until": "time is an argument",
		"After": "no timers", "AfterFunc": "no timers", "Tick": "no timers",
		"NewTimer": "no timers", "NewTicker": "no timers", "Sleep": "no timers",
	},
	"maps": {
		"All": "the order of a map is random", "Keys": "the order of a map is random", "Values": "the order of a map is random",
	},
	"runtime": {
		"NumCPU": "differs by machine", "GOMAXPROCS": "differs by machine", "NumGoroutine": "differs by run",
	},
}

// Determinism reports what could make a deterministic package give another
// result on another run: floats, iteration over maps, the clock, shared random
// sources, goroutines and channels, and package-level state.
func Determinism(p *Typed, root string) []Finding {
	c := &determinism{typed: p, root: root, seen: map[string]bool{}}
	for _, file := range p.Files {
		for _, spec := range file.Imports {
			if target, err := strconv.Unquote(spec.Path.Value); err == nil && noImport[target] != "" {
				c.report(spec.Pos(), "import of %s: %s", target, noImport[target])
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			c.node(n)
			return true
		})
	}
	c.packageState()
	return c.found
}

type determinism struct {
	typed *Typed
	root  string // findings are relative to it
	found []Finding
	seen  map[string]bool // one finding for each line and message
}

func (c *determinism) report(pos token.Pos, format string, args ...any) {
	at := c.typed.Fset.Position(pos)
	f := Finding{Rule: "Determinism", Path: relative(c.root, at.Filename), Line: at.Line, Message: fmt.Sprintf(format, args...)}
	if !c.seen[f.String()] {
		c.seen[f.String()] = true
		c.found = append(c.found, f)
	}
}

func (c *determinism) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n.Pos(), "go statement: everything runs on the caller's goroutine")
	case *ast.SelectStmt:
		c.report(n.Pos(), "select: which case runs is random")
	case *ast.ChanType:
		c.report(n.Pos(), "channel: everything runs on the caller's goroutine")
	case *ast.RangeStmt:
		if t := c.typed.Info.TypeOf(n.X); t != nil {
			if _, isMap := t.Underlying().(*types.Map); isMap {
				c.report(n.Pos(), "range over a map: its order is random; keep a slice beside it")
			}
		}
	case *ast.Ident:
		c.use(n)
	}
	if expr, ok := n.(ast.Expr); ok {
		if t := c.typed.Info.TypeOf(expr); t != nil && isFloat(t) {
			c.report(expr.Pos(), "floating point: everything here is counted in integers")
		}
	}
}

func (c *determinism) use(id *ast.Ident) {
	obj := c.typed.Info.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return
	}
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Recv() != nil {
		return
	}
	pkg := obj.Pkg().Path()
	if why := noFunc[pkg][obj.Name()]; why != "" {
		c.report(id.Pos(), "%s.%s: %s", pkg, obj.Name(), why)
	}
	if (pkg == "math/rand" || pkg == "math/rand/v2") && !strings.HasPrefix(obj.Name(), "New") {
		c.report(id.Pos(), "%s.%s draws from a source that the process shares: use the source that was passed in", pkg, obj.Name())
	}
}

func isFloat(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}

// packageState reports package-level variables that are, or could be, changed:
// a table that is only looked into may stay.
func (c *determinism) packageState() {
	vars := map[types.Object]bool{}
	for _, file := range c.typed.Files {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if obj := c.typed.Info.Defs[name]; obj != nil && name.Name != "_" {
						vars[obj] = true
					}
				}
			}
		}
	}
	for _, file := range c.typed.Files {
		var parents []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				parents = parents[:len(parents)-1]
				return true
			}
			if id, ok := n.(*ast.Ident); ok {
				if obj := c.typed.Info.Uses[id]; obj != nil && vars[obj] && !c.onlyRead(id, obj, parents) {
					c.report(id.Pos(), "package-level variable %s is changed, or handed to where it could be: state belongs to a value that the caller holds", id.Name)
				}
			}
			parents = append(parents, n)
			return true
		})
	}
}

// onlyRead reports whether one use of a package-level variable cannot change it.
func (c *determinism) onlyRead(id *ast.Ident, obj types.Object, parents []ast.Node) bool {
	var node ast.Node = id
	for i := len(parents) - 1; i >= 0; i-- {
		switch parent := parents[i].(type) {
		case *ast.IndexExpr:
			if parent.X != node {
				return true // an index
			}
			node = parent
			continue
		case *ast.SelectorExpr:
			if c.pointerMethod(parent) {
				return false
			}
			node = parent
			continue
		case *ast.ParenExpr:
			node = parent
			continue
		case *ast.AssignStmt:
			for _, left := range parent.Lhs {
				if left == node {
					return false
				}
			}
		case *ast.IncDecStmt:
			return false
		case *ast.UnaryExpr:
			if parent.Op == token.AND {
				return false
			}
		case *ast.SliceExpr:
			// A slice of an array shares its memory; a piece of a string does not.
			return parent.X != node || isString(c.typed.Info.TypeOf(parent.X))
		case *ast.RangeStmt:
			if parent.Key == node || parent.Value == node {
				return false
			}
			return true
		case *ast.CallExpr:
			if fn, ok := parent.Fun.(*ast.Ident); ok && (fn.Name == "len" || fn.Name == "cap") {
				return true
			}
		}
		break
	}
	expr, ok := node.(ast.Expr)
	return ok && isValue(c.typed.Info.TypeOf(expr), 0)
}

// pointerMethod reports whether sel is a method that could change what it is called on.
func (c *determinism) pointerMethod(sel *ast.SelectorExpr) bool {
	fn, ok := c.typed.Info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return false
	}
	_, pointer := fn.Signature().Recv().Type().Underlying().(*types.Pointer)
	return pointer
}

func isString(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// isValue reports whether a copy of t shares nothing that can be changed. An
// interface counts as a value when it is error: sentinels are compared, not changed.
func isValue(t types.Type, depth int) bool {
	if t == nil || depth > 8 {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic, *types.Signature:
		return true
	case *types.Array:
		return isValue(u.Elem(), depth+1)
	case *types.Struct:
		for field := range u.Fields() {
			if !isValue(field.Type(), depth+1) {
				return false
			}
		}
		return true
	case *types.Interface:
		return types.Identical(t, types.Universe.Lookup("error").Type())
	}
	return false
}
