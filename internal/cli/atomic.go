package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// maxGroup bounds the file of an atomic group, in bytes: 100 members with 64
// items each fit.
const maxGroup = 1 << 20

func atomicCommand(a *app) *cobra.Command {
	var name string
	req := &kujiv1.AtomicRequest{}
	cmd := &cobra.Command{
		Use:   "atomic -f FILE",
		Short: "Carry out several commands whole or not at all",
		Long: `Atomic carries out a group of commands in order, all or none. The file is YAML or
JSON. Its members look as in the API: draw, register, grant, consume or transfer.
With - as the file, the command reads standard input.

    members:
    - consume: {player: ann, items: [{item: wood, quantity: 3}]}
    - grant: {player: ann, items: [{item: table, quantity: 1}]}
    - draw: {player: ann, pool: splash, count: 1}
    - transfer: {from: ann, to: bob, items: [{item: coin, quantity: 2}]}

If one member fails, none happens. The group gets its status, and the others are
"aborted". If an answer is lost, the command tries again with the same request id,
so nothing happens twice.`,
		Example: `  kuji atomic -f trade.yaml
  kuji atomic -f - --id order-12 < trade.json`,
	}
	cmd.Flags().StringVarP(&name, "file", "f", "", "`file` with the members in YAML or JSON; - is standard input (required)")
	return write(a, cmd, req, (*api).Atomic, func() error {
		if name == "" {
			return usagef("missing flag --file: the members of the group")
		}
		data, err := a.readFile(name, maxGroup)
		if err != nil {
			return err
		}
		file, err := parseYAML(name, data)
		if err != nil {
			return err
		}
		var of kujiv1.Atomic
		err = file.message(file.root, of.ProtoReflect())
		req.Members = of.GetMembers()
		return err
	})
}

// message reads a message as the API's JSON has it, with names in camelCase or
// with underscores.
func (f *yamlFile) message(n *yaml.Node, m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	return f.mapping(n, "a mapping with "+names(fields), func(key string, k, v *yaml.Node) error {
		fd := fields.ByJSONName(key)
		if fd == nil {
			fd = fields.ByName(protoreflect.Name(key))
		}
		if fd == nil {
			return f.errorf(k, "unknown key %s; expected %s", key, names(fields))
		}
		if of := fd.ContainingOneof(); of != nil && m.WhichOneof(of) != nil {
			return f.errorf(k, "%s and %s: expected only one of them", m.WhichOneof(of).Name(), key)
		}
		switch {
		case fd.IsList():
			list := m.Mutable(fd).List()
			return f.list(v, key+" to be a list", func(one *yaml.Node) error {
				return f.message(one, list.AppendMutable().Message())
			})
		case fd.Kind() == protoreflect.MessageKind:
			return f.message(v, m.Mutable(fd).Message())
		}
		text, err := f.scalar(v)
		if err != nil {
			return err
		}
		value, err := valueOf(fd, text)
		if err != nil {
			return f.errorf(v, "%s %w", fd.Name(), err)
		}
		m.Set(fd, value)
		return nil
	})
}

func names(fields protoreflect.FieldDescriptors) string {
	all := make([]string, fields.Len())
	for i := range all {
		all[i] = string(fields.Get(i).Name())
	}
	return strings.Join(all, ", ")
}
