package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// miscounts decodes data and returns the field and the text of the refusal, both empty if there was
// none.
func miscounts(t testing.TB, codec string, data []byte, m proto.Message) (field, text string) {
	t.Helper()
	if err := server.Codecs()[codec].Unmarshal(data, m); err != nil {
		t.Fatalf("%s: %v", codec, err)
	}
	err := server.Miscount(m)
	if err == nil {
		return "", ""
	}
	ke, ok := errors.AsType[*kuji.Error](err)
	if !ok || ke.Code != kuji.CodeInvalid {
		t.Fatalf("%s: %v, want an error with CodeInvalid", codec, err)
	}
	return ke.Field, ke.Message
}

func list(open, element, end string, n int) string {
	return open + strings.Repeat(element+",", n-1) + element + end
}

// field is a length-delimited field in binary, n times.
func field(number protowire.Number, value string, n int) string {
	one := protowire.AppendTag(nil, number, protowire.BytesType)
	return strings.Repeat(string(protowire.AppendString(one, value)), n)
}

// TestCounts decodes lists of as many elements as are allowed, and of one more, in every way of
// writing them.
func TestCounts(t *testing.T) {
	grant := func() proto.Message { return new(kujiv1.GrantRequest) }
	batch := func() proto.Message { return new(kujiv1.BatchRequest) }
	draws := func() proto.Message { return new(kujiv1.StreamDrawsRequest) }
	packed := func(n int) string { return field(3, strings.Repeat("\x80\x01", n), 1) }
	for _, c := range []struct {
		name, codec, field string
		most               int
		message            func() proto.Message
		body               func(n int) string
	}{
		{"items", "json", "items", kuji.MaxStacks, grant, func(n int) string { return list(`{"items":[`, `{}`, `]}`, n) }},
		{"an escaped name", "json", "items", kuji.MaxStacks, grant, func(n int) string { return list(`{"\u0069tems" :[ `, `{} `, `]}`, n) }},
		{"items", "proto", "items", kuji.MaxStacks, grant, func(n int) string { return field(4, "", n) }},
		{"commands", "json", "commands", kuji.MaxBatch, batch, func(n int) string { return list(`{"commands":[`, `{}`, `]}`, n) }},
		{"commands", "proto", "commands", kuji.MaxBatch, batch, func(n int) string { return field(2, "", n) }},
		{"members", "json", "members", kuji.MaxAtomic, batch, func(n int) string {
			return `{"commands":[{"atomic":` + list(`{"members":[`, `{}`, `]}`, n) + `}]}`
		}},
		{"members", "proto", "members", kuji.MaxAtomic, batch, func(n int) string { return field(2, field(6, field(1, "", n), 1), 1) }},
		{"items of a member", "json", "items", kuji.MaxStacks, batch, func(n int) string {
			return `{"commands":[{"atomic":{"members":[{"transfer":` + list(`{"items":[`, `{}`, `]}`, n) + `}]}}]}`
		}},
		{"items of a member", "proto", "items", kuji.MaxStacks, batch, func(n int) string {
			return field(2, field(6, field(1, field(4, field(3, "", n), 1), 1), 1), 1)
		}},
		{"all", "json", "", server.MaxMessages, batch, func(n int) string { // 100 for each atomic of 98 members
			body := strings.TrimSuffix(strings.Repeat(`{"atomic":`+list(`{"members":[`, `{}`, `]}`, 98)+`},`, n/100), ",")
			return `{"commands":[` + body + strings.Repeat(`,{}`, n%100) + `]}`
		}},
		{"all", "proto", "", server.MaxMessages, batch, func(n int) string {
			return field(2, field(6, field(1, "", 98), 1), n/100) + field(2, "", n%100)
		}},
		{"the same group again and again", "proto", "", server.MaxMessages, batch, func(n int) string {
			return field(2, field(6, field(1, "", 99), (n-1)/100)+field(6, "", (n-1)%100), 1)
		}},
		{"players", "json", "players", kuji.MaxBatch, draws, func(n int) string { return list(`{"players":[`, `""`, `]}`, n) }},
		{"players", "proto", "players", kuji.MaxBatch, draws, func(n int) string { return field(2, "", n) }},
		{"indexes", "json", "player_indexes", kuji.MaxBatch, draws, func(n int) string { return list(`{"playerIndexes":[`, `0`, `]}`, n) }},
		{"the contract's name", "json", "player_indexes", kuji.MaxBatch, draws, func(n int) string { return list(`{"player_indexes":[`, `0`, `]}`, n) }},
		{"packed", "proto", "player_indexes", kuji.MaxBatch, draws, packed},
		{"packed in parts", "proto", "player_indexes", kuji.MaxBatch, draws, func(n int) string { return packed(n/2) + packed(n-n/2) }},
		{"not packed", "proto", "player_indexes", kuji.MaxBatch, draws, func(n int) string { return strings.Repeat("\x18\x07", n) }},
	} {
		if field, text := miscounts(t, c.codec, []byte(c.body(c.most)), c.message()); text != "" {
			t.Errorf("%s in %s: the most allowed: %s: %s", c.name, c.codec, field, text)
		}
		m := c.message()
		field, text := miscounts(t, c.codec, []byte(c.body(c.most+1)), m)
		if field != c.field || !strings.Contains(text, fmt.Sprint(c.most)) {
			t.Errorf("%s in %s: one more than allowed: %q: %q, want %q and %d", c.name, c.codec, field, text, c.field, c.most)
		}
	}
}

