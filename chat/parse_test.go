package chat_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
)

// TestParse reads every key.
func TestParse(t *testing.T) {
	got, err := chat.Parse([]byte(`
chat: 1
activity: message
every: 500ms
prefix: order-
most: 3
players: 1000
gathered: 100
cooldowns: 200
triggers:
  all:
    phrases: [one, "2", "three: four"]
    at: start
    priority: -2
    cooldown: {player: 1m30s, all: 1d}
    words:
      - {name: item, of: {Sword: sword}}
      - {name: quest, of: [daily]}
      - {name: n, from: 1, to: 5}
      - {name: rest, text: true, else: x}
    do:
      - draw: {pool: shop-$item, count: $n, pay: $item}
      - redeem: {code: $rest}
      - register
      - progress: {event: "fish", key: $rest, count: 10*$n}
      - claim: {quest: $quest, count: 1}
      - collect
      - open_round: {round: r, items: {$item: $n}, tickets: 1}
      - join: {round: r, tickets: $n}
      - atomic: [consume: {items: {$item: 2*$n, coin: 3}}, grant: {items: {gem: 1}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &chat.Config{
		Activity: "message", Every: 500 * time.Millisecond, Prefix: "order-", Most: 3, Players: 1000, Gathered: 100, Cooldowns: 200,
		Triggers: []chat.Trigger{{
			ID: "all", Phrases: []string{"one", "2", "three: four"}, AtStart: true, Priority: -2,
			Cooldown: chat.Cooldown{Player: 90 * time.Second, All: 24 * time.Hour},
			Words: []chat.Word{{Name: "item", Of: map[string]string{"Sword": "sword"}}, {Name: "quest", Of: map[string]string{"daily": "daily"}},
				{Name: "n", From: 1, To: 5}, {Name: "rest", Text: true, Else: "x"}},
			Do: []chat.Action{
				{Do: "draw", Pool: "shop-$item", Count: "$n", Pay: "$item"},
				{Do: "redeem", Code: "$rest"},
				{Do: "register"},
				{Do: "progress", Event: "fish", Key: "$rest", Count: "10*$n"},
				{Do: "claim", Quest: "$quest", Count: "1"},
				{Do: "collect"},
				{Do: "open_round", Round: "r", Items: []chat.Stack{{Item: "$item", Quantity: "$n"}}, Tickets: "1"},
				{Do: "join", Round: "r", Tickets: "$n"},
				{Do: "atomic", Members: []chat.Action{
					{Do: "consume", Items: []chat.Stack{{Item: "$item", Quantity: "2*$n"}, {Item: "coin", Quantity: "3"}}},
					{Do: "grant", Items: []chat.Stack{{Item: "gem", Quantity: "1"}}},
				}},
			},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// trigger returns a configuration with one trigger.
func triggerYAML(rest string) string {
	return "chat: 1\ntriggers:\n  t:\n    phrases: [go]\n    words: [{name: n, from: 1, to: 5}, {name: item, of: [sword]}, {name: z, to: 5}, {name: any, text: true}]\n    " + rest + "\n"
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"", "1:1: the document is empty; expected a mapping with the key triggers"},
		{"a\tb: [", "2:1: not valid YAML"},
		{"[]", "1:1: expected a mapping with the keys chat, activity"},
		{"triggers: {}", "1:1: chat: missing; expected the number 1"},
		{"chat: 2", "1:7: chat: expected the number 1, found 2"},
		{"chat: 1\nchat: 1", "2:1: chat: duplicate key \"chat\""},
		{"chat: 1\ntrigger: {}", "2:1: trigger: unknown key \"trigger\"; expected one of chat, activity, every, ids"},
		{"chat: 1\nactivity: &a message", "2:11: activity: anchors (&a) are not supported"},
		{"chat: 1\nactivity: 5", "2:11: activity: expected the id of an event, found 5: put it in quotes"},
		{"chat: 1\nactivity: a b", "2:11: activity: expected the id of an event: a letter or digit"},
		{"chat: 1\nevery: 1.5s", "2:8: every: expected a duration such as 30s or 1h30m, found \"1.5s\": write whole numbers"},
		{"chat: 1\nevery: 2m", "2:8: every: expected 1ms to 1m0s, found 2m0s"},
		{"chat: 1\nids: ordered", "2:6: ids: expected time-ordered or any, found \"ordered\""},
		{"chat: 1\nids: time-ordered\nprefix: order-", "3:9: prefix: expected none"},
		{"chat: 1\nprefix: " + strings.Repeat("a", 25), "2:9: prefix: expected at most 24 bytes"},
		{"chat: 1\nmost: 0x5", "2:7: most: expected a whole number, found 0x5"},
		{"chat: 1\nmost: 21", "2:7: most: expected 1 to 20, found 21"},
		{"chat: 1\nplayers: 1000001", "2:10: players: expected 2 to 1000000"},
		{"chat: 1\ntriggers: {a b: {phrases: [x], do: [collect]}}", "2:17: triggers.a b: expected the id of a trigger"},
		{"chat: 1\ntriggers: {t: {do: [collect]}}", "2:15: triggers.t.phrases: expected at least one phrase"},
		{"chat: 1\ntriggers: {t: {phrases: [x]}}", "2:15: triggers.t.do: expected 1 to 16 actions, found 0"},
		{"chat: 1\ntriggers: {t: {phrases: [\" \"], do: [collect]}}", "2:26: triggers.t.phrases[0]: expected 1 to 128 bytes"},
		{"chat: 1\ntriggers: {t: {phrases: [x, X], do: [collect]}}", "2:29: triggers.t.phrases[1]: the phrase \"X\" is that of trigger t too"},
		{"chat: 1\ntriggers: {t: {phrases: [" + strings.Repeat("é", 65) + "], do: [collect]}}", "2:26: triggers.t.phrases[0]: expected 1 to 128 bytes"},
		{triggerYAML("at: end\n    do: [collect]"), "6:9: triggers.t.at: expected start or anywhere"},
		{triggerYAML("cooldown: {player: 31d}\n    do: [collect]"), "6:24: triggers.t.cooldown.player: expected 0s to 720h0m0s"},
		{triggerYAML("do: [fly]"), "6:10: triggers.t.do[0]: expected one of the commands draw, redeem"},
		{triggerYAML("do: [{fly: {}}]"), "6:11: triggers.t.do[0].fly: unknown command \"fly\"; expected one of draw, redeem"},
		{triggerYAML("do: [{draw: {pool: p}, collect: {}}]"), "6:10: triggers.t.do[0]: expected a mapping with one command as its key, found 2"},
		{triggerYAML("do: [{draw: {}}]"), "6:17: triggers.t.do[0].draw: pool is missing"},
		{triggerYAML("do: [draw]"), "6:10: triggers.t.do[0].draw: pool is missing"},
		{triggerYAML("do: [{collect: {}}]"), "6:20: triggers.t.do[0].collect: expected no fields: write collect alone"},
		{triggerYAML("do: [{draw: {pool: p, quest: q}}]"), "6:27: triggers.t.do[0].draw.quest: unknown key \"quest\"; expected one of pool, pay, count"},
		{triggerYAML("do: [{draw: {pool: a b}}]"), "6:24: triggers.t.do[0].draw.pool: expected the id of pool"},
		{triggerYAML("do: [{draw: {pool: $what}}]"), "6:24: triggers.t.do[0].draw.pool: expected a placeholder, $ and the name of a word, found \"$what\""},
		{triggerYAML("do: [{draw: {pool: a-$}}]"), "6:24: triggers.t.do[0].draw.pool: expected a placeholder"},
		{triggerYAML("do: [{draw: {pool: a-$n}}]"), "6:24: triggers.t.do[0].draw.pool: expected an id whose placeholders are words of a list"},
		{triggerYAML("do: [{draw: {pool: a-$any}}]"), "6:24: triggers.t.do[0].draw.pool: expected an id whose placeholders are words of a list"},
		{triggerYAML("do: [{draw: {pool: $player}}]"), "6:24: triggers.t.do[0].draw.pool: expected an id whose placeholders are words of a list"},
		{triggerYAML("do: [{draw: {pool: " + strings.Repeat("a", 60) + "$item}}]"), "6:24: triggers.t.do[0].draw.pool: expected the id of pool"},
		{triggerYAML("do: [{draw: {pool: p, count: 1001}}]"), "6:34: triggers.t.do[0].draw.count: expected a whole number from 1 to 1000"},
		{triggerYAML("do: [{draw: {pool: p, count: 0}}]"), "6:34: triggers.t.do[0].draw.count: expected a whole number"},
		{triggerYAML("do: [{draw: {pool: p, count: $item}}]"), "6:34: triggers.t.do[0].draw.count: expected a whole number"},
		{triggerYAML("do: [{draw: {pool: p, count: 201*$n}}]"), "6:34: triggers.t.do[0].draw.count: expected at least 1 and at most 1000"},
		{triggerYAML("do: [{draw: {pool: p, count: $z}}]"), "6:34: triggers.t.do[0].draw.count: expected at least 1"},
		{triggerYAML("do: [{draw: {pool: p, count: 2*$n*3}}]"), "6:34: triggers.t.do[0].draw.count: expected at most one number and one word"},
		{triggerYAML("do: [{grant: {items: {}}}]"), "6:26: triggers.t.do[0].grant.items: expected 1 to 64 items, found 0"},
		{triggerYAML("do: [{grant: {items: {a: x}}}]"), "6:30: triggers.t.do[0].grant.items[0]: expected a whole number"},
		{triggerYAML("do: [{atomic: [collect]}]"), "6:20: triggers.t.do[0].atomic.members[0]: expected one of the commands draw, register"},
		{triggerYAML("do: [{atomic: []}]"), "6:19: triggers.t.do[0].atomic: expected a list of commands, found a list"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: A, text: true}], do: [collect]}}", "2:45: triggers.t.words[0].name: expected a small letter"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: player, text: true}], do: [collect]}}", "2:45: triggers.t.words[0].name: expected"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a}], do: [collect]}}", "2:38: triggers.t.words[0]: expected one of the keys of, to and text"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, from: 5, to: 4}], do: [collect]}}", "2:61: triggers.t.words[0].to: expected 5 to"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, of: [\"b c\"]}], do: [collect]}}", "2:52: triggers.t.words[0].of.b c: expected one word"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, of: {B: c, b: d}}], do: [collect]}}", "2:62: triggers.t.words[0].of.b: expected one word of at most 128 bytes, unlike the others"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, to: 5, else: 6}], do: [collect]}}", "2:61: triggers.t.words[0].else: expected what can be written here, found \"6\""},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, to: 5, else: 1}, {name: b, text: true}], do: [collect]}}", "2:65: triggers.t.words[1]: expected else"},
		{"chat: 1\ntriggers: {t: {phrases: [x], words: [{name: a, to: 5}, {name: a, to: 5}], do: [collect]}}", "triggers.t.words[1].name: duplicate name \"a\""},
	} {
		_, err := chat.Parse([]byte(c.yaml))
		var all *catalog.Errors
		if !errors.As(err, &all) || !strings.Contains("\n"+err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.yaml, err, c.want)
		}
	}
}

// TestNew refuses what Parse refuses.
func TestNew(t *testing.T) {
	c := testConfig()
	c.Triggers[0].Do[0].Pool = "$n"
	var e *kuji.Error
	if _, err := chat.New(&recorder{}, c); !errors.As(err, &e) || e.Code != kuji.CodeInvalid || e.Field != "triggers.search.do[0].draw.pool" {
		t.Errorf("%v", err)
	}
	many := chat.Config{Triggers: make([]chat.Trigger, chat.MaxTriggers+1)}
	if _, err := chat.New(&recorder{}, many); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("too many triggers: %v", err)
	}
}

// FuzzParse parses what is close to a configuration: it may be refused, and what is not can be used.
func FuzzParse(f *testing.F) {
	f.Add("chat: 1\nactivity: a\ntriggers: {t: {phrases: [x, \"y z\"], at: start, cooldown: {all: 1s}, words: [{name: n, from: 1, to: 5, else: 1}], do: [{draw: {pool: p, count: 2*$n}}]}}")
	f.Add(triggerYAML("do: [{atomic: [consume: {items: {$item: $n}}, grant: {items: {coin: 5}}]}, collect, {progress: {event: e, key: $any/$user}}]"))
	f.Fuzz(func(t *testing.T, yaml string) {
		c, err := chat.Parse([]byte(yaml))
		if err != nil {
			return
		}
		h, err := chat.New(&recorder{}, *c)
		if err != nil {
			t.Fatalf("New refuses what Parse takes: %v", err)
		}
		if _, err := h.Handle(t.Context(), chat.Message{Platform: "p", User: "u", ID: "1", Text: "x y z go 1 sword 1 word", At: evening}); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
