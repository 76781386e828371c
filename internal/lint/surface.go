package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Public are the packages that programs outside this module can use.
var Public = []string{".", "view", "verify", "backup", "chat", "client", "catalog", "wal", "sampler", "server", "server/access", "history", "sink", "driver", "driver/disk", "driver/memory", "driver/drivertest", "driver/jetstream", "driver/jetstream/embedded", "driver/postgres"}

// Surface reports what a package exports and only this module can use: functions, fields, methods and
// types whose type is in an internal package. Programs that embed Kuji see it in the documentation
// and cannot name its type. Tests reach what they need through internal/hook.
func Surface(t *Typed, root string) []Finding {
	c := &surface{typed: t, root: root, named: map[*types.TypeName]bool{}}
	c.aliases(t.Pkg)
	for _, pkg := range t.Pkg.Imports() {
		if !strings.HasPrefix(pkg.Path(), Module+"/internal/") {
			c.aliases(pkg)
		}
	}
	scope := t.Pkg.Scope()
	for _, name := range scope.Names() {
		if obj := scope.Lookup(name); obj.Exported() {
			c.object(obj)
		}
	}
	return c.found
}

type surface struct {
	typed *Typed
	root  string
	named map[*types.TypeName]bool // internal types that have an exported alias
	found []Finding
}

// aliases notes what a package has an exported alias for. An alias names a type for everybody.
func (c *surface) aliases(pkg *types.Package) {
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if decl, ok := scope.Lookup(name).(*types.TypeName); ok && decl.Exported() && decl.IsAlias() {
			if t, ok := types.Unalias(decl.Type()).(*types.Named); ok {
				c.named[t.Obj()] = true
			}
		}
	}
}

// object checks an exported name of the package.
func (c *surface) object(obj types.Object) {
	decl, isType := obj.(*types.TypeName)
	if !isType {
		c.uses(obj.Type(), obj.Pos(), obj.Name())
		return
	}
	named, ok := obj.Type().(*types.Named)
	if decl.IsAlias() {
		named, ok = types.Unalias(obj.Type()).(*types.Named)
	}
	if !ok {
		c.uses(types.Unalias(obj.Type()), obj.Pos(), obj.Name())
		return
	}
	c.uses(named.Underlying(), obj.Pos(), obj.Name())
	for m := range named.Methods() {
		if m.Exported() {
			c.uses(m.Type(), m.Pos(), obj.Name()+"."+m.Name())
		}
	}
}

// uses reports the internal types in a type.
func (c *surface) uses(t types.Type, pos token.Pos, what string) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if pkg := t.Obj().Pkg(); pkg != nil && !c.named[t.Obj()] && strings.HasPrefix(pkg.Path(), Module+"/internal/") {
			at := c.typed.Fset.Position(pos)
			c.found = append(c.found, Finding{Rule: "Surface", Path: relative(c.root, at.Filename), Line: at.Line,
				Message: fmt.Sprintf("%s is exported and has the type %s.%s, which nobody outside can name", what, pkg.Name(), t.Obj().Name())})
		}
		for arg := range t.TypeArgs().Types() {
			c.uses(arg, pos, what)
		}
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a map or a channel
		if m, ok := t.(*types.Map); ok {
			c.uses(m.Key(), pos, what)
		}
		c.uses(t.Elem(), pos, what)
	case *types.Signature:
		for v := range t.Params().Variables() {
			c.uses(v.Type(), pos, what)
		}
		for v := range t.Results().Variables() {
			c.uses(v.Type(), pos, what)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				c.uses(f.Type(), f.Pos(), what+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				c.uses(m.Type(), m.Pos(), what+"."+m.Name())
			}
		}
	}
}

// Constants reports constants of a public package whose value is written as a constant of an internal
// package: the documentation then shows no value.
func Constants(s *Source) []Finding {
	if s.Test || !slices.Contains(Public, s.Dir()) {
		return nil
	}
	internal := map[string]bool{} // by the last part of the path
	for _, spec := range s.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasPrefix(p, Module+"/internal/") {
			internal[p[strings.LastIndex(p, "/")+1:]] = true
		}
	}
	var found []Finding
	for _, decl := range s.AST.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			values := spec.(*ast.ValueSpec)
			if !slices.ContainsFunc(values.Names, func(n *ast.Ident) bool { return n.IsExported() }) {
				continue
			}
			ast.Inspect(spec, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := sel.X.(*ast.Ident); ok && internal[pkg.Name] {
						found = append(found, s.finding("Constants", spec.Pos(), "%s is %s.%s: write its value, which go doc shows, and compare the two at compile time", values.Names[0].Name, pkg.Name, sel.Sel.Name))
					}
				}
				return true
			})
		}
	}
	return found
}
