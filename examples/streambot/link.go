package main

import (
	"context"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/chat"
)

// maxCodes is how many link codes the bot remembers.
const maxCodes = 1000

// link gives a viewer a link code, or takes one: who writes "!link" on one platform, and "!link CODE" on another one, is
// one player from then on. If both have something, they are merged into the first.
func (at *room) link(ctx context.Context, m chat.Message, code string) error {
	me := m.Platform + ":" + m.User
	if code == "" {
		code = kuji.NewLinkCode()
		at.remember(code, me)
		res, err := at.realm.Do(ctx, kuji.LinkCode{Player: me, Code: code})
		if err != nil || res.Status != kuji.OK {
			return err
		}
		return at.send("PRIVMSG #%s :/w %s write on the other platform: !link %s", at.channel, m.Name, code)
	}
	res, err := at.realm.Do(ctx, kuji.Link{ID: "link-" + m.ID, Player: me, Code: code})
	if owner := at.owner(code); err == nil && res.Status == kuji.MergeNeeded && owner != "" {
		res, err = at.realm.Do(ctx, kuji.Merge{ID: "merge-" + m.ID, Player: owner, From: me, Note: kuji.Note{Reason: "the viewer asked for it"}})
	}
	if err != nil {
		return err
	}
	return at.send("PRIVMSG #%s :@%s link: %v", at.channel, m.Name, res.Status)
}

// remember notes whose a code is.
func (b *bot) remember(code, player string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.codes) == maxCodes {
		clear(b.codes)
	}
	b.codes[code] = player
}

// owner returns whose a code is, "" if that is not known.
func (b *bot) owner(code string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.codes[code]
}
