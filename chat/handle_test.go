package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
)

const testCatalog = `
kuji: 1
items: {coin: {kind: currency}, sword: {}, shield: {}, ticket: {}}
start: {coin: 100}
pools:
  search: {entries: [{id: coin, weight: 1, reward: {items: {coin: {min: 1, max: 9}}}}, {id: sword, weight: 1, reward: {items: {sword: 1}}}]}
  buy-sword: {price: {coin: 10}, entries: [{id: sword, weight: 1, reward: {items: {sword: 1}}}]}
  buy-shield: {price: {coin: 20}, entries: [{id: shield, weight: 1, reward: {items: {shield: 1}}}]}
counters:
  messages: {of: {progress: message}}
  fish: {of: {progress: fish}, distinct: 10}
quests:
  writer: {needs: {messages: 2}, reward: {items: {coin: 5}}}
rounds:
  giveaway: {ticket: {price: {coin: 1}, most: 100}, winner: {reward: {items: {sword: 1}}}}
`

func testConfig() chat.Config {
	item := chat.Word{Name: "item", Of: map[string]string{"sword": "sword", "Schild": "shield"}}
	n := chat.Word{Name: "n", From: 1, To: 20, Else: "1"}
	return chat.Config{
		Activity: "message",
		Triggers: []chat.Trigger{
			{ID: "search", Phrases: []string{"!search", "I look around"}, Cooldown: chat.Cooldown{Player: 30 * time.Second}, Do: []chat.Action{{Do: "draw", Pool: "search"}}},
			{ID: "buy", Phrases: []string{"!buy"}, AtStart: true, Words: []chat.Word{item, n}, Do: []chat.Action{{Do: "draw", Pool: "buy-$item", Count: "$n"}}},
			{ID: "sell", Phrases: []string{"!sell"}, Words: []chat.Word{item, n}, Do: []chat.Action{{Do: "atomic", Members: []chat.Action{
				{Do: "consume", Items: []chat.Stack{{Item: "$item", Quantity: "$n"}}},
				{Do: "grant", Items: []chat.Stack{{Item: "coin", Quantity: "8*$n"}}},
			}}}},
			{ID: "rain", Phrases: []string{"rain"}, Priority: 5, Cooldown: chat.Cooldown{All: time.Minute}, Do: []chat.Action{
				{Do: "grant", Items: []chat.Stack{{Item: "ticket", Quantity: "1"}}},
				{Do: "progress", Event: "fish", Key: "$platform/$user"},
			}},
			{ID: "claim", Phrases: []string{"!claim"}, Do: []chat.Action{{Do: "claim", Quest: "writer"}}},
			{ID: "giveaway", Phrases: []string{"!giveaway"}, Do: []chat.Action{{Do: "open_round", Round: "giveaway", Tickets: "1"}}},
			{ID: "join", Phrases: []string{"!join"}, Words: []chat.Word{n}, Do: []chat.Action{{Do: "join", Round: "giveaway", Tickets: "$n"}}},
		},
	}
}

// room is a handler of a test, and what writes to it.
type room struct {
	t     testing.TB
	h     *chat.Handler
	realm *kuji.Realm
	next  int
}

func open(t testing.TB, realm *kuji.Realm, c chat.Config) *room {
	t.Helper()
	return &room{t: t, h: handlerOf(t, realm, c), realm: realm}
}

