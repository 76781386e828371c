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
// codecs count elements before they decode, without taking memory. Connect gives a codec's error no
// detail, so a codec leaves a request with a wrong count empty, and puts the reason into its
// unknown fields, where [miscount] finds it.

// mostValues is the most values of each list that a request can contain.
var mostValues = map[protoreflect.FullName]int{
	"kuji.v1.Grant.items":                       kuji.MaxStacks,
	"kuji.v1.GrantRequest.items":                kuji.MaxStacks,
	"kuji.v1.Consume.items":                     kuji.MaxStacks,
	"kuji.v1.ConsumeRequest.items":              kuji.MaxStacks,
	"kuji.v1.Transfer.items":                    kuji.MaxStacks,
	"kuji.v1.TransferRequest.items":             kuji.MaxStacks,
	"kuji.v1.OpenRound.stake":                   kuji.MaxStacks,
	"kuji.v1.OpenRoundRequest.stake":            kuji.MaxStacks,
	"kuji.v1.Join.stake":                        kuji.MaxStacks,
	"kuji.v1.JoinRequest.stake":                 kuji.MaxStacks,
	"kuji.v1.Atomic.members":                    kuji.MaxAtomic,
	"kuji.v1.AtomicRequest.members":             kuji.MaxAtomic,
	"kuji.v1.BatchRequest.commands":             kuji.MaxBatch,
	"kuji.v1.ImportCodesRequest.codes":          kuji.MaxImport,
	"kuji.v1.ListDisplaysRequest.kinds":         len(kujiv1.DisplayKind_name),
	"kuji.v1.StreamDrawsRequest.players":        kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.player_indexes": kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.pools":          kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.pool_indexes":   kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.counts":         kuji.MaxBatch,
	"kuji.v1.StreamDrawsRequest.request_ids":    kuji.MaxBatch,
	"kuji.v1.SimulateRequest.codes":             maxSimulatedLists,
	"kuji.v1.SimulateRequest.progress":          maxSimulatedProgress,
}

// maxFields bounds the place of a list among the fields of its message.
const maxFields = 16

// checkCounts fails if lists of requests have no limit, and names them.
func checkCounts(services []protoreflect.ServiceDescriptor) error {
	seen := make(map[protoreflect.FullName]bool)
	var missing []string
	var check func(m protoreflect.MessageDescriptor)
	check = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if isList(f) && (mostValues[f.FullName()] == 0 || i >= maxFields) {
				missing = append(missing, string(f.FullName()))
			}
			if f.Message() != nil {
				check(f.Message())
			}
		}
	}
	for _, service := range services {
		for i := range service.Methods().Len() {
			check(service.Methods().Get(i).Input())
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("server: no limit is known for %s: each list of a request needs one in mostValues", strings.Join(missing, ", "))
	}
	return nil
}

func isList(f protoreflect.FieldDescriptor) bool { return f.Cardinality() == protoreflect.Repeated }

// counts reports whether there is something to count in a field.
func counts(f protoreflect.FieldDescriptor) bool { return isList(f) || f.Message() != nil }

// errStop ends a count at something that the decoder will refuse.
var errStop = errors.New("not in the contract")

// mark notes in an empty request why it is.
func mark(m proto.Message, wrong *kuji.Error) error {
	text, err := proto.Marshal(&kujiv1.Violation{Field: wrong.Field, Description: wrong.Message})
	m.ProtoReflect().SetUnknown(text)
	return err
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

// counter counts in one encoded request. It stops at the first fault, and leaves it to the decoder.
type counter struct{ messages int }

// binary checks the counts of a message in binary.
func (c *counter) binary(data []byte, m protoreflect.MessageDescriptor) error {
	var values [maxFields]int
	var f protoreflect.FieldDescriptor // the last one; values of a list follow each other
	most := 0
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
		if f == nil || f.Number() != number {
			if f = m.Fields().ByNumber(number); f == nil {
				continue
			}
			most = mostValues[f.FullName()]
		}
		if !counts(f) {
			continue
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if most > 0 { // a list
			add := 1
			if kind == protowire.BytesType && f.Message() == nil && f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind {
				add = varints(value) // many values as one
			}
			if values[f.Index()] += add; values[f.Index()] > most {
				return tooMany(f)
			}
		}
		if f.Message() != nil && kind == protowire.BytesType {
			if err := c.message(); err != nil {
				return err
			}
			if err := c.binary(value, f.Message()); err != nil {
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

// jsonCounter counts in one request in JSON. It may overlook a fault that the decoder stops at, but
// never stops before the decoder.
type jsonCounter struct {
	counter
	data []byte // what is left
}

// json checks the counts of a message in JSON.
func (c *jsonCounter) json(m protoreflect.MessageDescriptor) error {
	if c.next() != '{' {
		return errStop
	}
	return c.object(m)
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
func (c *jsonCounter) object(m protoreflect.MessageDescriptor) error {
	c.data = c.data[1:]
	for b := c.element(); b != '}'; b = c.element() {
		key, err := c.text()
		if err != nil {
			return err
		}
		f := named(m, key)
		if f == nil || c.next() != ':' {
			return errStop
		}
		c.data = c.data[1:]
		if err := c.value(f, isList(f)); err != nil {
			return err
		}
	}
	c.data = c.data[1:]
	return nil
}

// value checks the counts of the value that is next, of a field or of an element of a list.
func (c *jsonCounter) value(f protoreflect.FieldDescriptor, list bool) error {
	switch b := c.next(); {
	case b == '{' && !list && f.Message() != nil:
		if err := c.message(); err != nil {
			return err
		}
		return c.object(f.Message())
	case b == '[' && list:
		c.data = c.data[1:]
		most := mostValues[f.FullName()]
		for n := 1; c.element() != ']'; n++ {
			if n > most && most > 0 {
				return tooMany(f)
			}
			if err := c.value(f, false); err != nil {
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

// named returns the field that a JSON text names, nil if there is none.
func named(m protoreflect.MessageDescriptor, text []byte) protoreflect.FieldDescriptor {
	name := text[1 : len(text)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		var plain string
		if json.Unmarshal(text, &plain) != nil {
			return nil
		}
		name = []byte(plain)
	}
	for i := range m.Fields().Len() { // looking it up by name would take memory
		if f := m.Fields().Get(i); f.JSONName() == string(name) || string(f.Name()) == string(name) {
			return f
		}
	}
	return nil
}

// message counts one message within the request.
func (c *counter) message() error {
	if c.messages++; c.messages > MaxMessages {
		return &kuji.Error{Code: kuji.CodeInvalid,
			Message: fmt.Sprintf("more than %d commands, members, items and what else the request is made of, want at most that many", MaxMessages)}
	}
	return nil
}

func tooMany(f protoreflect.FieldDescriptor) error {
	return &kuji.Error{Code: kuji.CodeInvalid, Field: string(f.Name()), Message: fmt.Sprintf("more than %d values, want at most that many", mostValues[f.FullName()])}
}
