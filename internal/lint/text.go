package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// phrase is a text that the repository must not have.
type phrase struct {
	match  *regexp.Regexp
	goOnly bool
	why    string
}

var phrases = []phrase{
	{regexp.MustCompile("(?:^|[\\s\"'(=:`])/(?:root|home|Users|work|mnt)/[\\w.-]"), false,
		"a path of somebody's machine: write one that every reader has"},
	{regexp.MustCompile(`(?i)\bissues? #?\d+\b`), false,
		"a number that means something elsewhere: say the thing itself"},
	{regexp.MustCompile(`\b(?:TODO|FIXME|XXX|HACK)\b`), true,
		"an unfinished note: finish it, or say in the documentation what is missing"},
}

// Phrases reports phrases that no text of the repository may have. This package's sources may have
// them, and its bad examples.
func Phrases(t Text) []Finding {
	if strings.HasPrefix(t.Path, "internal/lint/") || strings.HasSuffix(t.Path, "go.sum") {
		return nil
	}
	var found []Finding
	for i, line := range bytes.Split(t.Data, []byte("\n")) {
		for _, p := range phrases {
			if p.goOnly && !strings.HasSuffix(t.Path, ".go") {
				continue
			}
			if hit := p.match.Find(line); hit != nil {
				found = append(found, Finding{Rule: "Phrases", Path: t.Path, Line: i + 1,
					Message: "“" + strings.TrimSpace(string(hit)) + "”: " + p.why})
			}
		}
	}
	return found
}

var mdLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links reports relative links of a Markdown page that lead nowhere.
func Links(root string, t Text) []Finding {
	if !strings.HasSuffix(t.Path, ".md") {
		return nil
	}
	var found []Finding
	for i, line := range bytes.Split(t.Data, []byte("\n")) {
		for _, m := range mdLink.FindAllSubmatch(line, -1) {
			link, err := url.Parse(string(m[1]))
			if err == nil && (link.IsAbs() || link.Path == "") {
				continue
			}
			if err == nil {
				_, err = os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(path.Dir(t.Path), link.Path))))
			}
			if err != nil {
				why := "leads nowhere"
				if !errors.Is(err, fs.ErrNotExist) {
					why = err.Error()
				}
				found = append(found, Finding{Rule: "Links", Path: t.Path, Line: i + 1, Message: "link to " + string(m[1]) + ": " + why})
			}
		}
	}
	return found
}

var goFile = regexp.MustCompile("`([\\w./-]+\\.go)`")

// Files reports Go files that do not exist and that a page about the code names. The journal and the
// decisions may name files of the past.
func Files(sources []*Source, t Text) []Finding {
	if !strings.HasSuffix(t.Path, ".md") || !strings.HasPrefix(t.Path, "docs/internals/") ||
		strings.HasPrefix(t.Path, "docs/internals/journal/") || strings.HasPrefix(t.Path, "docs/internals/decisions/") {
		return nil
	}
	var found []Finding
	for i, line := range bytes.Split(t.Data, []byte("\n")) {
		for _, m := range goFile.FindAllSubmatch(line, -1) {
			name := string(m[1])
			if !slices.ContainsFunc(sources, func(s *Source) bool { return strings.HasSuffix("/"+s.Path, "/"+name) }) {
				found = append(found, Finding{Rule: "Files", Path: t.Path, Line: i + 1, Message: "there is no file " + name})
			}
		}
	}
	return found
}

// maxProse is the longest line of prose in Markdown, in characters.
const maxProse = 100

// Wrapped reports lines of prose in Markdown that are too long. Code, tables, comments and lines of one
// word, such as an address, may be longer.
func Wrapped(t Text) []Finding {
	if !strings.HasSuffix(t.Path, ".md") {
		return nil
	}
	var found []Finding
	code := false
	for i, line := range strings.Split(string(t.Data), "\n") {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") {
			code = !code
		}
		if code || strings.HasPrefix(line, "    ") || strings.HasPrefix(text, "|") || strings.HasPrefix(text, "<!--") {
			continue
		}
		if n := utf8.RuneCountInString(line); n > maxProse && strings.Contains(text, " ") {
			found = append(found, Finding{Rule: "Wrapped", Path: t.Path, Line: i + 1,
				Message: fmt.Sprintf("%d characters; wrap prose at %d", n, maxProse)})
		}
	}
	return found
}

// relative returns name relative to root, with slashes; name itself when it lies elsewhere.
func relative(root, name string) string {
	rel, err := filepath.Rel(root, name)
	if err != nil || strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(name)
	}
	return filepath.ToSlash(rel)
}