func handlerOf(t testing.TB, realm chat.Realm, c chat.Config) *chat.Handler {
	t.Helper()
	h, err := chat.New(realm, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var evening = time.Date(2026, 5, 1, 20, 0, 0, 0, time.UTC)

// write returns a message that nobody wrote before.
func (r *room) write(user string, after time.Duration, text string) chat.Message {
	r.next++
	return chat.Message{Platform: "twitch", User: user, Name: "The " + user, Text: text, ID: fmt.Sprint("m", r.next), At: evening.Add(after)}
}

// handle handles a message and returns what was found, in words.
func (r *room) handle(m chat.Message) string {
	r.t.Helper()
	reply, err := r.h.Handle(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	if want := m.Platform + ":" + m.User; reply.Player != want {
		r.t.Errorf("player %q, want %q", reply.Player, want)
	}
	var all []string
	for _, f := range reply.Found {
		words := []string{f.Trigger, f.State.String()}
		if f.Word != "" {
			words = append(words, f.Word)
		}
		if !f.Ready.IsZero() {
			words = append(words, f.Ready.Sub(evening).String())
		}
		for _, res := range f.Results {
			words = append(words, res.Status.String())
			if res.Replayed {
				words = append(words, "again")
			}
			if res.Err != nil {
				words = append(words, kuji.CodeOf(res.Err).String())
			}
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// says handles a message and compares what was found.
func (r *room) says(m chat.Message, want string) {
	r.t.Helper()
	if got := r.handle(m); got != want {
		r.t.Errorf("%q: %q, want %q", m.Text, got, want)
	}
}

// holds returns what a player holds of an item.
func holds(t testing.TB, r *kuji.Realm, player, item string) uint64 {
	t.Helper()
	v, err := r.Player(t.Context(), player)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range v.Items {
		if s.Item == item {
			return s.Quantity
		}
	}
	return 0
}

// counted returns where a counter of a player stands.
func counted(t testing.TB, r *kuji.Realm, player, counter string) uint64 {
	t.Helper()
	v, err := r.Goals(t.Context(), player)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Counters {
		if c.ID == counter {
			return c.Value
		}
	}
	return 0
}

func TestHandle(t *testing.T) {
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), testConfig())
	r.says(r.write("ann", 0, "hello"), "")
	r.says(r.write("ann", 0, "!buy sword 3 please"), "buy started ok")
	r.says(r.write("ann", 0, "!BUY schild"), "buy started ok")
	if got := []uint64{holds(t, r.realm, "twitch:ann", "coin"), holds(t, r.realm, "twitch:ann", "sword"), holds(t, r.realm, "twitch:ann", "shield")}; !slices.Equal(got, []uint64{50, 3, 1}) {
		t.Errorf("ann has %v coins, swords and shields, want 50, 3 and 1", got)
	}
	r.says(r.write("ann", 0, "!sell sword 2"), "sell started ok")
	if got := holds(t, r.realm, "twitch:ann", "coin"); got != 66 {
		t.Errorf("%d coins, want 66", got)
	}
	r.says(r.write("ann", 0, "!sell sword 20"), "sell started insufficient_items")
	r.says(r.write("ann", 0, "!buy"), "buy unclear item")
	r.says(r.write("ann", 0, "!buy house"), "buy unclear item")
	r.says(r.write("ann", 0, "!buy sword 21"), "buy unclear n")
	r.says(r.write("ann", 0, "!buy sword -1"), "buy unclear n")
	r.says(r.write("ann", 0, "I want to !buy sword"), "")
	r.says(r.write("ann", 0, "!claim"), "claim started not_reached")
	if err := r.h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := counted(t, r.realm, "twitch:ann", "messages"); got != 11 {
		t.Errorf("%d messages, want 11", got)
	}
	r.says(r.write("ann", 0, "!claim"), "claim started ok")
	r.says(r.write("ben", 0, "!giveaway"), "giveaway started ok")
	r.says(r.write("ann", 0, "!join 5"), "join started ok")
	r.says(r.write("ann", 0, "!join 5"), "join started already_joined")
	r.says(r.write("ann", 0, "I look   AROUND, !search and rain"), "rain started ok ok, search started ok")
	if got := counted(t, r.realm, "twitch:ann", "fish"); got != 1 {
		t.Errorf("%d different keys, want 1", got)
	}
}

// TestTwice delivers messages twice: with others between, and with a cooldown.
func TestTwice(t *testing.T) {
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), testConfig())
	first, second, third := r.write("ann", 0, "!search"), r.write("ann", 10*time.Second, "!search"), r.write("ann", 40*time.Second, "!search")
	r.says(first, "search started ok")
	r.says(first, "search started ok again")
	r.says(second, "search cooling 30s")
	r.says(third, "search started ok")
	for range 2 {
		r.says(second, "search cooling 30s")
		r.says(first, "search started ok again")
		r.says(third, "search started ok again")
	}
	r.says(r.write("ben", 41*time.Second, "!search"), "search started ok")
	buy := r.write("ben", 0, "!buy sword 2")
	r.says(buy, "buy started ok")
	r.says(buy, "buy started ok again")
	if got := holds(t, r.realm, "twitch:ben", "sword"); got < 2 || got > 3 {
		t.Errorf("%d swords, want 2 and perhaps one that was found", got)
	}
	buy.Platform = "youtube" // whose messages have ids of their own
	r.says(buy, "buy started ok")
}

// TestTwiceWithACrash delivers messages again after the process has ended: what is remembered of cooldowns is gone.
func TestTwiceWithACrash(t *testing.T) {
	dir := t.TempDir()
	var coins uint64
	first, second := chat.Message{}, chat.Message{}
	run := func(do func(r *room)) {
		e, err := kuji.Open(dir, kuji.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		realm, err := e.Realm("chat")
		if err != nil {
			t.Fatal(err)
		}
		c, err := catalog.Parse([]byte(testCatalog))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := realm.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		h, err := chat.New(realm, testConfig())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		do(&room{t: t, h: h, realm: realm})
	}
	run(func(r *room) {
		first, second = r.write("ann", 0, "!search"), r.write("ann", 40*time.Second, "!search")
		r.says(first, "search started ok")
		coins = holds(t, r.realm, "twitch:ann", "coin")
	})
	run(func(r *room) {
		r.says(second, "search started ok")
		r.says(first, "search started ok again")
	})
	run(func(r *room) {
		before := holds(t, r.realm, "twitch:ann", "coin")
		r.says(first, "search started ok again")
		r.says(second, "search started ok again")
		if got := holds(t, r.realm, "twitch:ann", "coin"); got != before || got < coins {
			t.Errorf("%d coins, want the %d of before", got, before)
		}
	})
}

func TestCooldowns(t *testing.T) {
	now := evening
	c := testConfig()
	c.Now = func() time.Time { return now }
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), c)
	r.says(r.write("ann", 0, "rain"), "rain started ok ok")
	r.says(r.write("ben", 59*time.Second, "rain"), "rain cooling 1m0s")
	r.says(r.write("ben", 60*time.Second, "rain"), "rain started ok ok")
	r.says(r.write("ben", 30*time.Second, "rain"), "rain cooling 2m0s") // it comes late
	r.says(r.write("ben", -time.Hour, "rain"), "rain started ok ok")    // so late that it would not have been stopped
	r.says(r.write("ben", 61*time.Second, "rain"), "rain cooling 2m0s")
	r.says(r.write("ann", 0, "!search"), "search started ok")
	r.says(r.write("ann", 29*time.Second, "!search"), "search cooling 30s")
	r.says(r.write("ben", 29*time.Second, "!search"), "search started ok")
	// Without a time, by the clock.
	for _, step := range []struct {
		ahead time.Duration
		want  string
	}{{0, "search started ok"}, {29 * time.Second, "search cooling 30s"}, {time.Second, "search started ok"}} {
		now = now.Add(step.ahead)
		m := r.write("cat", 0, "!search")
		m.At = time.Time{}
		r.says(m, step.want)
	}
	// What cannot be understood starts no cooldown.
	c.Triggers[1].Cooldown.Player = time.Hour
	r = open(t, r.realm, c)
	r.says(r.write("dan", 0, "!buy nothing"), "buy unclear item")
	r.says(r.write("dan", 0, "!buy sword"), "buy started ok")
}

// TestCooldownsAreBounded has more players than there is room for.
func TestCooldownsAreBounded(t *testing.T) {
	c := testConfig()
	c.Cooldowns, c.Players = 4, 4
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), c)
	for i := range 10 {
		r.says(r.write(fmt.Sprint("viewer", i), 0, "!search"), "search started ok")
	}
	r.says(r.write("viewer9", 0, "!search"), "search cooling 30s")
	r.says(r.write("viewer0", 0, "!search"), "search started ok")
}

