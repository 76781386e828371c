package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/chat"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/admission"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// chats implements kujiv1connect.ChatServiceHandler.
type chats struct {
	byRealm map[string]*chat.Handler
	gate    *admission.Gate
	metrics *metrics
}

// newChats makes a handler for each realm that has a configuration.
func newChats(configs map[string]chat.Config, t *realms, gate *admission.Gate, m *metrics) (*chats, error) {
	c := &chats{make(map[string]*chat.Handler, len(configs)), gate, m}
	for realm, config := range configs {
		h, err := chat.New(chatRealm{t, realm}, config)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("server: the chat of realm %q: %w", realm, err), c.close())
		}
		c.byRealm[realm] = h
	}
	return c, nil
}

// close reports what was gathered last.
func (c *chats) close() (err error) {
	for realm, h := range c.byRealm {
		if wrong := h.Close(); wrong != nil && kuji.CodeOf(wrong) != kuji.CodeNotLeader { // others count on
			err = errors.Join(err, fmt.Errorf("server: the activity in the chat of realm %q: %w", realm, wrong))
		}
	}
	return err
}

// chatRealm sends the commands of a chat to a realm, which can be closed and opened again meanwhile.
type chatRealm struct {
	realms *realms
	name   string
}

func (r chatRealm) DoAll(ctx context.Context, reqs []kuji.Request) ([]kuji.Result, error) {
	realm, err := r.realms.get(r.name)
	if err != nil {
		return nil, err
	}
	return realm.DoAll(ctx, reqs)
}

// HandleMessage implements kujiv1connect.ChatServiceHandler.
func (c *chats) HandleMessage(ctx context.Context, req *kujiv1.HandleMessageRequest) (*kujiv1.HandleMessageResponse, error) {
	h := c.byRealm[cmp.Or(req.GetRealm(), DefaultRealm)]
	if h == nil {
		return nil, &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: "the server was started without a chat for this realm"}
	}
	call := callOf(ctx)
	work, err := c.gate.TakeWork(ctx, call.access.Who, message.ChatWork(h.MostOutcomes()))
	if err != nil {
		return nil, err
	}
	call.work += work // given back when the answer is sent
	m := chat.Message{Platform: req.GetPlatform(), User: req.GetUser(), Name: req.GetName(), Text: req.GetText(), ID: req.GetMessageId()}
	if sent := req.GetSentUnixMs(); sent != 0 {
		m.At = time.UnixMilli(sent)
	}
	reply, err := h.Handle(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, f := range reply.Found {
		c.metrics.all(f.Results)
	}
	return message.Reply(&reply), nil
}
