package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// A bug is a mistake that somebody could make. Each file of testdata/sabotage
// holds one:
//
//	An fsync that failed is tried once more.
//	promise: stop, the first write that fails for good stops the realm
//	test: ./internal/sim -run TestSeeds$ -seeds 300 -shrink 0
//	-- wal.segment.sync --
//	<<<<
//	$err := $s.file.Sync()
//	====
//	$err := errors.Join($s.file.Sync(), $s.file.Sync())
//	>>>>
//
// The line "promise:" names what the bug breaks, by a key of [promises] and in words. The line "test:"
// holds the arguments of the go test that must fail. A line "needs:" may follow, with the name of a
// program that the test needs. Where that program is missing, the bug is not planted.
//
// A section names a declaration as go doc does: folder, type, function. The package at the root is
// "kuji". The text between <<<< and ==== must occur once in that declaration. A bug must survive
// changes nearby, so:
//
//   - any white space matches any other;
//   - $name stands for an identifier, or several joined by dots. Where it is repeated, it stands for
//     the same one;
//   - $*name stands for the shortest text within a line;
//   - the declaration may be in any file of the package. If it has another name now, or the text
//     moved out of it, the text must occur once in the package.
type bug struct {
	name    string
	about   string
	promise string
	test    []string
	needs   string
	changes []change
}

// A change replaces text within a declaration.
type change struct {
	dir, decl string
	was       *pattern
	is        string
}

// promises are the keys of promises. The numbers are those of
// docs/concepts/reliability.md.
var promises = map[string]string{
	"1":      "what was acknowledged is there after recovery, once and unchanged",
	"2":      "no entry is given more often than its stock",
	"3":      "every balance is the sum of its events",
	"4":      "the same log gives the same state hash",
	"5":      "a request id has one effect and one answer",
	"6":      "damage is reported with its place, never served",
	"7":      "what was read cannot be lost",
	"8":      "a second writer never appends",
	"held":   "what is held is somebody's: it comes back or is given, once",
	"due":    "nothing falls due twice, early, or never",
	"order":  "to concurrent clients pools and players are one book",
	"stop":   "a write or an fsync that fails stops the realm",
	"proof":  "every epoch can be proven once it has ended, and none before",
	"odds":   "draws have the odds that the catalog says",
	"rules":  "the catalog's rules hold: prices, limits, groups, versions",
	"bounds": "whatever a client can make grow has a limit",
	"keys":   "who has no right does nothing",
	"secret": "codes and guesses are shown to nobody but their player",
	"result": "an outcome is a result, not an error",
	"calm":   "nobody waits for others' work longer than needed",
}

const sabotageDir = "testdata/sabotage"

func readBugs(t *testing.T) []*bug {
	t.Helper()
	names, err := filepath.Glob(sabotageDir + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var bugs []*bug
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parseBug(strings.TrimSuffix(filepath.Base(name), ".txtar"), data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		bugs = append(bugs, b)
	}
	return bugs
}

var bugHead = regexp.MustCompile(`(?s)^(.+)\npromise: ([^\n]+)\ntest: ([^\n]+)\n(?:needs: ([^\n]+)\n)?$`)

func parseBug(name string, data []byte) (*bug, error) {
	a := txtar.Parse(data)
	m := bugHead.FindStringSubmatch(string(a.Comment))
	if m == nil || len(a.Files) == 0 {
		return nil, errors.New("want a line on the bug, a line promise:, a line test:, and a change")
	}
	b := &bug{name: name, about: m[1], promise: m[2], test: strings.Fields(m[3]), needs: m[4]}
	key, _, ok := strings.Cut(b.promise, ", ")
	if _, known := promises[key]; !ok || !known {
		return nil, fmt.Errorf("promise %q; want one of %q, a comma, and the promise in words",
			b.promise, slices.Sorted(maps.Keys(promises)))
	}
	for _, f := range a.Files {
		slash := strings.LastIndexByte(f.Name, '/') + 1
		dot := strings.IndexByte(f.Name[slash:], '.')
		if dot < 0 {
			return nil, fmt.Errorf("section %q; want folder.function or folder.type.function", f.Name)
		}
		c := change{dir: f.Name[:slash+dot], decl: f.Name[slash+dot+1:]}
		if c.dir == "kuji" {
			c.dir = "."
		}
		for part := range strings.SplitSeq(string(f.Data), "<<<<\n") {
			if part == "" {
				continue
			}
			was, rest, ok := strings.Cut(part, "====\n")
			is, _, ok2 := strings.Cut(rest, ">>>>")
			if !ok || !ok2 {
				return nil, fmt.Errorf("%s: want <<<<, ====, >>>>", f.Name)
			}
			c.was, c.is = newPattern(was), strings.TrimSpace(is)
			b.changes = append(b.changes, c)
		}
	}
	return b, nil
}

// pattern is Go source with holes for names.
type pattern struct {
	text  string
	re    *regexp.Regexp
	holes []string // the names of its groups, in order; repeated ones repeat
}

var hole = regexp.MustCompile(`\$\*?([a-z]+)`)

func newPattern(text string) *pattern {
	p := &pattern{text: strings.TrimSpace(text)}
	var words []string
	for _, word := range strings.Fields(p.text) {
		var re strings.Builder
		at := 0
		for _, m := range hole.FindAllStringSubmatchIndex(word, -1) {
			re.WriteString(regexp.QuoteMeta(word[at:m[0]]))
			if word[m[0]+1] == '*' {
				re.WriteString(`([^\n]*?)`)
			} else {
				re.WriteString(`\b([\pL_][\w.]*)`)
			}
			p.holes = append(p.holes, word[m[2]:m[3]])
			at = m[1]
		}
		re.WriteString(regexp.QuoteMeta(word[at:]))
		words = append(words, re.String())
	}
	whole := strings.Join(words, `\s+`)
	if regexp.MustCompile(`^\w`).MatchString(p.text) {
		whole = `\b` + whole
	}
	if regexp.MustCompile(`(^|[^$*a-z])\w+$`).MatchString(p.text) {
		whole += `\b`
	}
	p.re = regexp.MustCompile(whole)
	return p
}

// match is a place where a pattern fits, and what is in its holes.
type match struct {
	from, to int
	holes    map[string]string
}

func (p *pattern) all(text string) []match {
	var found []match
next:
	for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
		holes := map[string]string{}
		for i, name := range p.holes {
			got := text[m[2*i+2]:m[2*i+3]]
			if before, ok := holes[name]; ok && before != got {
				continue next
			}
			holes[name] = got
		}
		found = append(found, match{m[0], m[1], holes})
	}
	return found
}

