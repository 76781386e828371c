package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// maxAtomic bounds the file of an atomic, in bytes: 100 members with 64 items each fit.
const maxAtomic = 1 << 20

func atomicCommand(a *app) *cobra.Command {
	var name string
	req := &kujiv1.AtomicRequest{}
	cmd := &cobra.Command{Use: "atomic -f FILE", Short: "Carry out several commands whole or not at all"}
	cmd.Flags().StringVarP(&name, "file", "f", "", "`file` with the members in YAML or JSON; - is standard input (required)")
	return write(a, cmd, req, (*api).Atomic, holding(cmd, &req.HoldMs, &req.Refund), func() error {
		if name == "" {
			return usagef("missing flag --file: the members")
		}
		data, err := a.readFile(name, maxAtomic)
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
		if of.GetHoldMs() != 0 || of.GetRefund() {
			if req.GetHoldMs() != 0 {
				return usagef("--hold: the file says how the group is held, too")
			}
			req.HoldMs, req.Refund = of.GetHoldMs(), of.GetRefund()
		}
		return err
	})
}

// message reads a message as the API's JSON has it, with names in camelCase or with underscores.
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
