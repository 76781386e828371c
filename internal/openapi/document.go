package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// document is the contract, and which of its types were met so far.
type document struct {
	services []*protogen.Service
	messages map[protoreflect.FullName]*protogen.Message
	enums    map[protoreflect.FullName]*protogen.Enum
	met      map[protoreflect.FullName]bool
}

func newDocument(files []*protogen.File) *document {
	d := &document{
		messages: map[protoreflect.FullName]*protogen.Message{}, enums: map[protoreflect.FullName]*protogen.Enum{}, met: map[protoreflect.FullName]bool{},
	}
	var add func(all []*protogen.Message)
	add = func(all []*protogen.Message) {
		for _, m := range all {
			d.messages[m.Desc.FullName()] = m
			for _, e := range m.Enums {
				d.enums[e.Desc.FullName()] = e
			}
			add(m.Messages)
		}
	}
	for _, f := range files {
		if !f.Generate {
			continue
		}
		d.services = append(d.services, f.Services...)
		add(f.Messages)
		for _, e := range f.Enums {
			d.enums[e.Desc.FullName()] = e
		}
	}
	slices.SortFunc(d.services, func(a, b *protogen.Service) int { return -cmp.Compare(a.Desc.FullName(), b.Desc.FullName()) })
	return d
}

// text returns what comments say, one paragraph a line.
func text(c protogen.Comments) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(c)), "\n\n") {
		out = append(out, strings.Join(strings.Fields(strings.ReplaceAll(paragraph, "\n", " ")), " "))
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func (d *document) root() *yaml.Node {
	paths, streams := d.paths()
	schemas := d.schemas()
	root := obj(
		"openapi", "3.1.0",
		"jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema",
		"info", obj(
			"title", "Kuji",
			"summary", "A durable reward engine: weighted draws from pools with limited stock.",
			"version", "v1",
			"description", d.description(streams),
			"license", obj("name", "Apache-2.0", "identifier", "Apache-2.0"),
		),
		"servers", list([]string{"/"}, func(url string) any { return obj("url", url) }),
		"security", list([]string{"", "bearer", "key"}, func(name string) any {
			if name == "" {
				return obj()
			}
			return obj(name, []string{})
		}),
		"tags", list(d.services, func(s *protogen.Service) any {
			return obj("name", string(s.Desc.Name()), "description", text(s.Comments.Leading))
		}),
		"paths", paths,
		"components", obj(
			"securitySchemes", obj(
				"bearer", obj("type", "http", "scheme", "bearer", "description", "An API key, or a player's token."),
				"key", obj("type", "apiKey", "in", "header", "name", "X-Api-Key", "description", "An API key."),
			),
			"schemas", schemas,
		),
	)
	return &root.Node
}

// paths describes the RPCs, and returns the names of those that stream.
func (d *document) paths() (*object, []string) {
	paths, streams := obj(), []string{}
	for _, s := range d.services {
		for _, m := range s.Methods {
			if m.Desc.IsStreamingClient() || m.Desc.IsStreamingServer() {
				streams = append(streams, string(m.Desc.Name()))
				continue
			}
			path := obj()
			if m.Desc.Options().(*descriptorpb.MethodOptions).GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
				path.set("get", d.operation(s, m, true))
			}
			path.set("post", d.operation(s, m, false))
			paths.set(fmt.Sprintf("/%s/%s", s.Desc.FullName(), m.Desc.Name()), path)
		}
	}
	return paths, streams
}

// operation describes a call: with the request in its body, or in the query of a GET.
func (d *document) operation(s *protogen.Service, m *protogen.Method, get bool) *object {
	o := m.Desc.Options().(*descriptorpb.MethodOptions)
	role, _ := proto.GetExtension(o, kujiv1.E_Role).(kujiv1.Role)
	kind := "It changes something. With a request id it can be sent again: it happens once."
	switch o.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		kind = "It changes nothing."
	case descriptorpb.MethodOptions_IDEMPOTENT:
		kind = "Made again, it changes nothing more."
	}
	rights := map[kujiv1.Role]string{kujiv1.Role_ROLE_READ: "read", kujiv1.Role_ROLE_WRITE: "what it asks for", kujiv1.Role_ROLE_ADMIN: "admin", kujiv1.Role_ROLE_ANY: "anything"}
	body := func(name string) *object {
		return obj("application/json", obj("schema", d.ref(name)))
	}
	id, request := string(s.Desc.Name())+"_"+string(m.Desc.Name()), obj("required", true, "content", body(string(m.Input.Desc.FullName())))
	var parameters any
	if get {
		id, request = id+"_get", nil
		parameters = list([]*object{
			obj("name", "encoding", "in", "query", "required", true, "schema", obj("type", "string", "enum", []string{"json"})),
			obj("name", "message", "in", "query", "required", true, "description", "The request, as JSON.", "content", body(string(m.Input.Desc.FullName()))),
		}, func(o *object) any { return o })
	}
	return obj(
		"operationId", id,
		"tags", []string{string(s.Desc.Name())},
		"summary", string(m.Desc.Name()),
		"description", text(m.Comments.Leading)+"\n"+kind+" For keys with "+rights[role]+".",
		"parameters", parameters,
		"requestBody", request,
		"responses", obj(
			"200", obj("description", "The answer. A status other than STATUS_OK is one, too.", "content", body(string(m.Output.Desc.FullName()))),
			"default", obj("description", "An error: nothing was done, or nobody knows.", "content", obj("application/json", obj("schema", obj("$ref", "#/components/schemas/connect.Error")))),
		),
	)
}

