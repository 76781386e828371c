package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// child is the variable that makes the test a bot: its data directory, a space, the chat's address, a space, and what
// its clock shows first.
const child = "KUJI_STREAMBOT"

func TestMain(m *testing.M) {
	if args := os.Getenv(child); args != "" {
		if err := beBot(strings.Fields(args)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			panic("the bot failed")
		}
		return
	}
	m.Run()
}

// beBot plays until the chat ends. Its clock shows when messages were sent.
func beBot(args []string) (err error) {
	start, err := time.Parse(time.RFC3339, args[2])
	if err != nil {
		return err
	}
	clock := &kuji.TestClock{}
	clock.MoveTo(start)
	b, end, err := open(context.Background(), args[0], clock, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	conn, err := net.Dial("tcp", args[1])
	if err != nil {
		return err
	}
	defer conn.Close()
	return b.play(context.Background(), "twitch", "kujibot", "secret", "stream", conn)
}

const (
	viewers  = 200
	messages = 20_000
	every    = 720 * time.Millisecond // four hours in all
	killed   = 11_000                 // how many were sent when the bot is killed
)

// The evening begins two hours before midnight.
var evening = time.Date(2027, 3, 5, 22, 0, 0, 0, time.UTC)

// said is a message of the evening, and what it must do.
type said struct {
	line  string
	draws string // from this pool; empty: from none
	other bool   // it sends another command
}

// anEvening makes the messages of an evening, and says what each must do.
func anEvening() []said {
	r := rand.New(rand.NewPCG(7, 11))
	all := make([]said, messages)
	last := map[string]time.Time{} // when somebody started something that has a cooldown
	ready := func(user, what string, at time.Time, cooldown time.Duration) bool {
		if before, ok := last[user+what]; ok && at.Sub(before) < cooldown {
			return false
		}
		last[user+what] = at
		return true
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	for i := range all {
		s := &all[i]
		at := evening.Add(time.Duration(i) * every)
		user, text, badges := fmt.Sprint(1000+r.IntN(viewers)), "Hello, how is everybody?", ""
		switch n := r.IntN(100); {
		case i%2000 == 100:
			user, text, badges, s.other = "1000", "!giveaway", "broadcaster/1", true
		case n < 14:
			text = pick("!search", "I look around in the cave", "!SEARCH please")
			if ready(user, "search", at, 20*time.Second) {
				s.draws = "search"
			}
		case n < 20:
			text = pick("!fish", "gone fishing!")
			if ready(user, "fish", at, 30*time.Second) {
				s.draws = "fish"
			}
		case n < 27:
			box := pick("small", "small", "large", "gold")
			text, s.draws = fmt.Sprintf("!open %s %d", box, 1+r.IntN(2)), "open-"+box
		case n < 34:
			what := pick("small", "large", "rod")
			text, s.draws = "!buy "+what, "buy-"+what
		case n < 40:
			what := pick("ore", "fish", "sword")
			text, s.draws = "!sell "+what, "sell-"+what
		case n < 42:
			text, s.draws = "!craft Sword", "craft-sword"
		case n < 44:
			text, s.other = "!claim "+pick("talker", "seeker", "together"), true
		case n < 47:
			text, s.other = pick("!join", "!accept", "!ticket 2"), true
		case n < 49:
			text = pick("!gamble", "!duel 5", "!duel")
			s.other = ready(user, text[:5], at, time.Minute)
		case n < 50:
			text = pick("!buy house", "!open", "!giveaway", "the !open small is not at the start")
		}
		s.line = fmt.Sprintf("@badges=%s;display-name=Viewer\\s%s;id=message-%05d;tmi-sent-ts=%d;user-id=%s :v!v@v.tmi.twitch.tv PRIVMSG #stream :%s\r\n",
			badges, user, i, at.UnixMilli(), user, text)
	}
	return all
}

// serve lets a bot join. It returns the connection, and what is closed when the bot has said so much.
func serve(t *testing.T, l net.Listener, replies int) (*net.TCPConn, <-chan struct{}) {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewScanner(conn)
	var joined strings.Builder
	for !strings.Contains(joined.String(), "JOIN #stream") && in.Scan() {
		joined.WriteString(in.Text() + "\n")
	}
	if !strings.HasPrefix(joined.String(), "CAP REQ :twitch.tv/tags twitch.tv/commands\nPASS oauth:secret\nNICK kujibot\n") {
		t.Fatalf("the bot joins with %q", joined.String())
	}
	enough := make(chan struct{})
	go func() {
		for n := 0; in.Scan(); {
			if strings.HasPrefix(in.Text(), "PRIVMSG #stream :@Viewer ") {
				if n++; n == replies {
					close(enough)
				}
			}
		}
	}()
	return conn.(*net.TCPConn), enough
}

// start starts a bot in a process of its own.
func start(t *testing.T, dir string, l net.Listener, clock time.Time) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", child, dir, l.Addr(), clock.Format(time.RFC3339)))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// send sends messages.
func send(t *testing.T, conn net.Conn, some []said) {
	t.Helper()
	w := bufio.NewWriter(conn)
	for _, s := range some {
		if _, err := w.WriteString(s.line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestEvening plays an evening of 200 viewers, with midnight and a kill in the middle. The bot that is started after it
// gets all messages from the beginning again. Every message counts once, and every sum adds up.
func TestEvening(t *testing.T) {
	dir, all := t.TempDir(), anEvening()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := start(t, dir, l, evening)
	conn, working := serve(t, l, 3000)
	send(t, conn, all[:killed])
	<-working // on messages from about midnight on
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed

	second := start(t, dir, l, evening.Add(killed*every))
	conn, _ = serve(t, l, 1)
	send(t, conn, all)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Fatal(err)
	}
	holds := settled(t, dir)
	check(t, dir, all, holds)
}

// settled settles the rounds that are still open when the evening is over, and returns what everybody holds.
func settled(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	clock := &kuji.TestClock{}
	clock.MoveTo(evening.Add(6 * time.Hour))
	b, end, err := open(t.Context(), dir, clock, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.realm.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds := map[string]int64{}
	for i := range viewers {
		player := fmt.Sprint("twitch:", 1000+i)
		v, err := b.realm.Player(t.Context(), player)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Items {
			holds[player+" "+s.Item] = int64(s.Quantity)
		}
	}
	return holds
}

// check reads the log, as anybody can, decides every draw again, and compares it with the messages.
func check(t *testing.T, dir string, all []said, holds map[string]int64) {
	t.Helper()
	ids, draws, sums, registered := map[string]bool{}, map[string]int{}, map[string]int64{}, 0
	happened := map[string]int{}
	var others, wrote uint64
	see := func(rec kuji.Record) {
		if rec.ID != "" && ids[rec.ID] {
			t.Errorf("request id %s stands in the log twice", rec.ID)
		}
		ids[rec.ID] = true
		switch {
		case rec.Kind == "draw":
			draws[rec.Pool]++
		case rec.Kind == "progress":
			wrote += *rec.Value
		case rec.Kind == "register":
			registered++
		case rec.ID != "":
			others++
		}
		for _, c := range rec.Claims {
			happened[c.Quest]++
			if r := rec.Round; r != nil {
				happened[r.Name]++
			}
		}
		for _, c := range rec.Changes {
			if sums[c.Player+" "+c.Item] += c.Delta; sums[c.Player+" "+c.Item] < 0 {
				t.Errorf("at %d, %s has less than nothing of %s", rec.Position, c.Player, c.Item)
			}
		}
	}
	report, err := verify.Dir(dir, "stream", verify.Options{Seen: see})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range report.Epochs {
		if !e.Revealed || e.Undecided != "" {
			t.Errorf("epoch %d was not decided again", e.Epoch)
		}
	}
	for _, what := range []string{"talker", "seeker", "streak", "fisher", "together", "gamble", "duel", "giveaway"} {
		if happened[what] == 0 {
			t.Errorf("nobody got anything from %s: %v", what, happened)
		}
	}
	want, wantOthers := map[string]int{}, uint64(0)
	for _, s := range all {
		if s.draws != "" {
			want[s.draws]++
		}
		if s.other {
			wantOthers++
		}
	}
	for pool, n := range want {
		if draws[pool] != n {
			t.Errorf("%d draws from %s are logged, want one for each of %d messages", draws[pool], pool, n)
		}
	}
	if others != wantOthers {
		t.Errorf("%d other commands are logged, want one for each of %d messages", others, wantOthers)
	}
	if registered < viewers || wrote < messages || wrote > messages+killed {
		t.Errorf("%d viewers registered and %d messages are counted, want at least %d, and %d to %d", registered, wrote, viewers, messages, messages+killed)
	}
	for what, n := range sums {
		if holds[what] != n {
			t.Errorf("%s: %d by the log, %d in the realm", what, n, holds[what])
		}
		delete(holds, what)
	}
	if len(holds) > 0 {
		t.Errorf("nobody knows where this is from: %v", holds)
	}
}

// TestTwoPlatforms: a viewer of two platforms links them: first with a name that has nothing, then with one that has
// something, which is merged.
func TestTwoPlatforms(t *testing.T) {
	clock := &kuji.TestClock{}
	clock.MoveTo(evening)
	b, end, err := open(t.Context(), t.TempDir(), clock, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	n := 0
	says := func(platform, user, text string) string {
		t.Helper()
		n++
		out.Reset()
		at := &room{bot: b, platform: platform, channel: "stream", out: &out}
		at.message(t.Context(), line{command: "PRIVMSG", text: text, tags: map[string]string{"user-id": user, "display-name": "V", "id": fmt.Sprint("m", n)}})
		return strings.TrimSpace(out.String())
	}
	coins := func(name string) uint64 {
		t.Helper()
		q, err := b.realm.Balance(t.Context(), name, "coin")
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	code := func() string {
		said := strings.Fields(says("twitch", "1", "!link"))
		return said[len(said)-1]
	}
	says("twitch", "1", "!search")
	first := coins("twitch:1")
	if said := says("kick", "2", "!link "+code()); !strings.HasSuffix(said, "link: ok") || coins("kick:2") != first {
		t.Errorf("%s; kick:2 has %d coins, twitch:1 %d", said, coins("kick:2"), first)
	}
	says("kick", "3", "!search")
	second := coins("kick:3")
	if said := says("kick", "3", "!link WRONG"); !strings.HasSuffix(said, "link: unknown_link_code") {
		t.Error(said)
	}
	if said := says("kick", "3", "!link "+code()); !strings.HasSuffix(said, "link: ok") {
		t.Error(said)
	}
	if got := coins("kick:3"); got != first+second || coins("twitch:1") != got || coins("kick:2") != got {
		t.Errorf("%d coins, want %d and %d", got, first, second)
	}
}
