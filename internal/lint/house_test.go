package lint_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/kuji-dev/kuji/internal/lint"
)

// TestHouse applies every rule to the repository.
func TestHouse(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := lint.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Sources) < 10 {
		t.Fatalf("loaded %d Go files from %s: the rules would hold of nothing", len(tree.Sources), root)
	}
	var found []lint.Finding
	for _, rule := range []func(*lint.Source) []lint.Finding{lint.Imports, lint.Names, lint.Lengths, lint.Calls} {
		for _, s := range tree.Sources {
			found = append(found, rule(s)...)
		}
	}
	found = append(found, lint.PackageComments(tree.Sources)...)
	for _, text := range tree.Texts {
		found = append(found, lint.Phrases(text)...)
		found = append(found, lint.Links(root, text)...)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestDeterministicRooms type-checks the rooms in which replay must give the
// same state everywhere.
func TestDeterministicRooms(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, dir := range lint.Deterministic {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, "./"+dir+"/...")
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: root,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < len(lint.Deterministic) {
		t.Fatalf("%d packages loaded, want at least %d", len(pkgs), len(lint.Deterministic))
	}
	for _, pkg := range pkgs {
		for _, err := range pkg.Errors {
			t.Errorf("%s: %v", pkg.PkgPath, err)
		}
		var files []*ast.File
		files = append(files, pkg.Syntax...)
		for _, f := range lint.Determinism(&lint.Typed{Fset: pkg.Fset, Files: files, Pkg: pkg.Types, Info: pkg.TypesInfo}, root) {
			t.Error(f)
		}
	}
}
