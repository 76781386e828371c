package contract

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// CommandOf returns the message in a command of a batch, nil if it has none.
func CommandOf(c *kujiv1.Command) proto.Message {
	switch c := c.GetCommand().(type) {
	case *kujiv1.Command_Draw:
		return c.Draw
	case *kujiv1.Command_Redeem:
		return c.Redeem
	case *kujiv1.Command_Register:
		return c.Register
	case *kujiv1.Command_Grant:
		return c.Grant
	case *kujiv1.Command_Consume:
		return c.Consume
	case *kujiv1.Command_Transfer:
		return c.Transfer
	case *kujiv1.Command_Atomic:
		return c.Atomic
	}
	return nil
}

// MemberOf returns the message in a member of a group, nil if it has none.
func MemberOf(m *kujiv1.Member) proto.Message {
	switch c := m.GetCommand().(type) {
	case *kujiv1.Member_Draw:
		return c.Draw
	case *kujiv1.Member_Register:
		return c.Register
	case *kujiv1.Member_Grant:
		return c.Grant
	case *kujiv1.Member_Consume:
		return c.Consume
	case *kujiv1.Member_Transfer:
		return c.Transfer
	}
	return nil
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

// AsCommand returns the command of a batch that has a message in it. It has none if no command can
// have such a message.
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
	kinds := to.Descriptor().Oneofs().ByName("command").Fields()
	for i := range kinds.Len() {
		if kind := kinds.Get(i); kind.Message() == m.Descriptor() {
			to.Set(kind, protoreflect.ValueOfMessage(m))
		}
	}
}
