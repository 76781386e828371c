package server

import (
	"context"

	"github.com/kuji-dev/kuji"
)

// notedMessage is a request, or a command of a batch, that can say why.
type notedMessage interface {
	GetReason() string
	GetMetadata() string
}

// note returns what the log keeps of why something was asked, and by whose key.
func (s *Server) note(ctx context.Context, m notedMessage) kuji.Note {
	return kuji.Note{By: s.caller(ctx), Reason: m.GetReason(), Metadata: m.GetMetadata()}
}

// caller returns whose API key a call came with, for the log. Without keys it is "".
func (s *Server) caller(ctx context.Context) string {
	return accessOf(ctx).name
}

// accessOf returns who a call came from.
func accessOf(ctx context.Context) *access {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return anybody
	}
	return c.access
}
