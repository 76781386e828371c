package kuji_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestAliasesAreDocumented: of a type that stands in an internal package, whoever
// reads the documentation sees nothing but the comment of its alias. So that
// has to name every field.
func TestAliasesAreDocumented(t *testing.T) {
	comments := map[string]string{}
	for _, file := range []string{"result.go", "view.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				comments[gen.Specs[0].(*ast.TypeSpec).Name.Name] = gen.Doc.Text()
			}
		}
	}
	for name, of := range map[string]reflect.Type{
		"Outcome": reflect.TypeFor[kuji.Outcome](),
		"Plan":    reflect.TypeFor[kuji.Plan](),
		"Change":  reflect.TypeFor[kuji.Change](),
	} {
		for i := range of.NumField() {
			field := of.Field(i).Name
			if !regexp.MustCompile(`(?m)^\t.*\b` + field + `\b`).MatchString(comments[name]) {
				t.Errorf("the comment of %s does not say that there is %s", name, field)
			}
		}
	}
}
