package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// An element of a list can take two bytes in a request and a hundred once it is decoded. So the
// codecs count the elements of a request before they decode it. Counting takes no memory.
//
// Connect gives a codec's error no detail. So a codec leaves a request with a wrong count empty and
// puts the reason into its unknown fields, which decoding never keeps; [miscount] finds it there.

// mostValues is the most values of each list that a request can contain.
var mostValues = map[protoreflect.FullName]int{
	"kuji.v1.Grant.items":                       kuji.MaxStacks,
	"kuji.v1.GrantRequest.items":                kuji.MaxStacks,
	"kuji.v1.Consume.items":                     kuji.MaxStacks,
	"kuji.v1.ConsumeRequest.items":              kuji.MaxStacks,
	"kuji.v1.Transfer.items":                    kuji.MaxStacks,
	"kuji.v1.TransferRequest.items":             kuji.MaxStacks,
	"kuji.v1.Atomic.members":                    kuji.MaxAtomic,
	"kuji.v1.AtomicRequest.members":             kuji.MaxAtomic,
	"kuji.v1.BatchRequest.commands":             kuji.MaxBatch,
	"kuji.v1.ImportCodesRequest.codes":          kuji.MaxImport,
	"kuji.v1.StreamDrawsRequest.players":        kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.player_indexes": kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.pools":          kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.pool_indexes":   kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.counts":         kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.request_ids":    kuji.MaxBatch,
}

// shape is what the codecs know of a message of the contract in order to count in it.
type shape struct {
	byNumber map[protowire.Number]*part
	byName   map[string]*part // as JSON may write it
}

// maxLists is the most lists in one message.
const maxLists = 8

// part is a field of a shape.
type part struct {
	name    string // in the contract
	list    bool
	index   int    // of a list, among those of its shape
	most    int    // values of a list
	packed  bool   // binary may write many of its values as one
	message *shape // of a message; nil for a scalar
}

// requests are the shapes of requests that have something to count.
type requests map[protoreflect.FullName]*shape

// requestShapes returns the shape of every request of the services that has something to count.
// The error names all lists without a limit.
func requestShapes(services []protoreflect.ServiceDescriptor) (requests, error) {
	known := make(map[protoreflect.FullName]*shape)
	out := make(requests)
	var missing []string
	for _, service := range services {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i).Input()
			if s := shapeOf(m, known, &missing); slices.ContainsFunc(s.all(), (*part).counts) {
				out[m.FullName()] = s
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("server: no limit is known for %s: each list of a request needs one in mostValues", strings.Join(missing, ", "))
	}
	return out, nil
}

func shapeOf(m protoreflect.MessageDescriptor, known map[protoreflect.FullName]*shape, missing *[]string) *shape {
	if s := known[m.FullName()]; s != nil {
		return s
	}
	s := &shape{byNumber: make(map[protowire.Number]*part), byName: make(map[string]*part)}
	known[m.FullName()] = s
	lists := 0
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		p := &part{name: string(f.Name()), list: f.Cardinality() == protoreflect.Repeated}
		if p.list {
			p.index, p.most = lists, mostValues[f.FullName()]
			if lists++; p.most == 0 || lists > maxLists {
				*missing = append(*missing, string(f.FullName()))
			}
		}
		switch f.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			p.message = shapeOf(f.Message(), known, missing)
		case protoreflect.StringKind, protoreflect.BytesKind:
		default:
			p.packed = p.list
		}
		s.byNumber[f.Number()] = p
		s.byName[f.JSONName()] = p
		s.byName[string(f.Name())] = p
	}
	return s
}

func (s *shape) all() []*part {
	out := make([]*part, 0, len(s.byNumber))
	for _, p := range s.byNumber {
		out = append(out, p)
	}
	return out
}

func (p *part) counts() bool { return p.list || p.message != nil }

// errStop ends a count at something that the decoder will refuse.
var errStop = errors.New("not in the contract")

// decode counts with check and, if all counts are right, decodes.
func (r requests) decode(m proto.Message, check func(*shape) error, decode func() error) error {
	s := r[m.ProtoReflect().Descriptor().FullName()]
	if s == nil {
		return decode()
	}
	wrong, ok := errors.AsType[*kuji.Error](check(s))
	if !ok {
		return decode()
	}
	mark, err := proto.Marshal(&kujiv1.Violation{Field: wrong.Field, Description: wrong.Message})
	if err != nil {
		return err
	}
	m.ProtoReflect().SetUnknown(mark)
	return nil
}

