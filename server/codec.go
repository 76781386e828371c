package server

import (
	"compress/gzip"
	"errors"
	"io"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
)

// codec is how messages are written and read. It counts what is in a request before it reads it.
type codec struct {
	name   string
	append func(dst []byte, m proto.Message) ([]byte, error)
	count  func(data []byte, m protoreflect.MessageDescriptor) error
	read   func(data []byte, m proto.Message) error
}

// binary is Protocol Buffers with limits on depth and counts. It skips unknown fields, which a
// newer client may send. It merges into the message: a stream reuses one message for all batches.
var binary = codec{
	name:   "proto",
	append: proto.MarshalOptions{}.MarshalAppend,
	count:  func(data []byte, m protoreflect.MessageDescriptor) error { return new(counter).binary(data, m) },
	read:   proto.UnmarshalOptions{Merge: true, DiscardUnknown: true, RecursionLimit: MaxDepth}.Unmarshal,
}

// inJSON is the standard JSON mapping, with limits on depth and counts.
func inJSON(name string) codec {
	return codec{
		name:   name,
		append: contract.AppendJSON,
		count:  func(data []byte, m protoreflect.MessageDescriptor) error { return (&jsonCounter{data: data}).json(m) },
		read: func(data []byte, m proto.Message) error {
			if len(data) == 0 {
				return errors.New("the body is empty, want a JSON object, at least {}")
			}
			return contract.ReadJSON(data, m)
		},
	}
}

// codecs replace Connect's codecs by stricter ones, under every name that a request can ask for.
var codecs = connect.WithHandlerOptions(connect.WithCodec(binary), connect.WithCodec(inJSON("json")), connect.WithCodec(inJSON("json; charset=utf-8")))

// Name implements [connect.Codec].
func (c codec) Name() string { return c.name }

// Marshal implements [connect.Codec].
func (c codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend is Marshal into memory that is there.
func (c codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return c.append(dst, m)
}

// Unmarshal implements [connect.Codec]. It leaves a request with a wrong count empty: see
// [miscount].
func (c codec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return errNoMessage
	}
	desc := m.ProtoReflect().Descriptor()
	for i := range desc.Fields().Len() {
		if counts(desc.Fields().Get(i)) {
			if wrong, ok := errors.AsType[*kuji.Error](c.count(data, desc)); ok {
				return mark(m, wrong)
			}
			break
		}
	}
	return c.read(data, m)
}

var errNoMessage = errors.New("not a message of Protocol Buffers")

// errBomb ends the decompression of a message beyond its limit.
var errBomb = errors.New("decompresses to more than the limit")

// boundedGzip decompresses at most max+1 bytes. Connect would decompress all, to say how large it
// is: unbounded work for a small message.
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
