package sim_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// checker type-checks the packages that bugs are planted in, and none that import them.
type checker struct {
	module string
	root   string
	fset   *token.FileSet
	types  types.Importer
	parsed map[string]*ast.File // by path: files without a bug
}

// newChecker has the go command build what the module's packages import.
func newChecker(root string) (*checker, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-export", "-pgo=off", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	list.Dir = abs
	out, err := list.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	modfile, err := os.ReadFile(filepath.Join(abs, "go.mod"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(modfile), "\n")
	c := &checker{
		module: strings.TrimPrefix(first, "module "),
		root:   abs,
		fset:   token.NewFileSet(),
		parsed: map[string]*ast.File{},
	}
	c.types = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	return c, nil
}

// check reports why a package with a bug in it does not compile.
func (c *checker) check(s *sources, p planted) error {
	var errs []error
	dirs := map[string]bool{}
	for name := range p.changed {
		dirs[filepath.Dir(name)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		rel, err := filepath.Rel(c.root, dir)
		if err != nil {
			return err
		}
		var files []*ast.File
		for _, name := range s.files[rel] {
			f, err := c.parse(name, s.text[name], p.changed[name])
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		conf := types.Config{Importer: c.types, Error: func(err error) { errs = append(errs, err) }}
		// What it returns is the first of the errors.
		_, _ = conf.Check(path.Join(c.module, filepath.ToSlash(rel)), c.fset, files, nil)
	}
	return errors.Join(errs...)
}

// parse returns a file: as it is, or changed by a bug.
func (c *checker) parse(name, text, changed string) (*ast.File, error) {
	if changed != "" {
		return parser.ParseFile(c.fset, name, changed, parser.SkipObjectResolution)
	}
	if f := c.parsed[name]; f != nil {
		return f, nil
	}
	f, err := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution)
	c.parsed[name] = f
	return f, err
}
