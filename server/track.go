package server

import (
	"context"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func (h adminService) SetTrack(ctx context.Context, req *kujiv1.SetTrackRequest) (*kujiv1.SetTrackResponse, error) {
	res, err := h.s.do(ctx, req.GetRealm(), &kuji.SetTrack{
		ID: req.GetRequestId(), Player: req.GetPlayer(), Track: req.GetTrack(), Draws: req.GetDraws(),
		By: h.s.caller(ctx), Reason: req.GetReason(),
	})
	if err != nil {
		return nil, err
	}
	return &kujiv1.SetTrackResponse{Result: res}, nil
}

// caller returns what the log says about whose API key a call came with: the key's name, or the
// start of its hash if it has none. Without keys it is "".
func (s *Server) caller(ctx context.Context) string {
	c, _ := ctx.Value(callKey{}).(*call)
	if s.o.Keys == nil || c == nil {
		return ""
	}
	k := s.o.Keys.of(c.who)
	if k.role == kujiv1.Role_ROLE_UNSPECIFIED { // removed a moment ago
		return ""
	}
	if k.name == "" {
		return hex.EncodeToString(k.hash[:4])
	}
	name := strings.ToValidUTF8(k.name, "?")
	for len(name) > kuji.MaxBy {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	return name
}
