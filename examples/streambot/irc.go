package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxLine is the longest line of Twitch's dialect of IRC, with its tags, in bytes.
const maxLine = 16 << 10

// line is a line of the chat: tags, who sent it, a command and its parameters.
//
//	@id=b34ccfc7;user-id=1234;display-name=Ann :ann!ann@ann.tmi.twitch.tv PRIVMSG #stream :!search
type line struct {
	tags    map[string]string
	command string
	text    string // the last parameter
}

// unescape is what stands for what in the value of a tag.
var unescape = strings.NewReplacer(`\:`, ";", `\s`, " ", `\\`, `\`, `\r`, "\r", `\n`, "\n")

// parse reads a line.
func parse(s string) (l line) {
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		var tags string
		tags, s, _ = strings.Cut(rest, " ")
		l.tags = map[string]string{}
		for tag := range strings.SplitSeq(tags, ";") {
			name, value, _ := strings.Cut(tag, "=")
			l.tags[name] = unescape.Replace(value)
		}
	}
	if strings.HasPrefix(s, ":") {
		_, s, _ = strings.Cut(s, " ")
	}
	s, l.text, _ = strings.Cut(s, " :")
	l.command, _, _ = strings.Cut(s, " ")
	return l
}

// lines calls each for every line, until the connection ends.
func lines(r io.Reader, each func(line) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, maxLine), maxLine)
	for s.Scan() {
		if err := each(parse(strings.TrimRight(s.Text(), "\r"))); err != nil {
			return err
		}
	}
	return s.Err()
}

// enter logs in and joins a channel, and asks for what Twitch knows of messages besides their texts.
func enter(w io.Writer, nick, token, channel string) error {
	_, err := fmt.Fprintf(w, "CAP REQ :twitch.tv/tags twitch.tv/commands\r\nPASS oauth:%s\r\nNICK %s\r\nJOIN #%s\r\n", token, nick, channel)
	return err
}