// TestTimeOrdered needs ids that carry their time.
func TestTimeOrdered(t *testing.T) {
	now := evening
	realm := realmOf(t, "", kuji.Options{Now: func() time.Time { return now }}, testCatalog+"idempotency: {ids: time-ordered, age: 1h}\n")
	c := testConfig()
	wrong := open(t, realm, c)
	wrong.says(wrong.write("ann", 0, "!buy sword"), "buy started refused invalid")
	c.TimeOrdered = true
	r := open(t, realm, c)
	m := r.write("ann", 0, "!buy sword 2")
	r.says(m, "buy started ok")
	r.says(m, "buy started ok again")
	if got := holds(t, realm, "twitch:ann", "sword"); got != 2 {
		t.Errorf("%d swords, want 2", got)
	}
	m.At = time.Time{}
	if _, err := r.h.Handle(t.Context(), m); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("a message without a time: %v", err)
	}
	r.says(r.write("ann", 2*time.Hour, "!buy sword"), "buy started refused invalid") // from the future
}

// recorder notes the requests of batches, and fails if it is told to.
type recorder struct {
	mu      sync.Mutex
	batches [][]string
	fails   error
	refuses map[string]error // by the player
}

func (r *recorder) DoAll(_ context.Context, reqs []kuji.Request) ([]kuji.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails != nil {
		return nil, r.fails
	}
	var batch []string
	results := make([]kuji.Result, len(reqs))
	for i, q := range reqs {
		switch q := q.(type) {
		case kuji.Register:
			batch = append(batch, "register "+q.Player+" "+q.Note.Metadata)
		case kuji.Progress:
			batch = append(batch, fmt.Sprint(q.Event, " ", q.Player, " ", q.N))
			if err := r.refuses[q.Player]; err != nil {
				results[i] = kuji.Result{Status: kuji.Refused, Err: err}
			}
		default:
			batch = append(batch, fmt.Sprintf("%T", q))
		}
	}
	r.batches = append(r.batches, batch)
	return results, nil
}

