package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Most commands that talk to a server make one call. read and write complete such a command: they add
// the flags of the connection, and send the request once fill has put in what the arguments say.

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
	fill func(args []string), table func(w io.Writer, resp Resp)) *cobra.Command {
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *api, args []string) error {
		fill(args)
		setText(req, "realm", c.realm)
		resp, err := call(c, cmd.Context(), req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { table(w, resp) })
	})
	return cmd
}

// answer is a response with a result in it.
type answer interface {
	proto.Message
	GetResult() *kujiv1.Result
}

// write completes a command that a server carries out once, under a request id.
func write[Req proto.Message, Resp answer](a *app, cmd *cobra.Command, req Req, call func(*api, context.Context, Req) (Resp, error),
	fill func(args []string) error) *cobra.Command {
	conn := a.connection(cmd.Flags())
	id := cmd.Flags().String("id", "", "request `id`; the same id again returns the first result (default: a new one, which is printed)")
	why := &reasons{}
	if setText(req, "metadata", "") {
		why = newReasons(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := fill(args); err != nil {
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

// noArgs is for a command whose arguments say nothing.
func noArgs([]string) {}
