package redis

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// words reads a command of the contract from arguments, as the contract says that it is written.
type words struct {
	message protoreflect.MessageType
	first   []word                       // in this order
	items   protoreflect.FieldDescriptor // follows them; nil: there are none
	options []word
	names   []string // of the options
}

// word is an argument, or an option with one.
type word struct {
	name        string
	field       protoreflect.FieldDescriptor // nil: the id or the reason
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
		cmd.most = cmd.least + 2*len(cmd.command.options)
		if cmd.command.items != nil {
			cmd.least, cmd.most = cmd.least+2, cmd.most+2*kuji.MaxStacks
		}
		all = append(all, cmd)
	}
	return all
}

func newWords(message protoreflect.MessageType, usage string) *words {
	w := &words{message: message}
	usage, items := strings.CutSuffix(usage, "item quantity [item quantity ...] [ID id]")
	if items {
		w.items, w.options = message.Descriptor().Fields().ByName("items"), []word{{name: "ID"}}
	}
	all := strings.Fields(usage)
	for i := 0; i < len(all); i++ {
		name, option := strings.CutPrefix(all[i], "[")
		one := word{name: name, field: message.Descriptor().Fields().ByName(protoreflect.Name(strings.ToLower(name)))}
		one.bound()
		if option {
			w.options = append(w.options, one)
			i++ // the name of its argument
		} else {
			w.first = append(w.first, one)
		}
	}
	for _, o := range w.options {
		w.names = append(w.names, o.name)
	}
	return w
}

// bound sets which numbers a field takes.
func (w *word) bound() {
	if w.field == nil {
		return
	}
	switch w.field.Kind() {
	case protoreflect.Uint32Kind:
		w.most = math.MaxUint32
	case protoreflect.Int64Kind:
		w.most = math.MaxInt64
	case protoreflect.Uint64Kind:
		w.most = math.MaxUint64
	}
	if o := w.field.Options(); proto.HasExtension(o, kujiv1.E_Range) {
		r := proto.GetExtension(o, kujiv1.E_Range).(*kujiv1.Range)
		w.least, w.most = r.GetLeast(), r.GetMost()
	}
}

// read reads a command.
func (w *words) read(a *arguments) (one Command) {
	m := w.message.New()
	one.Message = m.Interface()
	for i := range w.first {
		w.first[i].read(a, &one, m)
	}
	if w.items != nil {
		var items []*kujiv1.Stack
		items, one.ID = a.items()
		for _, s := range items {
			m.Mutable(w.items).List().Append(protoreflect.ValueOfMessage(s.ProtoReflect()))
		}
		return one
	}
	a.options(w.names, func(name string) { w.options[slices.Index(w.names, name)].read(a, &one, m) })
	return one
}

// read reads the argument.
func (w *word) read(a *arguments, one *Command, m protoreflect.Message) {
	switch {
	case w.field != nil:
		if v := w.value(a); a.err == nil {
			m.Set(w.field, v)
		}
	case strings.EqualFold(w.name, "id"):
		one.ID = a.text(w.name)
	default:
		one.Reason = a.text(w.name)
	}
}

// value reads the value of a field.
func (w *word) value(a *arguments) protoreflect.Value {
	switch w.field.Kind() {
	case protoreflect.EnumKind:
		n, err := contract.Value(w.field.Enum(), a.text(w.name))
		if err != nil {
			a.wrong(w.name, "%v", err)
		}
		return protoreflect.ValueOfEnum(n)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(a.number(w.name, w.least, w.most)))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(a.number(w.name, w.least, w.most))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(a.number(w.name, w.least, w.most)))
	}
	return protoreflect.ValueOfString(a.text(w.name))
}