// take returns the batches since the last call.
func (r *recorder) take() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.batches {
		all = append(all, strings.Join(b, ", "))
	}
	r.batches = nil
	return all
}

func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("batches %q, want %q", got, want)
	}
}

// TestActivity gathers messages and reports them once a second.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		h, err := chat.New(rec, testConfig())
		if err != nil {
			t.Fatal(err)
		}
		r := &room{t: t, h: h}
		r.handle(r.write("ann", 0, "hello"))
		r.handle(r.write("ben", 0, "hello"))
		r.handle(r.write("ann", 0, "hello"))
		rec.want(t)
		time.Sleep(time.Second)
		synctest.Wait()
		rec.want(t, "register twitch:ann The ann, message twitch:ann 2, register twitch:ben The ben, message twitch:ben 1")
		time.Sleep(time.Second)
		synctest.Wait()
		rec.want(t) // nothing happened
		r.handle(r.write("cat", 0, "!search"))
		rec.want(t, "register twitch:cat The cat, kuji.Draw")
		r.handle(r.write("ann", 0, "!buy house"))
		r.handle(r.write("dan", 0, "!buy house"))
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		rec.want(t, "message twitch:cat 1, message twitch:ann 1, register twitch:dan The dan, message twitch:dan 1")
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestActivityFails reports to a realm that does not answer, or refuses.
func TestActivityFails(t *testing.T) {
	rec := &recorder{}
	c := testConfig()
	c.Every, c.Gathered = time.Minute, 3
	r := &room{t: t, h: handlerOf(t, rec, c)}
	r.handle(r.write("ann", 0, "hello"))
	rec.fails = &kuji.Error{Code: kuji.CodeOverloaded}
	if err := r.h.Flush(t.Context()); kuji.CodeOf(err) != kuji.CodeOverloaded {
		t.Errorf("a flush that fails: %v", err)
	}
	if got := r.h.Stats(); got.Gathered != 1 || got.Lost != 0 || !errors.Is(got.Err, rec.fails) {
		t.Errorf("stats %+v", got)
	}
	r.handle(r.write("ann", 0, "hello"))
	r.handle(r.write("ben", 0, "hello"))
	rec.fails = nil
	r.handle(r.write("cat", 0, "hello")) // there is room for three
	rec.want(t, "register twitch:ann The ann, message twitch:ann 2, register twitch:ben The ben, message twitch:ben 1, register twitch:cat The cat, message twitch:cat 1")

	r.handle(r.write("ann", 0, "hello"))
	rec.fails = &kuji.Error{Code: kuji.CodeUnknownOutcome} // it may have been counted: not again
	if err := r.h.Flush(t.Context()); kuji.CodeOf(err) != kuji.CodeUnknownOutcome {
		t.Errorf("a flush without an answer: %v", err)
	}
	rec.fails, rec.refuses = nil, map[string]error{"twitch:ben": &kuji.Error{Code: kuji.CodeNotFound}}
	r.handle(r.write("ben", 0, "hello"))
	if err := r.h.Flush(t.Context()); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("a report that is refused: %v", err)
	}
	if got := r.h.Stats(); got.Gathered != 0 || got.Lost != 2 {
		t.Errorf("stats %+v, want 2 that are lost", got)
	}
	rec.refuses = nil
	if err := r.h.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	rec.fails = &kuji.Error{Code: kuji.CodeFailed}
	if _, err := r.h.Handle(t.Context(), r.write("dan", 0, "!search")); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("a message whose commands fail: %v", err)
	}
	if got := r.h.Stats(); got.Gathered != 0 {
		t.Errorf("stats %+v: a message that failed is counted when it comes again", got)
	}
	rec.fails = nil
}

