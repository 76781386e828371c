package contract

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A command is described once, by its message in [kujiv1.Command]: its name, its fields, how it is
// written as words, and, by the role of its RPC, who may ask for it. See [Commands].

// Kind is a kind of command of the contract.
type Kind struct {
	Name    string                   // such as "set_limit"; events have the same
	Words   *kujiv1.Words            // nil: it cannot be written as words
	Member  bool                     // it can be in a group
	Admin   bool                     // only administrators may ask for it
	Message protoreflect.MessageType // in a batch and in a group
	Request protoreflect.MessageType // of its RPC
}

// Commands returns the kinds of commands that a batch can have, in the order of the contract.
func Commands() (all []Kind) {
	admin, members := Administrators(), oneof((*kujiv1.Member)(nil)).Fields()
	fields := oneof((*kujiv1.Command)(nil)).Fields()
	for i := range fields.Len() {
		m := fields.Get(i).Message()
		k := Kind{Name: string(fields.Get(i).Name()), Member: members.ByName(fields.Get(i).Name()) != nil}
		k.Message, k.Request = typeOf(m.FullName()), typeOf(m.FullName()+"Request")
		k.Admin = slices.Contains(admin, k.Request.Descriptor().FullName())
		if o := m.Options(); proto.HasExtension(o, kujiv1.E_Words) {
			k.Words = proto.GetExtension(o, kujiv1.E_Words).(*kujiv1.Words)
		}
		all = append(all, k)
	}
	return all
}

// oneof returns the choice of a command or a member.
func oneof(m proto.Message) protoreflect.OneofDescriptor {
	return m.ProtoReflect().Descriptor().Oneofs().ByName("command")
}

func typeOf(name protoreflect.FullName) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		panic(fmt.Sprintf("contract: %v: each command has a message, and an RPC of its own", err)) // TestCommands
	}
	return t
}

// CommandOf returns the message in a command of a batch, nil if it has none.
func CommandOf(c *kujiv1.Command) proto.Message { return chosen(c.GetCommand()) }

// MemberOf returns the message in a member of a group, nil if it has none.
func MemberOf(m *kujiv1.Member) proto.Message { return chosen(m.GetCommand()) }

// chosen returns the message in the choice of a oneof: a pointer to a struct with one field.
func chosen(choice any) proto.Message {
	if choice == nil {
		return nil
	}
	m, _ := reflect.ValueOf(choice).Elem().Field(0).Interface().(proto.Message)
	return m
}

// DefaultRealm is the realm of requests that do not name one.
const DefaultRealm = "default"

// RealmOf returns the realm that a request is about. ok is false if it is about none.
func RealmOf(request any) (realm string, ok bool) {
	named, ok := request.(interface{ GetRealm() string })
	if !ok {
		return "", false
	}
	realm = named.GetRealm()
	if _, all := request.(*kujiv1.GetStatusRequest); realm == "" && all {
		return "", false
	}
	return cmp.Or(realm, DefaultRealm), true
}

// AsCommand returns the command of a batch with a message in it, if a command can have it.
func AsCommand(id string, m proto.Message) *kujiv1.Command {
	out := &kujiv1.Command{RequestId: id}
	put(out.ProtoReflect(), m.ProtoReflect())
	return out
}

// AsMember is AsCommand for a member of a group.
func AsMember(m proto.Message) *kujiv1.Member {
	out := &kujiv1.Member{}
	put(out.ProtoReflect(), m.ProtoReflect())
	return out
}

// put puts a message where it belongs in a command or a member.
func put(to, m protoreflect.Message) {
	kinds := oneof(to.Interface()).Fields()
	for i := range kinds.Len() {
		if kind := kinds.Get(i); kind.Message() == m.Descriptor() {
			to.Set(kind, protoreflect.ValueOfMessage(m))
		}
	}
}
