package redis

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// words reads a command of the contract from arguments, in the form that the contract gives it.
type words struct {
	message reflect.Type // a struct
	first   []word       // in this order
	items   []int        // the place of the field for the items after first; nil: there are none
	options []word       // after the items
	names   []string     // of the options
	rest    string       // the option, the last one, that takes all items that follow; empty: none does
}

// word is an argument, or an option with one.
type word struct {
	name        string
	field       protoreflect.FieldDescriptor // nil: the id or the reason
	at          []int                        // the field's place in the message
	flag        bool                         // an option without an argument
	least, most uint64                       // of a number
}

// engineCommands returns the commands of the contract that can be written as words.
func engineCommands() (all []*command) {
	for _, k := range contract.Commands() {
		if k.Words == nil {
			continue
		}
		cmd := &command{name: strings.ToUpper(strings.ReplaceAll(k.Name, "_", "")), usage: k.Words.GetUsage(), summary: k.Words.GetSummary(), member: k.Member}
		cmd.command = newWords(k.Message, cmd.usage)
		cmd.least = len(cmd.command.first)
		cmd.most = cmd.least
		for i := range cmd.command.options {
			cmd.most += cmd.command.options[i].size()
		}
		if cmd.command.items != nil {
			cmd.least, cmd.most = cmd.least+2, cmd.most+2*kuji.MaxStacks
		}
		if cmd.command.rest != "" {
			cmd.most += 2*kuji.MaxStacks - 1
		}
		all = append(all, cmd)
	}
	return all
}

func newWords(message protoreflect.MessageType, usage string) *words {
	w := &words{message: reflect.TypeOf(message.Zero().Interface()).Elem()}
	before, after, items := strings.Cut(usage, "item quantity [item quantity ...]")
	if items {
		usage, w.items = before+after, w.place("items")
	}
	usage, several := strings.CutSuffix(usage, " item quantity ...]")
	for _, text := range strings.Fields(usage) {
		name, option := strings.CutPrefix(text, "[")
		name, closed := strings.CutSuffix(name, "]")
		one := word{name: name, at: w.place(strings.ToLower(name)), flag: option && closed}
		one.field = message.Descriptor().Fields().ByName(protoreflect.Name(strings.ToLower(name)))
		one.bound()
		switch {
		case option:
			w.options = append(w.options, one)
		case !closed: // else it only names the argument of an option
			w.first = append(w.first, one)
		}
	}
	for _, o := range w.options {
		w.names = append(w.names, o.name)
	}
	if several {
		w.rest = w.names[len(w.names)-1]
	}
	return w
}

// place returns where a field of the contract is in the message.
func (w *words) place(name string) []int {
	for _, f := range reflect.VisibleFields(w.message) {
		if slices.Contains(strings.Split(f.Tag.Get("protobuf"), ","), "name="+name) {
			return f.Index
		}
	}
	return nil
}

// bound sets which numbers a field takes.
func (w *word) bound() {
	if w.field == nil {
		return
	}
	w.most = map[protoreflect.Kind]uint64{protoreflect.Uint32Kind: math.MaxUint32, protoreflect.Int64Kind: math.MaxInt64, protoreflect.Uint64Kind: math.MaxUint64}[w.field.Kind()]
	if o := w.field.Options(); proto.HasExtension(o, kujiv1.E_Range) {
		r := proto.GetExtension(o, kujiv1.E_Range).(*kujiv1.Range)
		w.least, w.most = r.GetLeast(), r.GetMost()
	}
}

// read reads a command. It sets the Go fields of the message: protoreflect takes twice as long.
func (w *words) read(a *arguments) (one Command) {
	m := reflect.New(w.message)
	one.Message = m.Interface().(proto.Message)
	for i := range w.first {
		w.first[i].read(a, &one, m.Elem())
	}
	if w.items != nil {
		items := m.Elem().FieldByIndex(w.items).Addr().Interface().(*[]*kujiv1.Stack)
		*items = a.stacks("items", func(n int) bool { return len(a.words) > 0 && (n == 0 || !w.ends(a.words)) })
	}
	a.options(w.names, func(name string) {
		o := &w.options[slices.Index(w.names, name)]
		if name != w.rest {
			o.read(a, &one, m.Elem())
			return
		}
		items := m.Elem().FieldByIndex(o.at).Addr().Interface().(*[]*kujiv1.Stack)
		*items = a.stacks(strings.ToLower(name), func(n int) bool { return n == 0 || len(a.words) > 0 })
	})
	return one
}

// ends reports whether some words are nothing but options.
func (w *words) ends(words [][]byte) bool {
	seen := 0 // a bit for each
	for len(words) > 0 {
		i := slices.IndexFunc(w.names, func(name string) bool { return len(words[0]) == len(name) && strings.EqualFold(string(words[0]), name) })
		if i < 0 || seen&(1<<i) != 0 || len(words) < w.options[i].size() {
			return false
		}
		seen |= 1 << i
		words = words[w.options[i].size():]
	}
	return true
}

// size returns how many words an option is.
func (w *word) size() int {
	if w.flag {
		return 1
	}
	return 2
}

// read reads the argument.
func (w *word) read(a *arguments, one *Command, m reflect.Value) {
	switch {
	case w.flag:
		m.FieldByIndex(w.at).SetBool(true)
	case w.field == nil && strings.EqualFold(w.name, "id"):
		one.ID = a.text(w.name)
	case w.field == nil:
		one.Reason = a.text(w.name)
	case w.field.Kind() == protoreflect.EnumKind:
		n, err := contract.Value(w.field.Enum(), a.text(w.name))
		if err != nil {
			a.wrong(w.name, "%v", err)
		}
		m.FieldByIndex(w.at).SetInt(int64(n))
	case w.field.Kind() == protoreflect.Int64Kind:
		m.FieldByIndex(w.at).SetInt(int64(a.number(w.name, w.least, w.most)))
	case w.most > 0:
		m.FieldByIndex(w.at).SetUint(a.number(w.name, w.least, w.most))
	default:
		m.FieldByIndex(w.at).SetString(a.text(w.name))
	}
}
