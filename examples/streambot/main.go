// Command streambot lets the viewers of a stream play: they search, open boxes, trade, craft, fish, gamble, fight duels
// and reach quests by what they write. It shows how package chat and a realm make a bot; the rules are in catalog.yaml,
// what viewers write is in chat.yaml.
//
// Viewers of several platforms who link their names are one player.
//
//	TWITCH_TOKEN=… go run ./examples/streambot --data ./stream --nick mybot --channel mystream
//
// Everything that is about money is in the realm. What the bot itself remembers may be lost at any time.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "streambot:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	flags := flag.NewFlagSet("streambot", flag.ContinueOnError)
	dir := flags.String("data", "stream", "data `directory`")
	servers := map[string]string{}
	flags.Func("server", "a platform and the `address` of its chat, with TLS, as platform=address; can be given several times (default twitch=irc.chat.twitch.tv:6697)", func(s string) error {
		platform, address, ok := strings.Cut(s, "=")
		if servers[platform] = address; !ok {
			return errors.New("want platform=address")
		}
		return nil
	})
	nick := flags.String("nick", "", "the bot's `name`")
	channel := flags.String("channel", "", "the `name` of the channel")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *nick == "" || *channel == "" {
		return errors.New("missing --nick or --channel")
	}
	if len(servers) == 0 {
		servers["twitch"] = "irc.chat.twitch.tv:6697"
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, end, err := open(ctx, *dir, nil, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var wg sync.WaitGroup
	for platform, address := range servers {
		wg.Go(func() { b.stay(ctx, platform, address, *nick, *channel) })
	}
	wg.Wait()
	return nil
}

// stay plays on a platform until the context ends. A message that comes again after a break is carried out once.
func (b *bot) stay(ctx context.Context, platform, address, nick, channel string) {
	for ctx.Err() == nil {
		conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = b.watch(ctx, platform, nick, os.Getenv(strings.ToUpper(platform)+"_TOKEN"), channel, conn)
		}
		b.log.Warn("the chat has ended", "platform", platform, "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// watch plays until the chat or the context ends. Messages that were read are handled to the end.
func (b *bot) watch(ctx context.Context, platform, nick, token, channel string, conn net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close() // it was read to its end
	return b.play(context.WithoutCancel(ctx), platform, nick, token, channel, conn)
}
