package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		t.Fatalf("loaded %d Go files from %s: the rules would check nothing", len(tree.Sources), root)
	}
	var found []lint.Finding
	for _, rule := range []func(*lint.Source) []lint.Finding{lint.Imports, lint.Names, lint.Lengths, lint.Calls, lint.Unsafe, lint.Constants} {
		for _, s := range tree.Sources {
			found = append(found, rule(s)...)
		}
	}
	found = append(found, lint.PackageComments(tree.Sources)...)
	found = append(found, lint.Sizes(tree.Sources)...)
	for _, text := range tree.Texts {
		found = append(found, lint.Phrases(text)...)
		found = append(found, lint.Links(root, text)...)
		found = append(found, lint.Wrapped(text)...)
		found = append(found, lint.Files(tree.Sources, text)...)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestCoreIsLight lists everything that is compiled into a program that embeds Kuji.
func TestCoreIsLight(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range lint.Core {
		pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps, Dir: root}, "./"+dir)
		if err != nil {
			t.Fatal(err)
		}
		var deps []string
		packages.Visit(pkgs, func(p *packages.Package) bool {
			deps = append(deps, p.PkgPath)
			return true
		}, nil)
		if !slices.Contains(deps, "errors") {
			t.Fatalf("%s is built of %v: the rule would check nothing", dir, deps)
		}
		for _, f := range lint.Light(dir, deps) {
			t.Error(f)
		}
	}
}

// TestSurface looks at what the public packages export.
func TestSurface(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	patterns := make([]string, len(lint.Public))
	for i, dir := range lint.Public {
		patterns[i] = "./" + dir
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedExportFile, Dir: root,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) != len(lint.Public) {
		t.Fatalf("loaded %d packages, want %v", len(pkgs), lint.Public)
	}
	for _, pkg := range pkgs {
		if pkg.Types == nil || len(pkg.Types.Scope().Names()) == 0 {
			t.Fatalf("%s has no names: the rule would check nothing", pkg.PkgPath)
		}
		for _, f := range lint.Surface(&lint.Typed{Fset: pkg.Fset, Pkg: pkg.Types}, root) {
			t.Error(f)
		}
	}
}

// builds are settings of the go command. Together they build every file of the deterministic rooms,
// so that the rules are checked in each.
var builds = []string{"GOARCH=amd64", "GOARCH=arm64"}

// TestDeterministicRooms checks the rooms in which replay must give the same state everywhere.
func TestDeterministicRooms(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := lint.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var patterns, unseen []string
	for _, dir := range lint.Deterministic {
		patterns = append(patterns, "./"+dir+"/...")
		for _, s := range tree.Sources {
			if strings.HasPrefix(s.Path, dir+"/") && !s.Test {
				unseen = append(unseen, filepath.Join(root, filepath.FromSlash(s.Path)))
			}
		}
	}
	if len(unseen) < 2*len(lint.Deterministic) {
		t.Fatalf("%d files in the rooms %v: the rules would check nothing", len(unseen), lint.Deterministic)
	}
	for _, build := range builds {
		pkgs, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
			Dir: root,
			Env: append(os.Environ(), build),
		}, patterns...)
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range pkgs {
			for _, err := range pkg.Errors {
				t.Errorf("%s: %s: %v", build, pkg.PkgPath, err)
			}
			for _, f := range lint.Determinism(&lint.Typed{Fset: pkg.Fset, Files: pkg.Syntax, Pkg: pkg.Types, Info: pkg.TypesInfo}, root) {
				t.Error(f)
			}
			unseen = slices.DeleteFunc(unseen, func(file string) bool {
				return slices.Contains(pkg.CompiledGoFiles, file)
			})
		}
	}
	for _, file := range unseen {
		t.Errorf("%s is in none of the builds %v, and so was not checked", file, builds)
	}
}