// ref refers to the schema of a type.
func (d *document) ref(name string) *object {
	d.met[protoreflect.FullName(name)] = true
	return obj("$ref", "#/components/schemas/"+name)
}

// schemas describes all types that were met, and those that they name.
func (d *document) schemas() *object {
	d.met["kuji.v1.ErrorDetail"] = true
	made := map[protoreflect.FullName]*object{}
	for len(made) < len(d.met) {
		for name := range maps.Clone(d.met) {
			if made[name] == nil {
				made[name] = d.schema(name)
			}
		}
	}
	all := obj("connect.Error", connectError())
	for _, name := range slices.Sorted(maps.Keys(made)) {
		all.set(string(name), made[name])
	}
	return all
}

// connectError is how Connect answers errors of unary calls.
func connectError() *object {
	codes := list(connectCodes, func(c connectCode) any { return c.name })
	return obj(
		"type", "object",
		"description", "What went wrong. The code says what to do: see the table above.",
		"properties", obj(
			"code", obj("type", "string", "enum", codes),
			"message", obj("type", "string"),
			"details", obj("type", "array", "items", obj(
				"type", "object",
				"description", "A message in Protocol Buffers, mostly a kuji.v1.ErrorDetail.",
				"properties", obj(
					"type", obj("type", "string", "description", "Its name."),
					"value", obj("type", "string", "description", "Its bytes in base64, without padding."),
					"debug", obj("description", "The message as JSON."),
				),
			)),
		),
		"required", []string{"code"},
	)
}

// connectCode is an error code, its HTTP status, and what a client does.
type connectCode struct {
	name string
	http int
	then string
}

var connectCodes = []connectCode{
	{"canceled", 499, "The client has given up."},
	{"unknown", 500, "A command without a request id may have happened: look before you send it again."},
	{"invalid_argument", 400, "The request is malformed: mend it."},
	{"deadline_exceeded", 504, "The call ran out of time: send it again with the same request id."},
	{"not_found", 404, "There is no such realm, player, pool or other thing."},
	{"already_exists", 409, "The request id was used with other arguments."},
	{"permission_denied", 403, "The key may not do this."},
	{"resource_exhausted", 429, "The message is too large."},
	{"failed_precondition", 400, "The realm's state refuses it: look at the reason."},
	{"aborted", 409, "It was not done: look at the reason."},
	{"out_of_range", 400, "The request id is too old."},
	{"unimplemented", 501, "The server has no such call."},
	{"internal", 500, "A defect of the server: report it, and send it again with the same request id."},
	{"unavailable", 503, "Send it again after a while, with the same request id."},
	{"data_loss", 500, "The realm's log is damaged."},
	{"unauthenticated", 401, "There was no key, or an unknown one."},
}

func (d *document) description(streams []string) string {
	var b strings.Builder
	b.WriteString("Every call is a POST of JSON. A status in an answer says how a command ended. An error says that it was not carried out, or that nobody knows: ")
	b.WriteString("then the same request with the same request id is safe to send again. 64-bit numbers are strings. Fields that are zero, false or empty are left out.\n\n")
	fmt.Fprintf(&b, "These stream, and need gRPC or Connect: %s. `GET /events` has the events of a realm for browsers.\n\n", strings.Join(streams, ", "))
	b.WriteString("| error | HTTP | |\n|---|---|---|\n")
	for _, c := range connectCodes {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", c.name, c.http, c.then)
	}
	for _, e := range []struct {
		what string
		name protoreflect.FullName
	}{{"status", "kuji.v1.Status"}, {"reason of an error", "kuji.v1.Reason"}} {
		fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", e.what)
		for _, v := range d.enums[e.name].Values {
			if v.Desc.Number() > 0 {
				fmt.Fprintf(&b, "| `%s` | %s |\n", v.Desc.Name(), strings.ReplaceAll(text(v.Comments.Leading), "\n", " "))
			}
		}
	}
	return b.String()
}