// TestCountsOverTheWire sends too many elements in every protocol.
func TestCountsOverTheWire(t *testing.T) {
	f := start(t, server.Options{})
	for _, c := range clients(t, f.url) {
		_, err := c.reward.Grant(context.Background(), &kujiv1.GrantRequest{Player: "ann", Items: make([]*kujiv1.Stack, kuji.MaxStacks+1)})
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v, want invalid_argument", c.name, err)
			continue
		}
		d := detail(t, err)
		if d.GetReason() != kujiv1.Reason_REASON_INVALID || d.GetViolations()[0].GetField() != "items" {
			t.Errorf("%s: detail %v, want the field items", c.name, d)
		}
	}
}

// hostile are requests of many elements, as large as the default limits allow.
func hostile() map[string]struct {
	codec   string
	body    []byte
	message proto.Message
} {
	type request = struct {
		codec   string
		body    []byte
		message proto.Message
	}
	fill := func(open, element, end string, size int) []byte {
		return []byte(list(open, element, end, (size-len(open)-len(end))/(len(element)+1)))
	}
	const small, large = 64 << 10, 4 << 20
	stacks := list(`{"grant":{"items":[`, `{}`, `]}}`, kuji.MaxStacks)
	group := list(`{"atomic":{"members":[`, `{}`, `]}}`, kuji.MaxAtomic)
	groups := list(`{"atomic":{"members":[`, `{"grant":{"items":[{}]}}`, `]}}`, 30)
	binary := func(element string) []byte { return bytes.Repeat([]byte(element), large/len(element)) }
	return map[string]request{
		"grant of empty items, JSON":         {"json", fill(`{"items":[`, `{}`, `]}`, small), new(kujiv1.GrantRequest)},
		"grant of empty items":               {"proto", []byte(field(4, "", small/2)), new(kujiv1.GrantRequest)},
		"atomic of empty members":            {"proto", []byte(field(3, "", large/2)), new(kujiv1.AtomicRequest)},
		"batch of empty commands":            {"proto", binary(field(2, "", 1)), new(kujiv1.BatchRequest)},
		"batch of empty commands, JSON":      {"json", fill(`{"commands":[`, `{}`, `]}`, large), new(kujiv1.BatchRequest)},
		"batch of grants of empty items":     {"proto", binary(field(2, field(3, field(2, "", 64), 1), 1)), new(kujiv1.BatchRequest)},
		"batch of grants, JSON":              {"json", fill(`{"commands":[`, stacks, `]}`, large), new(kujiv1.BatchRequest)},
		"batch of groups of empty members":   {"proto", binary(field(2, field(6, field(1, "", 100), 1), 1)), new(kujiv1.BatchRequest)},
		"batch of groups, JSON":              {"json", fill(`{"commands":[`, group, `]}`, large), new(kujiv1.BatchRequest)},
		"batch of groups of grants, JSON":    {"json", fill(`{"commands":[`, groups, `]}`, large), new(kujiv1.BatchRequest)},
		"batch of one group again and again": {"proto", []byte(field(2, strings.Repeat(field(2, "", 1)+field(3, "", 1), large/4-8), 1)), new(kujiv1.BatchRequest)},
		"draws of empty players":             {"proto", binary(field(2, "", 1)), new(kujiv1.StreamDrawsRequest)},
		"draws of indexes":                   {"proto", []byte(field(3, strings.Repeat("\x00", large-8), 1)), new(kujiv1.StreamDrawsRequest)},
		"draws of indexes, JSON":             {"json", fill(`{"playerIndexes":[`, `0`, `]}`, large), new(kujiv1.StreamDrawsRequest)},
	}
}

