package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPlatforms checks the types of everything here as other platforms see it. That finds what only one
// of them has, and takes a twentieth of a build: of packages elsewhere, the bodies of functions are left
// out. The builds themselves are for make nightly.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all that is imported, for each platform")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"darwin/arm64", "windows/amd64"} {
		goos, goarch, _ := strings.Cut(platform, "/")
		pkgs, err := packages.Load(&packages.Config{
			Mode: packages.LoadAllSyntax,
			Dir:  root,
			Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
			ParseFile: func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
				f, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
				if f != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
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
		if len(pkgs) < 20 {
			t.Errorf("%s: %d packages: nothing would be found", platform, len(pkgs))
		}
		for _, p := range pkgs {
			for _, err := range p.Errors {
				t.Errorf("%s: %v", platform, err)
			}
		}
	}
}
