package lint

import (
	"go/ast"
	"strings"
)

// The most fields and methods of a type. One with more is several types.
const (
	MaxFields  = 15
	MaxMethods = 25
)

// Sizes reports types with too many fields or methods. Structs whose fields are all exported may have
// any number: they are the shape of something, such as a report or a line of JSON.
func Sizes(sources []*Source) []Finding {
	const rule = "Sizes"
	var found []Finding
	methods := map[string]int{}
	for _, s := range sources {
		if s.Test || s.Generated {
			continue
		}
		for _, decl := range s.AST.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[s.Dir()+"."+receiver(fn)]++
			}
		}
	}
	for _, s := range sources {
		if s.Test || s.Generated {
			continue
		}
		for _, spec := range typesIn(s) {
			name := strings.TrimPrefix(s.Dir()+"."+spec.Name.Name, ".")
			n := methods[s.Dir()+"."+spec.Name.Name]
			fields, hidden := fieldsOf(spec)
			if n > MaxMethods || fields > MaxFields && hidden {
				found = append(found, s.finding(rule, spec.Pos(), "%s has %d fields and %d methods, at most %d and %d: it is several types", name, fields, n, MaxFields, MaxMethods))
			}
		}
	}
	return found
}

// typesIn returns the types that a file declares.
func typesIn(s *Source) (all []*ast.TypeSpec) {
	for _, decl := range s.AST.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range gen.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// receiver returns the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// fieldsOf counts the fields of a struct, and says whether one of them is not exported.
func fieldsOf(t *ast.TypeSpec) (n int, hidden bool) {
	st, ok := t.Type.(*ast.StructType)
	if !ok {
		return 0, false
	}
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
		for _, name := range f.Names {
			hidden = hidden || !name.IsExported()
		}
	}
	return n, hidden
}
