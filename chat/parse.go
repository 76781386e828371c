package chat

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/document"
)

// MaxBytes is the largest YAML source of a configuration.
const MaxBytes = 4 << 20

var bounds = document.Bounds{Bytes: MaxBytes, Nesting: 16, Values: 1 << 20}

// Parse reads a configuration from YAML and checks everything. docs/how-to/chat.md describes its keys. A source with
// any fault is refused as a whole, with an error that wraps *[catalog.Errors]: each names line, column, path and what
// was expected.
func Parse(text []byte) (*Config, error) {
	r := &reader{nodes: map[string]*yaml.Node{}}
	root := document.Read(context.Background(), text, bounds, "a mapping with the key triggers", func(line, column int, message string) {
		r.list = append(r.list, &catalog.Error{Line: line, Column: column, Message: message})
	})
	c := &Config{}
	if root != nil {
		r.config(root, c)
	}
	if len(r.list) == 0 {
		r.check(*c, root)
	}
	if len(r.list) == 0 {
		return c, nil
	}
	slices.SortStableFunc(r.list, func(a, b *catalog.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	n := min(len(r.list), catalog.MaxErrors)
	return nil, &catalog.Errors{List: r.list[:n], More: n < len(r.list)}
}

// reader reads nodes into a configuration.
type reader struct {
	list  []*catalog.Error
	nodes map[string]*yaml.Node // by path
}

// check reports what is wrong with values that could be read, at the places that they were read from.
func (r *reader) check(c Config, root *yaml.Node) {
	c.defaults()
	f := &faults{}
	c.check(f)
	for _, e := range f.list {
		n, path := root, e.Path
		for path != "" && r.nodes[path] == nil {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
		if path != "" {
			n = r.nodes[path]
		}
		r.list = append(r.list, &catalog.Error{Line: n.Line, Column: n.Column, Path: e.Path, Message: e.Message})
	}
}

func (r *reader) fail(n *yaml.Node, path, format string, args ...any) {
	r.list = append(r.list, &catalog.Error{Line: n.Line, Column: n.Column, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) mismatch(n *yaml.Node, path, expects, wrong string) {
	if wrong != "" {
		wrong = ": " + wrong
	}
	r.fail(n, path, "expected %s, found %s%s", expects, document.Describe(n), wrong)
}

// node reports whether a node can be read, and notes its place.
func (r *reader) node(n *yaml.Node, path string) bool {
	r.nodes[path] = n
	if refused := document.Refused(n); refused != "" {
		r.fail(n, path, "%s", refused)
		return false
	}
	return true
}

// each calls read for every key of a mapping, with its path.
func (r *reader) each(n *yaml.Node, path, expects string, read func(key string, k, v *yaml.Node, at string)) {
	if !r.node(n, path) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.mismatch(n, path, expects, "")
		return
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || document.Refused(k) != "" || k.Value == "<<" && !document.Quoted(k) {
			r.fail(k, path, "expected a text as key, found %s", document.Describe(k))
			continue
		}
		at := strings.TrimPrefix(path+"."+k.Value, ".")
		if seen[k.Value] {
			r.fail(k, at, "duplicate key %s", document.Quote(k.Value))
			continue
		}
		seen[k.Value] = true
		read(k.Value, k, v, at)
	}
}

// key is a key of a mapping, and how its value is read.
type key struct {
	name string
	read func(n *yaml.Node, path string)
}

// keys reads a mapping with fixed keys.
func (r *reader) keys(n *yaml.Node, path string, all ...key) {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	known := strings.Join(names, ", ")
	r.each(n, path, "a mapping with the keys "+known, func(name string, k, v *yaml.Node, at string) {
		i := slices.Index(names, name)
		if i < 0 {
			r.fail(k, at, "unknown key %s; expected one of %s", document.Quote(name), known)
			return
		}
		all[i].read(v, at)
	})
}

// items reads a list.
func (r *reader) items(n *yaml.Node, path, expects string, read func(n *yaml.Node, path string)) {
	if !r.node(n, path) {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.mismatch(n, path, expects, "")
		return
	}
	for i, v := range n.Content {
		read(v, fmt.Sprintf("%s[%d]", path, i))
	}
}

// scalar returns the text of a value as it stands in the source.
func (r *reader) scalar(n *yaml.Node, path, expects string) (string, bool) {
	if !r.node(n, path) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" && !document.Quoted(n) {
		r.mismatch(n, path, expects, "")
		return "", false
	}
	return n.Value, true
}

// These return how a value is read.

func (r *reader) text(to *string, expects string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		s, ok := r.scalar(n, path, expects)
		if ok && n.Tag != "!!str" && n.Tag != "!!timestamp" {
			r.mismatch(n, path, expects, "put it in quotes")
		} else if ok && s == "" {
			r.mismatch(n, path, expects, "")
		} else if ok {
			*to = s
		}
	}
}

// amount reads a number or a text.
func (r *reader) amount(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if s, ok := r.scalar(n, path, "an amount, such as 5, $n or 5*$n"); ok {
			*to = s
		}
	}
}

func number[T int | uint64](r *reader, to *T, negative bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		const expects = "a whole number"
		s, ok := r.scalar(n, path, expects)
		if !ok {
			return
		}
		rest, minus := s, false
		if negative {
			rest, minus = strings.CutPrefix(s, "-")
		}
		v, wrong := document.Integer(rest)
		switch {
		case wrong != "" || document.Quoted(n):
			r.mismatch(n, path, expects, cmp.Or(wrong, "write it without quotes"))
		case v > math.MaxInt64>>1:
			r.mismatch(n, path, expects, "the number is too large")
		case minus:
			*to = -T(v)
		default:
			*to = T(v)
		}
	}
}

