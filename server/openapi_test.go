package server_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/kuji-dev/kuji/server"
)

// openAPI is what a test reads of the contract as OpenAPI.
type openAPI struct {
	OpenAPI    string
	Paths      map[string]map[string]any
	Components struct{ Schemas map[string]json.RawMessage }
}

func readOpenAPI(t *testing.T) (doc openAPI) {
	t.Helper()
	f := newServer(t, server.Options{Keys: keyFile(t)})
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, server.OpenAPIPath, nil)) // nobody needs a key for it
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("HTTP %d %v", w.Code, w.Header())
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPIHasAll: each RPC that does not stream is a path, and nothing else is.
func TestOpenAPIHasAll(t *testing.T) {
	doc := readOpenAPI(t)
	want := map[string]bool{}
	for _, service := range server.Contract() {
		for i := range service.Methods().Len() {
			if m := service.Methods().Get(i); !m.IsStreamingClient() && !m.IsStreamingServer() {
				want["/"+string(service.FullName())+"/"+string(m.Name())] = true
			}
		}
	}
	for path := range want {
		if doc.Paths[path]["post"] == nil {
			t.Errorf("%s is missing", path)
		}
	}
	for path := range doc.Paths {
		if !want[path] {
			t.Errorf("%s is no RPC", path)
		}
	}
}

// TestOpenAPISaysWhatIsWritten: random messages of each type, as JSON, are what the schemas say, and
// with a field of another type they are not.
func TestOpenAPISaysWhatIsWritten(t *testing.T) {
	doc := readOpenAPI(t)
	defs, each := map[string]json.RawMessage{}, map[string]any{}
	for name, schema := range doc.Components.Schemas {
		defs[name] = json.RawMessage(strings.ReplaceAll(string(schema), "#/components/schemas/", "#/$defs/"))
		each[name] = map[string]any{"$ref": "#/$defs/" + name}
	}
	raw, err := json.Marshal(map[string]any{"properties": each, "$defs": defs})
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	// validate judges the JSON of a message of a type.
	validate := func(of protoreflect.FullName, value any) error {
		return resolved.Validate(map[string]any{string(of): value})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	types, refused := 0, 0
	for _, service := range server.Contract() {
		for i := range service.Methods().Len() {
			for _, d := range []protoreflect.MessageDescriptor{service.Methods().Get(i).Input(), service.Methods().Get(i).Output()} {
				if defs[string(d.FullName())] == nil {
					continue // of one that streams
				}
				types++
				for range 20 {
					m := dynamicpb.NewMessage(d)
					fillRandom(rnd, m, 4)
					text, err := protojson.Marshal(m)
					if err != nil {
						t.Fatal(err)
					}
					var value map[string]any
					if err := json.Unmarshal(text, &value); err != nil {
						t.Fatal(err)
					}
					if err := validate(d.FullName(), value); err != nil {
						t.Fatalf("%s %s: %v", d.FullName(), text, err)
					}
					for name := range value {
						value[name] = []any{map[string]any{"no": "such"}, 7}
						break
					}
					if len(value) > 0 && validate(d.FullName(), value) != nil {
						refused++
					} else if len(value) > 0 {
						t.Errorf("%s takes %v", d.FullName(), value)
					}
				}
			}
		}
	}
	if types < 100 || refused < 500 {
		t.Errorf("%d types were tried, %d wrong messages refused", types, refused)
	}
}

// fillRandom sets fields of a message at random.
func fillRandom(rnd *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case rnd.IntN(3) == 0 || depth == 0 && (f.Kind() == protoreflect.MessageKind):
		case f.IsMap():
			v := m.Mutable(f).Map()
			v.Set(protoreflect.ValueOfString("key").MapKey(), randomValue(rnd, f.MapValue()))
		case f.IsList():
			list := m.Mutable(f).List()
			for range rnd.IntN(3) {
				if f.Kind() == protoreflect.MessageKind {
					fillRandom(rnd, list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(randomValue(rnd, f))
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			fillRandom(rnd, m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, randomValue(rnd, f))
		}
	}
}

func randomValue(rnd *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"ann", "くじ", ""}[rnd.IntN(3)])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{1, 255, byte(rnd.IntN(256))})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rnd.Float64())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(math.MinInt32)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(math.MaxUint32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64([]int64{math.MinInt64, 7}[rnd.IntN(2)])
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(math.MaxUint64)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rnd.IntN(values.Len())).Number())
	}
	panic(f.Kind())
}

// TestOpenAPIIsServedToAll: also to pages of other sites, and not written by anybody.
func TestOpenAPIIsServedToAll(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	for method, want := range map[string][]int{"GET": {200}, "HEAD": {200}, "POST": {401, 405, 501}} {
		r := httptest.NewRequest(method, server.OpenAPIPath, nil)
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		if !slices.Contains(want, w.Code) {
			t.Errorf("%s: HTTP %d, want %v", method, w.Code, want)
		}
	}
}
