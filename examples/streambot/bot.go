package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
)

var (
	//go:embed catalog.yaml
	catalogYAML []byte
	//go:embed chat.yaml
	chatYAML []byte
)

// bot plays with the viewers of a channel.
type bot struct {
	realm   *kuji.Realm
	handler *chat.Handler
	clock   *kuji.TestClock // of tests: it shows when messages were sent; nil: the machine's
	log     *slog.Logger

	mu    sync.Mutex
	codes map[string]string // whose the link codes are that were given out; may be lost
}

// room is a channel on a platform.
type room struct {
	*bot
	platform, channel string

	mu  sync.Mutex // over out
	out io.Writer  // the chat
}

// workers handle messages at a time. Those of one viewer come to one of them, and so stay in order.
const workers = 32

// open opens a data directory for a bot, with the rules above in force. Call end when the bot has ended.
func open(ctx context.Context, dir string, clock *kuji.TestClock, log *slog.Logger) (b *bot, end func() error, err error) {
	var o kuji.Options
	if clock != nil {
		o.Now = clock.Now
	}
	engine, err := kuji.Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	b = &bot{clock: clock, log: log, codes: map[string]string{}}
	end = func() error {
		var err error
		if b.handler != nil {
			err = b.handler.Close()
		}
		return errors.Join(err, engine.Close())
	}
	if err := b.prepare(ctx, engine); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return b, end, nil
}

func (b *bot) prepare(ctx context.Context, engine *kuji.Engine) error {
	rules, err := catalog.Parse(catalogYAML)
	if err != nil {
		return err
	}
	starts, err := chat.Parse(chatYAML)
	if err != nil {
		return err
	}
	if b.realm, err = engine.Realm("stream"); err != nil {
		return err
	}
	if _, err = b.realm.Apply(ctx, rules); err != nil {
		return err
	}
	if b.clock != nil {
		starts.Now, starts.Every = b.clock.Now, 10*time.Millisecond // an evening takes seconds
	}
	b.handler, err = chat.New(b.realm, *starts)
	return err
}

// play reads the chat until it ends, and returns once all messages are handled.
func (b *bot) play(ctx context.Context, platform, nick, token, channel string, conn io.ReadWriter) error {
	at := &room{bot: b, platform: platform, channel: channel, out: conn}
	if err := enter(conn, nick, token, channel); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var queues [workers]chan line
	for i := range queues {
		queues[i] = make(chan line, 16)
		wg.Go(func() {
			for l := range queues[i] {
				at.message(ctx, l)
			}
		})
	}
	seed := maphash.MakeSeed()
	err := lines(conn, func(l line) error {
		switch l.command {
		case "PING":
			return at.send("PONG :%s", l.text)
		case "PRIVMSG":
			queues[maphash.String(seed, l.tags["user-id"])%workers] <- l
		}
		return nil
	})
	for _, q := range queues {
		close(q)
	}
	wg.Wait()
	return err
}

func (at *room) send(format string, args ...any) error {
	at.mu.Lock()
	defer at.mu.Unlock()
	_, err := fmt.Fprintf(at.out, format+"\r\n", args...)
	return err
}

// message handles a message, and says what came of it.
func (at *room) message(ctx context.Context, l line) {
	m := chat.Message{Platform: at.platform, User: l.tags["user-id"], Name: l.tags["display-name"], Text: l.text, ID: l.tags["id"]}
	if ms, err := strconv.ParseInt(l.tags["tmi-sent-ts"], 10, 64); err == nil {
		m.At = time.UnixMilli(ms)
	}
	if at.clock != nil && m.At.After(at.clock.Now()) {
		at.clock.MoveTo(m.At)
	}
	if strings.HasPrefix(m.Text, "!giveaway") && !strings.Contains(l.tags["badges"], "broadcaster/") {
		m.Text = "" // it is activity, and starts nothing
	}
	if code, ok := strings.CutPrefix(m.Text+" ", "!link "); ok {
		if err := at.link(ctx, m, strings.TrimSpace(code)); err != nil {
			at.log.Error("a link was not handled", "id", m.ID, "error", err)
		}
		return
	}
	reply, err := at.handler.Handle(ctx, m)
	if err != nil {
		at.log.Error("a message was not handled", "id", m.ID, "error", err)
		return
	}
	for _, f := range reply.Found {
		if said := says(&f); said != "" {
			_ = at.send("PRIVMSG #%s :@%s %s", at.channel, m.Name, said) // reading ends, too, if the chat has
		}
	}
}

// says returns what viewers are told of a trigger; nothing if it cools.
func says(f *chat.Found) string {
	switch f.State {
	case chat.Cooling:
		return ""
	case chat.Unclear:
		return "write " + f.Phrase + " with " + f.Word
	}
	var all []string
	for _, res := range f.Results {
		text := res.Status.String()
		switch got := res.Total(); {
		case res.Err != nil:
			text = "not now"
		case res.Status != kuji.OK && res.Subject != "":
			text += " (" + res.Subject + ")"
		case res.Status != kuji.OK:
		case len(got) > 0:
			text = stacks(got)
		case len(res.Claims()) > 0:
			text = stacks(res.Claims()[0].Items)
		case res.Round() != nil:
			text = fmt.Sprintf("round %d, %d in it", res.Round().Number, res.Round().Entrants)
		}
		all = append(all, text)
	}
	return f.Trigger + ": " + strings.Join(all, ", ")
}

func stacks(all []kuji.Stack) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, " +%d %s", s.Quantity, s.Item)
	}
	return strings.TrimSpace(b.String())
}
