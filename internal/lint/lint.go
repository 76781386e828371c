// Package lint holds the rules of the house that no other tool checks: which
// room may import which, what the deterministic rooms may not do, how long a
// file may be, what may not stand in a text. They run as this package's tests,
// on the sources as they lie on disk.
//
// Only rules come in here, each a function from sources to findings, each with
// a bad example in the tests that makes it fire. Nothing outside this package's
// tests imports it.
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

// Finding is one breach of one rule.
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

// Text is any file that people read, as it is.
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

// maxText bounds the files taken for text: larger ones are data.
const maxText = 4 << 20

// Load reads the module at root: every Go file and every text, but not what
// belongs to another module, to a dot folder other than .ci, or to nobody.
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
			return nil // of a work tree inside the repository
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