func (r *reader) duration(to *time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		const expects = "a duration such as 30s or 1h30m"
		if s, ok := r.scalar(n, path, expects); ok {
			d, wrong := document.Duration(s)
			if *to = d; wrong != "" {
				r.mismatch(n, path, expects, wrong)
			}
		}
	}
}

func (r *reader) boolean(to *bool) func(*yaml.Node, string) {
	return r.choice("true or false", func(s string) bool {
		*to = s == "true"
		return *to || s == "false"
	})
}

func (r *reader) choice(expects string, is func(s string) bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if s, ok := r.scalar(n, path, expects); ok && !is(s) {
			r.mismatch(n, path, expects, "")
		}
	}
}

func (r *reader) config(n *yaml.Node, c *Config) {
	version := false
	r.keys(n, "",
		key{"chat", r.choice("the number 1", func(s string) bool { version = true; return s == "1" })},
		key{"activity", r.text(&c.Activity, "the id of an event")},
		key{"every", r.duration(&c.Every)},
		key{"ids", r.choice("time-ordered or any", func(s string) bool {
			c.TimeOrdered = s == "time-ordered"
			return c.TimeOrdered || s == "any"
		})},
		key{"prefix", r.text(&c.Prefix, "what request ids begin with")},
		key{"most", number(r, &c.Most, false)},
		key{"players", number(r, &c.Players, false)},
		key{"gathered", number(r, &c.Gathered, false)},
		key{"cooldowns", number(r, &c.Cooldowns, false)},
		key{"triggers", func(n *yaml.Node, path string) {
			r.each(n, path, "a mapping whose keys are the ids of triggers", func(id string, _, v *yaml.Node, at string) {
				t := Trigger{ID: id}
				r.trigger(v, at, &t)
				c.Triggers = append(c.Triggers, t)
			})
		}},
	)
	if !version && len(r.list) == 0 {
		r.fail(n, "chat", "missing; expected the number 1")
	}
}