// miscount returns why a codec left a request empty, or nil if it did not.
func miscount(m proto.Message) error {
	mark := m.ProtoReflect().GetUnknown()
	if len(mark) == 0 {
		return nil
	}
	var v kujiv1.Violation
	if err := proto.Unmarshal(mark, &v); err != nil {
		return fmt.Errorf("unknown fields of a request: %w", err)
	}
	return &kuji.Error{Code: kuji.CodeInvalid, Field: v.GetField(), Message: v.GetDescription()}
}

// counter counts in one encoded request. It leaves all other faults to the decoder: it stops
// counting at the first one, and the decoder goes no further.
type counter struct{ messages int }

// binary checks the counts of a message in binary.
func (c *counter) binary(data []byte, s *shape) error {
	var counts [maxLists]int
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errStop
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return errStop
		}
		value := data[:n]
		data = data[n:]
		p := s.byNumber[number]
		if p == nil || !p.counts() {
			continue
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if p.list {
			add := 1
			if p.packed && kind == protowire.BytesType {
				add = varints(value)
			}
			if counts[p.index] += add; counts[p.index] > p.most {
				return p.tooMany()
			}
		}
		if p.message != nil && kind == protowire.BytesType {
			if err := c.message(); err != nil {
				return err
			}
			if err := c.binary(value, p.message); err != nil {
				return err
			}
		}
	}
	return nil
}

// varints returns the number of varints in data.
func varints(data []byte) int {
	n := 0
	for _, b := range data {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// jsonCounter counts in one request in JSON. It reads all valid JSON, and overlooks some faults: it
// may read on where the decoder stops, but never stops before the decoder.
type jsonCounter struct {
	counter
	data []byte // what is left
}

// json checks the counts of a message in JSON.
func (c *jsonCounter) json(s *shape) error {
	if c.next() != '{' {
		return errStop
	}
	return c.object(s)
}

// next skips space and returns the byte after it, 0 at the end.
func (c *jsonCounter) next() byte {
	for len(c.data) > 0 {
		switch c.data[0] {
		case ' ', '\t', '\r', '\n':
			c.data = c.data[1:]
		default:
			return c.data[0]
		}
	}
	return 0
}

// element skips what separates elements and returns the byte after it.
func (c *jsonCounter) element() byte {
	b := c.next()
	if b == ',' {
		c.data = c.data[1:]
		b = c.next()
	}
	return b
}

// object checks the counts of the object that is next.
func (c *jsonCounter) object(s *shape) error {
	c.data = c.data[1:]
	for b := c.element(); b != '}'; b = c.element() {
		key, err := c.text()
		if err != nil {
			return err
		}
		p, err := s.named(key)
		if err != nil || c.next() != ':' {
			return errStop
		}
		c.data = c.data[1:]
		if err := c.value(p, p.list); err != nil {
			return err
		}
	}
	c.data = c.data[1:]
	return nil
}

// value checks the counts of the value that is next, of a field or of an element of a list.
func (c *jsonCounter) value(p *part, list bool) error {
	switch b := c.next(); {
	case b == '{' && !list && p.message != nil:
		if err := c.message(); err != nil {
			return err
		}
		return c.object(p.message)
	case b == '[' && list:
		c.data = c.data[1:]
		for n := 1; c.element() != ']'; n++ {
			if n > p.most {
				return p.tooMany()
			}
			if err := c.value(p, false); err != nil {
				return err
			}
		}
		c.data = c.data[1:]
		return nil
	case b == '"':
		_, err := c.text()
		return err
	}
	n := bytes.IndexAny(c.data, ",]} \t\r\n") // after a number, true, false or null
	if n <= 0 {
		return errStop
	}
	c.data = c.data[n:]
	return nil
}

// text reads the text that is next, with its quotes.
func (c *jsonCounter) text() ([]byte, error) {
	if c.next() != '"' {
		return nil, errStop
	}
	for i := 1; i < len(c.data); i++ {
		switch c.data[i] {
		case '\\':
			i++
		case '"':
			text := c.data[:i+1]
			c.data = c.data[i+1:]
			return text, nil
		}
	}
	return nil, errStop
}

// named returns the part that a JSON text names.
func (s *shape) named(text []byte) (*part, error) {
	p := s.byName[string(text[1:len(text)-1])]
	if p == nil && bytes.IndexByte(text, '\\') >= 0 {
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return nil, errStop
		}
		p = s.byName[name]
	}
	if p == nil {
		return nil, errStop
	}
	return p, nil
}

// message counts one message within the request.
func (c *counter) message() error {
	if c.messages++; c.messages > MaxMessages {
		return &kuji.Error{Code: kuji.CodeInvalid,
			Message: fmt.Sprintf("more than %d commands, members, items and what else the request is made of, want at most that many", MaxMessages)}
	}
	return nil
}

func (p *part) tooMany() error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: p.name, Message: fmt.Sprintf("more than %d values, want at most that many", p.most)}
}