// TestConcurrently handles messages at once, each delivered twice, and adds up what came of them.
func TestConcurrently(t *testing.T) {
	c := testConfig()
	c.Every, c.Gathered, c.Players, c.Cooldowns = time.Millisecond, 5, 6, 10_000
	realm := realmOf(t, "", kuji.Options{}, testCatalog)
	h, err := chat.New(realm, c)
	if err != nil {
		t.Fatal(err)
	}
	const writers, messages, viewers = 8, 60, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range messages {
				n := (w/2)*messages + i // two write the same
				text := "hello"
				if n%3 == 0 {
					text = "!buy sword"
				}
				m := chat.Message{Platform: "twitch", User: fmt.Sprint(n % viewers), Name: "x", Text: text, ID: fmt.Sprint(n), At: evening}
				if _, err := h.Handle(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	var swords, coins, wrote uint64
	for v := range viewers {
		player := fmt.Sprint("twitch:", v)
		swords += holds(t, realm, player, "sword")
		coins += holds(t, realm, player, "coin")
		wrote += counted(t, realm, player, "messages")
	}
	if want := uint64(writers / 2 * messages / 3); swords != want || coins != 100*viewers-10*want {
		t.Errorf("%d swords and %d coins, want %d and %d", swords, coins, want, 100*viewers-10*want)
	}
	if want := uint64(writers * messages); wrote+h.Stats().Lost != want {
		t.Errorf("%d messages were counted and %d lost, want %d", wrote, h.Stats().Lost, want)
	}
}

func TestMessages(t *testing.T) {
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), testConfig())
	for _, c := range []struct {
		field  string
		change func(m *chat.Message)
	}{
		{"platform", func(m *chat.Message) { m.Platform = "" }},
		{"platform", func(m *chat.Message) { m.Platform = "twitch:tv" }},
		{"platform", func(m *chat.Message) { m.Platform = strings.Repeat("a", chat.MaxPlatform+1) }},
		{"user", func(m *chat.Message) { m.User = "" }},
		{"user", func(m *chat.Message) { m.User = strings.Repeat("1", kuji.MaxID) }},
		{"user", func(m *chat.Message) { m.User = "a\nb" }},
		{"user", func(m *chat.Message) { m.User = "a\xff" }},
		{"id", func(m *chat.Message) { m.ID = "" }},
		{"id", func(m *chat.Message) { m.ID = strings.Repeat("1", chat.MaxMessageID+1) }},
	} {
		m := r.write("ann", 0, "!search")
		c.change(&m)
		var e *kuji.Error
		if _, err := r.h.Handle(t.Context(), m); !errors.As(err, &e) || e.Code != kuji.CodeInvalid || e.Field != c.field {
			t.Errorf("%+v: %v, want what is wrong with %s", m, err, c.field)
		}
	}
	// What is too long is cut.
	r.says(r.write("ann", 0, strings.Repeat("é", chat.MaxText/2-5)+" !claim"), "claim started not_reached")
	r.says(r.write("ann", 0, strings.Repeat("é", chat.MaxText/2-2)+" !claim"), "")
	// A name is a note, whatever it is.
	m := r.write("zoe", 0, "!claim")
	m.Name = strings.Repeat("ﷺ", 1000) + "\xff\n"
	r.says(m, "claim started not_reached")
}

// TestMost has more triggers in a message than it can start.
func TestMost(t *testing.T) {
	c := testConfig()
	c.Most = 2
	r := open(t, realmOf(t, "", kuji.Options{}, testCatalog), c)
	r.says(r.write("ann", 0, "!claim !search !join rain"), "rain started ok ok, claim started not_reached")
}