func (r *reader) trigger(n *yaml.Node, path string, t *Trigger) {
	r.keys(n, path,
		key{"phrases", func(n *yaml.Node, path string) {
			r.items(n, path, "a list of phrases", func(n *yaml.Node, path string) {
				t.Phrases = append(t.Phrases, "")
				r.text(&t.Phrases[len(t.Phrases)-1], "a phrase")(n, path)
			})
		}},
		key{"at", r.choice("start or anywhere", func(s string) bool {
			t.AtStart = s == "start"
			return t.AtStart || s == "anywhere"
		})},
		key{"priority", number(r, &t.Priority, true)},
		key{"cooldown", func(n *yaml.Node, path string) {
			r.keys(n, path, key{"player", r.duration(&t.Cooldown.Player)}, key{"all", r.duration(&t.Cooldown.All)})
		}},
		key{"words", func(n *yaml.Node, path string) {
			r.items(n, path, "a list of words", func(n *yaml.Node, path string) {
				w := Word{}
				r.word(n, path, &w)
				t.Words = append(t.Words, w)
			})
		}},
		key{"do", func(n *yaml.Node, path string) {
			r.items(n, path, "a list of commands", func(n *yaml.Node, path string) {
				a := Action{}
				r.action(n, path, &a)
				t.Do = append(t.Do, a)
			})
		}},
	)
}

func (r *reader) word(n *yaml.Node, path string, w *Word) {
	r.keys(n, path,
		key{"name", r.text(&w.Name, "a name")},
		key{"of", func(n *yaml.Node, path string) {
			w.Of = map[string]string{}
			if n.Kind == yaml.SequenceNode { // each stands for itself
				r.items(n, path, "a list of words", func(n *yaml.Node, path string) {
					var s string
					r.text(&s, "a word")(n, path)
					w.Of[s] = s
				})
				return
			}
			r.each(n, path, "a list of words, or a mapping from words to ids", func(written string, _, v *yaml.Node, at string) {
				var s string
				r.text(&s, "an id")(v, at)
				w.Of[written] = s
			})
		}},
		key{"from", number(r, &w.From, false)},
		key{"to", number(r, &w.To, false)},
		key{"text", r.boolean(&w.Text)},
		key{"else", r.amount(&w.Else)},
	)
}

// action reads a mapping from the name of one command to its fields; a command without fields can stand alone.
func (r *reader) action(n *yaml.Node, path string, a *Action) {
	if n.Kind == yaml.ScalarNode {
		r.text(&a.Do, "a command")(n, path)
		return
	}
	if n.Kind == yaml.MappingNode && len(n.Content) != 2 {
		r.fail(n, path, "expected a mapping with one command as its key, found %d", len(n.Content)/2)
		return
	}
	r.each(n, path, "a mapping with one command as its key", func(name string, k, v *yaml.Node, at string) {
		a.Do = name
		switch {
		case name == "atomic":
			a.Members = []Action{}
			r.items(v, at, "a list of commands", func(n *yaml.Node, path string) {
				m := Action{}
				r.action(n, strings.Replace(path, at+"[", at+".members[", 1), &m)
				a.Members = append(a.Members, m)
			})
		case !slices.Contains(commandNames, name):
			r.fail(k, at, "unknown command %s; expected one of %s", document.Quote(name), strings.Join(commandNames, ", "))
		default:
			r.fields(v, at, a)
		}
	})
}

func (r *reader) fields(n *yaml.Node, path string, a *Action) {
	all := map[string]func(*yaml.Node, string){
		"pool": r.text(&a.Pool, "the id of a pool"), "pay": r.text(&a.Pay, "the id of an item"), "code": r.text(&a.Code, "a code"),
		"event": r.text(&a.Event, "the id of an event"), "key": r.text(&a.Key, "a text"), "quest": r.text(&a.Quest, "the id of a quest"),
		"round": r.text(&a.Round, "the id of a round"), "count": r.amount(&a.Count), "tickets": r.amount(&a.Tickets),
		"items": func(n *yaml.Node, path string) {
			a.Items = []Stack{}
			r.each(n, path, "a mapping from items to amounts", func(item string, _, v *yaml.Node, at string) {
				s := Stack{Item: item}
				r.amount(&s.Quantity)(v, at)
				r.nodes[path+"["+strconv.Itoa(len(a.Items))+"]"] = v
				a.Items = append(a.Items, s)
			})
		},
	}
	takes := fields[a.Do]
	var keys []key
	for _, name := range append(slices.Clone(takes.must), takes.may...) {
		keys = append(keys, key{name, all[name]})
	}
	if len(keys) == 0 {
		r.fail(n, path, "expected no fields: write %s alone", a.Do)
		return
	}
	r.keys(n, path, keys...)
}
