// Package lint holds the house rules that no other tool checks: which room may import which, what the
// deterministic rooms may not do, how long a file may be, which words a text may not have. They run
// as this package's tests, on the sources on disk.
//
// Only rules belong here. Each is a function from sources to findings, and a bad example in the tests
// shows that it fires. Nothing imports this package but its tests.
package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Module is the module whose rooms are checked.
const Module = "github.com/kuji-dev/kuji"

// Finding is a place that breaks a rule.
type Finding struct {
	Rule    string // the rule's name: the function that reported it
	Path    string // relative to the module's root, with slashes
	Line    int    // from 1; 0 when the finding is about the whole file or folder
	Message string // what is wrong and what to do instead
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.Path, f.Line, f.Message, f.Rule)
}

// Source is one Go file, parsed.
type Source struct {
	Path      string // relative to the module's root, with slashes
	AST       *ast.File
	Fset      *token.FileSet
	Lines     int
	Test      bool // a _test.go file
	Generated bool // says "Code generated … DO NOT EDIT." in the usual form
}

// Dir returns the folder of the file, "." for the module's root.
func (s *Source) Dir() string { return path.Dir(s.Path) }

func (s *Source) finding(rule string, pos token.Pos, format string, args ...any) Finding {
	line := 0
	if pos.IsValid() {
		line = s.Fset.Position(pos).Line
	}
	return Finding{Rule: rule, Path: s.Path, Line: line, Message: fmt.Sprintf(format, args...)}
}

// Text is a file that people read.
type Text struct {
	Path string // relative to the module's root, with slashes
	Data []byte
}

// Tree is what the rules look at.
type Tree struct {
	Root    string // an absolute path
	Sources []*Source
	Texts   []Text
}

// maxText is the largest size of a text: larger files are data.
const maxText = 4 << 20

// Load reads every Go file and every text of the module at root. It leaves out other modules, dot
// folders except .ci, and what is not in the repository.
func Load(root string) (*Tree, error) {
	tree := &Tree{Root: root}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return skipDir(name, rel, d.Name())
		}
		if rel == ".git" {
			return nil // a work tree inside the repository
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > maxText {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return tree.add(fset, rel, data)
	})
	if err != nil {
		return nil, fmt.Errorf("lint: load %s: %w", root, err)
	}
	return tree, nil
}

func skipDir(name, rel, base string) error {
	if rel == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") && base != ".ci" {
		return filepath.SkipDir
	}
	if base == "dist" || base == "kuji-data" {
		return filepath.SkipDir // build output and a local data directory: not in the repository
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir // a module of its own has rules of its own
	}
	return nil
}

func (t *Tree) add(fset *token.FileSet, rel string, data []byte) error {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	t.Texts = append(t.Texts, Text{Path: rel, Data: data})
	inTestdata := strings.HasPrefix(rel, "testdata/") || strings.Contains(rel, "/testdata/")
	if !strings.HasSuffix(rel, ".go") || inTestdata {
		return nil
	}
	src, err := parse(fset, rel, data)
	if err != nil {
		return err
	}
	t.Sources = append(t.Sources, src)
	return nil
}

func parse(fset *token.FileSet, rel string, data []byte) (*Source, error) {
	file, err := parser.ParseFile(fset, rel, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &Source{
		Path: rel, AST: file, Fset: fset,
		Lines:     bytes.Count(data, []byte("\n")),
		Test:      strings.HasSuffix(rel, "_test.go"),
		Generated: ast.IsGenerated(file),
	}, nil
}
