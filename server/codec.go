package server

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji/internal/contract"
)

// codecs replace Connect's codecs by stricter ones, under every name that a request can ask for.
var codecs = connect.WithHandlerOptions(
	connect.WithCodec(protoCodec{}),
	connect.WithCodec(jsonCodec{"json"}),
	connect.WithCodec(jsonCodec{"json; charset=utf-8"}),
)

// protoCodec is binary Protocol Buffers with limits on depth and counts. It skips unknown fields,
// which a newer client may send. It adds what it reads to the message, because a stream reuses the
// memory of one message for the next.
type protoCodec struct{}

func (protoCodec) Name() string { return "proto" }

func (c protoCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

func (protoCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, err := protoMessage(message)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

func (protoCodec) Unmarshal(data []byte, message any) error {
	m, err := protoMessage(message)
	if err != nil {
		return err
	}
	return decode(m,
		func(desc protoreflect.MessageDescriptor) error { return new(counter).binary(data, desc) },
		func() error {
			return proto.UnmarshalOptions{Merge: true, DiscardUnknown: true, RecursionLimit: MaxDepth}.Unmarshal(data, m)
		})
}

// jsonCodec is the standard JSON mapping, with limits on depth and counts.
type jsonCodec struct{ name string }

func (c jsonCodec) Name() string { return c.name }

func (c jsonCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

func (jsonCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, err := protoMessage(message)
	if err != nil {
		return nil, err
	}
	return contract.AppendJSON(dst, m)
}

func (jsonCodec) Unmarshal(data []byte, message any) error {
	m, err := protoMessage(message)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return errors.New("the body is empty, want a JSON object, at least {}")
	}
	return decode(m,
		func(desc protoreflect.MessageDescriptor) error { return (&jsonCounter{data: data}).json(desc) },
		func() error { return contract.ReadJSON(data, m) })
}

func protoMessage(message any) (proto.Message, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a Protocol Buffers message", message)
	}
	return m, nil
}

// errBomb ends the decompression of a message beyond its limit.
var errBomb = errors.New("decompresses to more than the limit")

// boundedGzip decompresses at most max+1 bytes. Connect itself stops keeping bytes at the limit,
// but then decompresses the rest to tell the client how large it is: unbounded work for a small
// message.
type boundedGzip struct {
	gzip.Reader
	max, left int64
}

func (b *boundedGzip) Reset(r io.Reader) error {
	b.left = b.max + 1
	return b.Reader.Reset(r)
}

func (b *boundedGzip) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBomb
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	return n, err
}

// readLimits bounds the request message of one RPC, compressed or not.
func readLimits(max int64) connect.HandlerOption {
	return connect.WithHandlerOptions(
		connect.WithReadMaxBytes(int(max)),
		connect.WithCompression("gzip",
			func() connect.Decompressor { return &boundedGzip{max: max} },
			func() connect.Compressor { return gzip.NewWriter(io.Discard) },
		),
	)
}
