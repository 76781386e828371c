package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Most commands that talk to a server make one call. read and write complete such a command: they add
// the flags of the connection, put arguments and flags into the request, send it, and print the answer.

// arguments are the words of a use line: POOL is required, [POOL] and POOL | --flag are not, POOL... can be several.
type arguments struct {
	names    []string
	required int
	several  bool // of the last one
}

func argumentsOf(use string) (a arguments) {
	for _, word := range strings.Fields(use)[1:] {
		if word == "|" {
			a.required--
		}
		if word == "|" || word[0] == '-' {
			break // flags follow
		}
		name, several := strings.CutSuffix(strings.Trim(word, "[]"), "...")
		a.names, a.several = append(a.names, name), several
		if word[0] != '[' {
			a.required++
		}
	}
	return a
}

// check accepts the arguments that the use line names and no others, and names what is missing.
func (a arguments) check(_ *cobra.Command, args []string) error {
	switch {
	case len(args) < a.required:
		return fmt.Errorf("missing argument %s", a.names[len(args)])
	case len(args) > len(a.names) && !a.several:
		return fmt.Errorf("unexpected argument %q", args[len(a.names)])
	}
	return nil
}

// fill puts arguments into the fields of a request that the use line names, ITEM=QUANTITY into the list items or stake.
func fill(req proto.Message, use string, args []string) error {
	m, names := req.ProtoReflect(), argumentsOf(use).names
	fields := m.Descriptor().Fields()
	for i, arg := range args {
		name := names[min(i, len(names)-1)]
		if name == "ITEM=QUANTITY" {
			stack, err := parseItem(arg)
			if err != nil {
				return err
			}
			list := fields.ByName("items")
			if list == nil {
				list = fields.ByName("stake")
			}
			m.Mutable(list).List().Append(protoreflect.ValueOfMessage(stack.ProtoReflect()))
			continue
		}
		fd := fields.ByName(protoreflect.Name(strings.ToLower(name)))
		if fd == nil {
			continue
		}
		value, err := valueOf(fd, arg)
		if err != nil {
			return usagef("argument %s %w", name, err)
		}
		m.Set(fd, value)
	}
	return nil
}

// parseItem reads ITEM=QUANTITY. Beyond its being a number, the server judges the quantity.
func parseItem(arg string) (*kujiv1.Stack, error) {
	item, text, ok := strings.Cut(arg, "=")
	if !ok || item == "" {
		return nil, usagef("argument %q: expected ITEM=QUANTITY, as in gems=100", arg)
	}
	quantity, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, usagef("argument %q: expected a whole number after the equals sign", arg)
	}
	return &kujiv1.Stack{Item: item, Quantity: quantity}, nil
}

// valueOf reads the value of a field that is a text or a number.
func valueOf(fd protoreflect.FieldDescriptor, text string) (v protoreflect.Value, err error) {
	number := uint64(0)
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.Uint32Kind:
		number, err = strconv.ParseUint(text, 10, 32)
		v = protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Int64Kind:
		number, err = strconv.ParseUint(text, 10, 63)
		v = protoreflect.ValueOfInt64(int64(number))
	case protoreflect.BoolKind:
		yes, wrong := strconv.ParseBool(text)
		v, err = protoreflect.ValueOfBool(yes), wrong
	case protoreflect.Uint64Kind:
		number, err = strconv.ParseUint(text, 10, 64)
		v = protoreflect.ValueOfUint64(number)
	default:
		return v, fmt.Errorf("the command cannot read fields such as %s yet", fd.FullName())
	}
	if err != nil {
		err = fmt.Errorf("%q: expected %s", text, expected[fd.Kind().String()])
	}
	return v, err
}

// setText sets a field of a message, if the message has it. It reports whether it has.
func setText(m proto.Message, field, value string) bool {
	r := m.ProtoReflect()
	desc := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	if desc != nil && value != "" {
		r.Set(desc, protoreflect.ValueOfString(value))
	}
	return desc != nil
}

// read completes a command that shows what a server answers.
func read[Req, Resp proto.Message](a *app, cmd *cobra.Command, req Req, call func(*api, context.Context, Req) (Resp, error),
	table func(w io.Writer, resp Resp)) *cobra.Command {
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		if err := fill(req, cmd.Use, args); err != nil {
			return err
		}
		setText(req, "realm", c.realm)
		resp, err := call(c, ctx, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { table(w, resp) })
	})
}

// answer is a response with a result in it.
type answer interface {
	proto.Message
	GetResult() *kujiv1.Result
}

// write completes a command that a server carries out once. also checks and completes the request first.
func write[Req proto.Message, Resp answer](a *app, cmd *cobra.Command, req Req, call func(*api, context.Context, Req) (Resp, error),
	also ...func() error) *cobra.Command {
	conn := a.connection(cmd.Flags())
	id := cmd.Flags().String("id", "", "request `id`; the same id again returns the first result (default: a new one, which is printed)")
	why := &reasons{}
	if setText(req, "metadata", "") {
		why = newReasons(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := fill(req, cmd.Use, args)
		for _, f := range also {
			err = errors.Join(err, f())
		}
		if err != nil {
			return err
		}
		c, err := conn.dial()
		if err != nil {
			return err
		}
		for field, value := range map[string]string{"realm": c.realm, "request_id": *id, "reason": why.reason, "metadata": why.metadata} {
			setText(req, field, value)
		}
		resp, err := call(c, cmd.Context(), req)
		if err != nil {
			return err
		}
		sent := any(req).(interface{ GetRequestId() string }).GetRequestId() // the client has made one if there was none
		draws := drawsIn(resp.GetResult().GetOutcomes())
		if r, ok := any(req).(interface{ GetCount() uint32 }); ok {
			draws = int(r.GetCount())
		}
		return a.finish(sent, draws, resp)
	}
	return cmd
}

// reasons is what the log keeps of why something was asked.
type reasons struct{ reason, metadata string }

// newReasons adds the flags that say why.
func newReasons(cmd *cobra.Command) *reasons {
	r := new(reasons)
	cmd.Flags().StringVar(&r.reason, "reason", "", "why: the log keeps it, with the name of the API key")
	cmd.Flags().StringVar(&r.metadata, "metadata", "", "any `text` of at most 1024 bytes to find in the log, such as an order's number")
	return r
}
