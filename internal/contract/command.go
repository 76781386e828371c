package contract

import (
	"cmp"

	"google.golang.org/protobuf/proto"

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

// AsCommand returns the command of a batch that has a message in it. nil: no command has such a one.
func AsCommand(id string, m proto.Message) *kujiv1.Command {
	out := &kujiv1.Command{RequestId: id}
	switch m := m.(type) {
	case *kujiv1.Draw:
		out.Command = &kujiv1.Command_Draw{Draw: m}
	case *kujiv1.Redeem:
		out.Command = &kujiv1.Command_Redeem{Redeem: m}
	case *kujiv1.Register:
		out.Command = &kujiv1.Command_Register{Register: m}
	case *kujiv1.Grant:
		out.Command = &kujiv1.Command_Grant{Grant: m}
	case *kujiv1.Consume:
		out.Command = &kujiv1.Command_Consume{Consume: m}
	case *kujiv1.Transfer:
		out.Command = &kujiv1.Command_Transfer{Transfer: m}
	case *kujiv1.Atomic:
		out.Command = &kujiv1.Command_Atomic{Atomic: m}
	default:
		return nil
	}
	return out
}

// AsMember returns the member of a group that has a message in it. nil: no member has such a one.
func AsMember(m proto.Message) *kujiv1.Member {
	switch m := m.(type) {
	case *kujiv1.Draw:
		return &kujiv1.Member{Command: &kujiv1.Member_Draw{Draw: m}}
	case *kujiv1.Register:
		return &kujiv1.Member{Command: &kujiv1.Member_Register{Register: m}}
	case *kujiv1.Grant:
		return &kujiv1.Member{Command: &kujiv1.Member_Grant{Grant: m}}
	case *kujiv1.Consume:
		return &kujiv1.Member{Command: &kujiv1.Member_Consume{Consume: m}}
	case *kujiv1.Transfer:
		return &kujiv1.Member{Command: &kujiv1.Member_Transfer{Transfer: m}}
	}
	return nil
}