// fill fills the holes of a replacement.
func (m match) fill(is string) (string, error) {
	var err error
	is = hole.ReplaceAllStringFunc(is, func(h string) string {
		got, ok := m.holes[strings.TrimLeft(h, "$*")]
		if !ok {
			err = fmt.Errorf("%s is not in what is replaced", h)
		}
		return got
	})
	return is, err
}

// decl is a declaration of a file.
type decl struct {
	name     string // "Type.Method", or one name
	from, to int
}

// sources holds the packages that bugs are planted in.
type sources struct {
	root  string
	files map[string][]string // the paths of a folder's files that this platform builds
	text  map[string]string   // by path
	decls map[string][]decl   // by the text of the file
}

func newSources(root string) *sources {
	return &sources{root, map[string][]string{}, map[string]string{}, map[string][]decl{}}
}

func (s *sources) load(dir string) ([]string, error) {
	if files, ok := s.files[dir]; ok {
		return files, nil
	}
	abs, err := filepath.Abs(filepath.Join(s.root, dir))
	if err != nil {
		return nil, err
	}
	pkg, err := build.ImportDir(abs, 0)
	if err != nil {
		return nil, err
	}
	for _, name := range pkg.GoFiles {
		path := filepath.Join(abs, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s.text[path] = string(data)
		s.files[dir] = append(s.files[dir], path)
	}
	return s.files[dir], nil
}

func (s *sources) declsOf(text string) ([]decl, error) {
	if found, ok := s.decls[text]; ok {
		return found, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []decl
	add := func(name string, n ast.Node) {
		found = append(found, decl{name, int(n.Pos() - f.FileStart), int(n.End() - f.FileStart)})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(receiver(d)+d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name, spec)
				case *ast.ValueSpec:
					add(spec.Names[0].Name, spec)
				}
			}
		}
	}
	s.decls[text] = found
	return found, nil
}

// receiver returns "Type." of a method, and "" of a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	return t.(*ast.Ident).Name + "."
}

// place finds where a change goes. It reads changed files instead of the real ones. A note says if the
// place is not in the declaration that the bug names.
func (s *sources) place(c change, changed map[string]string) (path string, at match, note string, err error) {
	files, err := s.load(c.dir)
	if err != nil {
		return "", match{}, "", err
	}
	named, within, anywhere := false, 0, 0 // how often it fits
	textOf := func(path string) string {
		if text, ok := changed[path]; ok {
			return text
		}
		return s.text[path]
	}
	for _, f := range files {
		text := textOf(f)
		decls, err := s.declsOf(text)
		if err != nil {
			return "", match{}, "", fmt.Errorf("%s: %w", f, err)
		}
		for _, d := range decls {
			if d.name != c.decl {
				continue
			}
			named = true
			for _, m := range c.was.all(text[d.from:d.to]) {
				within++
				path, at = f, match{m.from + d.from, m.to + d.from, m.holes}
			}
		}
	}
	if within == 1 {
		return path, at, "", nil
	}
	for _, f := range files {
		for _, m := range c.was.all(textOf(f)) {
			anywhere++
			if within == 0 {
				path, at = f, m
			}
		}
	}
	if within == 0 && anywhere == 1 {
		return path, at, fmt.Sprintf("found in %s, not in %s", filepath.Base(path), c.decl), nil
	}
	return "", match{}, "", fmt.Errorf("%s.%s (there: %v) has this %d times, its package %d times, want once: write the bug again, or drop it if its code is gone:\n%s",
		c.dir, c.decl, named, within, anywhere, c.was.text)
}

// planted is a bug in its place.
type planted struct {
	*bug
	changed map[string]string // the changed files, by path
	notes   []string
}

// plant changes the sources of a bug, in memory.
func (s *sources) plant(b *bug) (planted, error) {
	p := planted{bug: b, changed: map[string]string{}}
	for _, c := range b.changes {
		path, at, note, err := s.place(c, p.changed)
		if err != nil {
			return p, err
		}
		if note != "" {
			p.notes = append(p.notes, note)
		}
		text, ok := p.changed[path]
		if !ok {
			text = s.text[path]
		}
		is, err := at.fill(c.is)
		if err != nil {
			return p, err
		}
		p.changed[path] = text[:at.from] + is + text[at.to:]
	}
	for path, text := range p.changed {
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution); err != nil {
			return p, fmt.Errorf("with the bug: %w", err)
		}
	}
	return p, nil
}

// overlay writes the changed files, and a file that tells go build to use them instead of the real
// ones.
func (p planted) overlay(dir string) (name string, err error) {
	replace := map[string]string{}
	for path, text := range p.changed {
		changed := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = changed
	}
	name = filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	return name, errors.Join(err, os.WriteFile(name, data, 0o600))
}