// TestCountsBeforeMemory checks that requests with too many elements are refused before they take
// memory.
func TestCountsBeforeMemory(t *testing.T) {
	for name, r := range hostile() {
		codec := server.Codecs()[r.codec]
		taken := allocated(func() {
			if err := codec.Unmarshal(r.body, r.message); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if server.Miscount(r.message) == nil {
			t.Errorf("%s: not refused", name)
		}
		if taken > 64<<10 {
			t.Errorf("%s: %d bytes of memory for a request of %d, want at most 65536", name, taken, len(r.body))
		}
	}
}

// allocated returns the bytes that f allocates, whether or not they are garbage afterwards.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestEveryListHasALimit adds a list to the contract and expects that the server does not start.
func TestEveryListHasALimit(t *testing.T) {
	if err := server.CheckCounts(server.Contract()); err != nil {
		t.Fatal(err)
	}
	file := protodesc.ToFileDescriptorProto(kujiv1.File_kuji_v1_grant_proto)
	for _, m := range file.GetMessageType() {
		if m.GetName() == "GrantRequest" {
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
				Name: proto.String("notes"), JsonName: proto.String("notes"), Number: proto.Int32(99),
				Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			})
		}
	}
	file.Service = []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("S"), Method: []*descriptorpb.MethodDescriptorProto{
		{Name: proto.String("M"), InputType: proto.String(".kuji.v1.GrantRequest"), OutputType: proto.String(".kuji.v1.GrantResponse")},
	}}}
	built, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	err = server.CheckCounts([]protoreflect.ServiceDescriptor{built.Services().Get(0)})
	if err == nil || !strings.Contains(err.Error(), "kuji.v1.GrantRequest.notes") {
		t.Errorf("a list without a limit: %v, want an error that names it", err)
	}
}

// messagesIn returns the number of messages within m.
func messagesIn(m protoreflect.Message) int {
	n := 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				n += 1 + messagesIn(v.List().Get(i).Message())
			}
		default:
			n += 1 + messagesIn(v.Message())
		}
		return true
	})
	return n
}

// FuzzCounts compares what is counted in a request with what decoding makes of it.
func FuzzCounts(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "commands" : [ {} , null ] } `, `{"commands":[{"draw":{"player":"a\"]}","pool":"\\"}},{"grant":{"items":[{"item":"x","quantity":1e3},{}]}}]}`,
		`{"comm\u0061nds":[{"atomic":{"members":[{},{"transfer":{"items":[{}]}}]}}],"realm":null}`,
		`{"realm":"\u0022","commands":null}`, `{"commands":[{"requestId":"1","draw":{"count":"7"}}]}`, `{"commands":[]}`, `{"commands":[,]}`, `{,}`, `[}`, `{"commands":[}`,
	} {
		f.Add(true, []byte(text))
	}
	for _, text := range []string{"", field(2, "", 3), field(2, field(6, field(1, field(2, field(2, "", 2), 1), 2), 2), 2), field(2, field(2, "", 1)+field(3, "", 1), 2), "\x13\x12\x00\x14"} {
		f.Add(false, []byte(text))
	}
	f.Fuzz(func(t *testing.T, text bool, data []byte) {
		codec := "proto"
		if text {
			codec = "json"
		}
		m := new(kujiv1.BatchRequest)
		if server.Codecs()[codec].Unmarshal(data, m) != nil || server.Miscount(m) != nil {
			return
		}
		counted, got := server.CountMessages(text, data, m), messagesIn(m.ProtoReflect())
		if counted < got || text && counted != got { // in binary a later value can replace or add to an earlier one
			t.Errorf("%s %q: %d messages counted, %d decoded", codec, data, counted, got)
		}
	})
}
