package chat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
)

const benchCatalog = `
kuji: 1
items: {coin: {kind: currency}}
pools: {search: {entries: [{id: coin, weight: 1, reward: {items: {coin: 1}}}, {id: nothing, weight: 9}]}}
counters: {messages: {of: {progress: message}}}
`

// someWord returns a word of two to four syllables.
func someWord(r *rand.Rand) string {
	var b strings.Builder
	for range 2 + r.IntN(3) {
		b.WriteByte("bcdfghjklmnprstvw"[r.IntN(17)])
		b.WriteByte("aeiou"[r.IntN(5)])
	}
	return b.String()
}

// crowd makes a handler with so many phrases of one and two words, and messages of some 60 bytes without any of them
// by viewers who were seen.
func crowd(b *testing.B, phrases int, texts func(r *rand.Rand, i int) string) (*chat.Handler, []chat.Message) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	t := chat.Trigger{ID: "search", Do: []chat.Action{{Do: "draw", Pool: "search"}}}
	for i := range phrases {
		p := "x" + someWord(r) + fmt.Sprint(i)
		if i%2 == 0 {
			p += " " + someWord(r)
		}
		t.Phrases = append(t.Phrases, p)
	}
	t.Phrases = append(t.Phrases, "!search")
	h, err := chat.New(realmOf(b, "", kuji.Options{}, benchCatalog), chat.Config{Activity: "message", Triggers: []chat.Trigger{t}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	messages := make([]chat.Message, 1024)
	for i := range messages {
		messages[i] = chat.Message{Platform: "twitch", User: fmt.Sprint(1000 + i%200), Name: "Viewer", Text: texts(r, i), ID: fmt.Sprint("message-", i), At: time.Unix(1e9, 0)}
		if _, err := h.Handle(b.Context(), messages[i]); err != nil {
			b.Fatal(err)
		}
	}
	return h, messages
}

func sentence(r *rand.Rand, i int) string {
	var all []string
	for range 10 {
		all = append(all, someWord(r))
	}
	return strings.ToUpper(all[0][:1]) + strings.Join(all, " ")[1:] + "!"
}

// BenchmarkHandle handles messages. "nothing" is without a match among 2,000 phrases; in "hello" every tenth letter is
// none of ASCII. A "search" is a draw from a pool that is logged in memory.
func BenchmarkHandle(b *testing.B) {
	for _, c := range []struct {
		name  string
		texts func(r *rand.Rand, i int) string
	}{
		{"nothing", sentence},
		{"hello", func(r *rand.Rand, i int) string { return strings.ReplaceAll(sentence(r, i), "o", "ö") }},
		{"search", func(r *rand.Rand, i int) string { return "!search " + sentence(r, i) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			h, messages := crowd(b, 2000, c.texts)
			b.ReportAllocs()
			var n atomic.Int64
			for i := 0; b.Loop(); i++ {
				m := messages[i%len(messages)]
				if c.name == "search" {
					m.ID = fmt.Sprint(n.Add(1))
				}
				if _, err := h.Handle(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		h, messages := crowd(b, 2000, sentence)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := h.Handle(b.Context(), messages[i%len(messages)]); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// realmOf opens a realm with a catalog. Without a folder, it is in memory.
func realmOf(t testing.TB, dir string, o kuji.Options, yaml string) *kuji.Realm {
	t.Helper()
	e, err := kuji.OpenMemory([32]byte{}, o)
	if dir != "" {
		e, err = kuji.Open(dir, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := e.Realm("chat")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return r
}
