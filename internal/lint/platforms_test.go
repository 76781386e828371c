package lint_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var (
	platforms = flag.String("platforms", "", "as which platforms see them the types of everything here are checked, such as windows/amd64, separated by commas")
	modules   = flag.String("modules", "", "folders with modules of their own whose types are checked, too, separated by commas")
)

// TestPlatforms checks the types of all packages as other platforms see them. That finds names that
// only one of them has. make nightly builds them.
func TestPlatforms(t *testing.T) {
	if *platforms == "" {
		t.Skip("reads all that is imported: -platforms darwin/arm64,windows/amd64")
	}
	for _, platform := range strings.Split(*platforms, ",") {
		goos, goarch, _ := strings.Cut(platform, "/")
		if n := checkTypes(t, "../..", false, "GOOS="+goos, "GOARCH="+goarch); n < 20 {
			t.Errorf("%s: %d packages: nothing would be found", platform, n)
		}
	}
}

// TestModules checks the types of the repository's other modules, which use what this one exports.
func TestModules(t *testing.T) {
	if *modules == "" {
		t.Skip("downloads what they import: -modules bench/peers,bench/rivals")
	}
	for _, module := range strings.Split(*modules, ",") {
		if n := checkTypes(t, filepath.Join("../..", module), true); n == 0 {
			t.Errorf("%s has no packages", module)
		}
	}
}

// checkTypes checks the types of a module, with its tests if asked, and returns how many packages it
// has. It leaves out the bodies of functions in other modules, so it takes a twentieth of a build.
func checkTypes(t *testing.T, dir string, tests bool, env ...string) int {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Dir:   dir,
		Tests: tests,
		Env:   append(append(os.Environ(), "CGO_ENABLED=0"), env...),
		ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
				for _, d := range f.Decls {
					if d, ok := d.(*ast.FuncDecl); ok {
						d.Body = nil
					}
				}
			}
			return f, err
		},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		if strings.HasSuffix(p.ID, ".test") {
			continue // the go command wrote it, and it is elsewhere
		}
		for _, err := range p.Errors {
			t.Errorf("%s %s: %v", strings.Join(env, " "), p.PkgPath, err)
		}
	}
	return len(pkgs)
}
