package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

// variables reports package-level variables whose copies share something that can change: slices,
// maps, pointers, functions and interfaces. So tables are arrays. The one interface allowed is error,
// for sentinels made by errors.New.
func (c *determinism) variables(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				obj := c.typed.Info.Defs[name]
				if obj == nil || name.Name == "_" {
					continue
				}
				sentinel := isError(obj.Type()) && len(spec.Values) == len(spec.Names) && c.makesError(spec.Values[i])
				if !sentinel && !isValue(obj.Type()) {
					c.report(name.Pos(), "package-level variable %s is a %s, which could be changed from anywhere: a table is an array, an error is made by errors.New", name.Name, obj.Type())
				}
			}
		}
	}
}

// makesError reports whether expr is a call of errors.New.
func (c *determinism) makesError(expr ast.Expr) bool {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	fn, ok := c.typed.Info.Uses[sel.Sel].(*types.Func)
	return ok && fn.FullName() == "errors.New"
}

// changes reports whether a use of a package-level variable could change it or a part of it. By the
// rule of variables, a part is an element of an array or a field of a struct.
func (c *determinism) changes(id *ast.Ident, parents []ast.Node) bool {
	var node ast.Node = id
	for i := len(parents) - 1; i >= 0; i-- {
		switch parent := parents[i].(type) {
		case *ast.ParenExpr:
		case *ast.IndexExpr:
			if parent.X != node {
				return false // an index
			}
		case *ast.SelectorExpr:
			if c.pointerMethod(parent) {
				return true
			}
		case *ast.AssignStmt:
			for _, left := range parent.Lhs {
				if left == node {
					return true
				}
			}
			return false
		case *ast.IncDecStmt:
			return true
		case *ast.UnaryExpr:
			return parent.Op == token.AND
		case *ast.SliceExpr:
			// A slice of an array shares its memory; a piece of a string does not.
			return parent.X == node && !isString(c.typed.Info.TypeOf(parent.X))
		case *ast.RangeStmt:
			return parent.Key == node || parent.Value == node
		default:
			return false
		}
		node = parents[i]
	}
	return false
}

// pointerMethod reports whether sel is a method that could change its receiver.
func (c *determinism) pointerMethod(sel *ast.SelectorExpr) bool {
	fn, ok := c.typed.Info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return false
	}
	_, pointer := fn.Signature().Recv().Type().Underlying().(*types.Pointer)
	return pointer
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// isValue reports whether a copy of t shares nothing that can change.
func isValue(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Kind() != types.UnsafePointer
	case *types.Array:
		return isValue(t.Elem())
	case *types.Struct:
		for field := range t.Fields() {
			if !isValue(field.Type()) {
				return false
			}
		}
		return true
	}
	return false
}
