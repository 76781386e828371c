package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/document"
)

// MaxErrors is the most errors that [Parse] reports at once.
const MaxErrors = 100

// ErrCanonical is wrapped by every error of [Decode].
var ErrCanonical = errors.New("not a catalog in canonical form")

// Error is one thing that is wrong with a catalog.
type Error struct {
	Line    int    // counted from 1; 0 when the catalog did not come from YAML
	Column  int    // counted from 1, in characters
	Path    string // to the value, such as pools.standard.entries[3].weight; empty: the document as a whole
	Message string // what was expected, and what was found

	at []step
}

// Error prints line:column: path: message, leaving out what is not known.
func (e *Error) Error() string {
	text := e.Message
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", e.Line, e.Column, text)
	}
	return text
}

// Errors is everything that is wrong with a catalog, in the order of the source. Match it with [errors.As].
type Errors struct {
	List []*Error // at least one, at most MaxErrors
	More bool     // reading stopped at MaxErrors: there may be more
}

// Error prints one error on each line.
func (e *Errors) Error() string {
	lines := texts(e.List, func(one **Error) string { return (*one).Error() })
	if e.More {
		lines = append(lines, "and more")
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives [errors.As] and [errors.Is] each single error.
func (e *Errors) Unwrap() []error {
	all := make([]error, len(e.List))
	for i, one := range e.List {
		all[i] = one
	}
	return all
}

// step is one step of a path: a key, or with inList an index. Where the source may have a list of mappings
// instead of one, the index of a key says which of its places is meant (see locate). It is not printed.
type step struct {
	key    string
	index  int
	inList bool
}

// pathString writes steps as pools.standard.entries[3].weight. A key with a dot, or with what no id has,
// stands in brackets and quotes, so that a path can be read in one way only.
func pathString(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.inList:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.Contains(s.key, ".") || !ValidID(s.key):
			fmt.Fprintf(&b, "[%s]", quote(s.key))
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// log gathers errors and knows where in the catalog the reader stands.
type log struct {
	here []step
	list []*Error
	more bool
}

func (l *log) enter(key string) { l.here = append(l.here, step{key: key}) }
func (l *log) enterIndex(i int) { l.here = append(l.here, step{index: i, inList: true}) }
func (l *log) enterPlace(key string, i int) {
	l.here = append(l.here, step{key: key, index: i})
}
func (l *log) leave()     { l.here = l.here[:len(l.here)-1] }
func (l *log) full() bool { return l.more }

// each enters the indexes of a list one after the other, until the log is full.
func (l *log) each(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n && !l.full(); i++ {
			l.enterIndex(i)
			more := yield(i)
			l.leave()
			if !more {
				return
			}
		}
	}
}

// oneOrEach is each for a list whose only element may stand without a list.
func (l *log) oneOrEach(n int) iter.Seq[int] {
	if n == 1 {
		return slices.Values([]int{0})
	}
	return l.each(n)
}

// add reports an error at the present path.
func (l *log) add(line, column int, format string, args ...any) {
	if len(l.list) == MaxErrors {
		l.more = true
		return
	}
	l.list = append(l.list, &Error{
		Line: line, Column: column,
		Path:    pathString(l.here),
		Message: fmt.Sprintf(format, args...),
		at:      slices.Clone(l.here),
	})
}

// covers reports whether there is an error at the present path, above it or below it. What would be
// reported here then is likely to follow from it.
func (l *log) covers() bool {
	for _, e := range l.list {
		n := min(len(e.at), len(l.here))
		if slices.Equal(e.at[:n], l.here[:n]) {
			return true
		}
	}
	return false
}

// err returns what was reported, in the order of the source, or nil.
func (l *log) err() error {
	if len(l.list) == 0 {
		return nil
	}
	slices.SortStableFunc(l.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Errors{List: l.list, More: l.more}
}

func quote(s string) string { return document.Quote(s) }

// ValidID tells whether s is an id: [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
func ValidID(s string) bool {
	if len(s) == 0 || len(s) > MaxID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
