// Command streambot lets the viewers of a stream play: they search, open boxes, trade, craft, fish, gamble, fight duels
// and reach quests by what they write. It shows how package chat and a realm make a bot; the rules are in catalog.yaml,
// what viewers write is in chat.yaml.
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
	address := flags.String("server", "irc.chat.twitch.tv:6697", "`address` of the chat, with TLS")
	nick := flags.String("nick", "", "the bot's `name`")
	channel := flags.String("channel", "", "the `name` of the channel")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *nick == "" || *channel == "" {
		return errors.New("missing --nick or --channel")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, end, err := open(ctx, *dir, nil, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for ctx.Err() == nil { // a message that comes again after a break is carried out once
		conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", *address)
		if err == nil {
			err = b.watch(ctx, *nick, os.Getenv("TWITCH_TOKEN"), *channel, conn)
		}
		log.Warn("the chat has ended", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return nil
}

// watch plays until the chat or the context ends. Messages that were read are handled to the end.
func (b *bot) watch(ctx context.Context, nick, token, channel string, conn net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close() // it was read to its end
	return b.play(context.WithoutCancel(ctx), nick, token, channel, conn)
}
