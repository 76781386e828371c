package lint

import (
	"go/ast"
	"path"
	"slices"
	"sort"
	"strings"
)

// The most lines of a file and of a function. A longer one has two subjects. Tests and generated files
// may have more.
const (
	MaxFileLines     = 700
	MaxFunctionLines = 80
)

// vague are names that do not say what is inside.
var vague = []string{"types", "util", "utils", "common", "models", "helper", "helpers", "mock", "mocks", "misc", "repository"}

// Names reports packages and files with a vague name.
func Names(s *Source) []Finding {
	const rule = "Names"
	var found []Finding
	if name := strings.TrimSuffix(s.AST.Name.Name, "_test"); slices.Contains(vague, name) {
		found = append(found, s.finding(rule, s.AST.Name.Pos(), "package %s: name it for what it holds", name))
	}
	name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.Path), ".go"), "_test")
	if slices.Contains(vague, name) {
		found = append(found, s.finding(rule, s.AST.Package, "file %s: name it for the noun it is about", path.Base(s.Path)))
	}
	return found
}

// Lengths reports files and functions that are too long.
func Lengths(s *Source) []Finding {
	const rule = "Lengths"
	if s.Test || s.Generated {
		return nil
	}
	var found []Finding
	if s.Lines > MaxFileLines {
		found = append(found, s.finding(rule, s.AST.Package, "%d lines, at most %d: split it by subject", s.Lines, MaxFileLines))
	}
	for _, decl := range s.AST.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.Fset.Position(fn.End()).Line - s.Fset.Position(fn.Pos()).Line + 1
		if lines > MaxFunctionLines {
			found = append(found, s.finding(rule, fn.Pos(), "%s has %d lines, at most %d", fn.Name.Name, lines, MaxFunctionLines))
		}
	}
	return found
}

// minComment is the least length of a package comment, in bytes: less says nothing.
const minComment = 60

// PackageComments reports packages that do not say what they are for.
func PackageComments(sources []*Source) []Finding {
	longest := map[string]int{}
	first := map[string]*Source{}
	for _, s := range sources {
		if s.Test {
			continue
		}
		if first[s.Dir()] == nil {
			first[s.Dir()] = s
		}
		// A generator copies the comment of its source, which describes that.
		if s.AST.Doc != nil && !s.Generated {
			longest[s.Dir()] = max(longest[s.Dir()], len(s.AST.Doc.Text()))
		}
	}
	var found []Finding
	for dir, s := range first {
		if s.Generated && longest[dir] == 0 {
			continue // nothing but generated files
		}
		if longest[dir] < minComment {
			found = append(found, s.finding("PackageComments", s.AST.Package,
				"package %s has no package comment that says what it is for and what may not enter it", s.AST.Name.Name))
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Path < found[j].Path })
	return found
}
