package message

import (
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// identity is Request for commands about names of players, and what reverses others.
func identity(id string, m proto.Message, note kuji.Note) kuji.Request {
	switch m := m.(type) {
	case *kujiv1.LinkCode, *kujiv1.LinkCodeRequest:
		c := m.(codeMessage)
		return &kuji.LinkCode{ID: id, Player: c.GetPlayer(), Code: c.GetCode(), Note: note}
	case *kujiv1.Link, *kujiv1.LinkRequest:
		l := m.(linkMessage)
		return &kuji.Link{ID: id, Player: l.GetPlayer(), Code: l.GetCode(), To: l.GetTo(), Note: note}
	case *kujiv1.Unlink, *kujiv1.UnlinkRequest:
		return &kuji.Unlink{ID: id, Player: m.(playerMessage).GetPlayer(), Note: note}
	case *kujiv1.Forget, *kujiv1.ForgetRequest:
		return &kuji.Forget{ID: id, Player: m.(playerMessage).GetPlayer(), Note: note}
	case mergeMessage:
		return &kuji.Merge{ID: id, Player: m.GetPlayer(), From: m.GetFrom(), Strict: m.GetStrict(), Note: note}
	case blockMessage:
		return &kuji.Block{ID: id, Player: m.GetPlayer(), Ends: m.GetEnds(), Note: note}
	case *kujiv1.Reverse, *kujiv1.ReverseRequest:
		return &kuji.Reverse{ID: id, Request: m.(interface{ GetRequest() string }).GetRequest(), Note: note}
	}
	return nil
}

type (
	playerMessage interface{ GetPlayer() string }
	linkMessage   interface {
		codeMessage
		GetTo() string
	}
	mergeMessage interface {
		GetPlayer() string
		GetFrom() string
		GetStrict() bool
	}
	blockMessage interface {
		GetPlayer() string
		GetEnds() bool
	}
)

// Alias makes the message of another name of a player.
func Alias(a *kuji.AliasView) *kujiv1.Alias { return &kujiv1.Alias{Name: a.Name, Merged: a.Merged} }
