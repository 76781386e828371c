package economy_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/internal/economy"
)

// BenchmarkReplay decodes and applies draws of one choice by a million players
// with a new request id each, as recovery does. An operation is an event.
func BenchmarkReplay(b *testing.B) {
	const events, players = 1 << 20, 1 << 20
	m := newMachine(b, 1)
	m.apply("kuji: 1\nitems: {gem: {}}\npools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}}\n")
	r := rand.New(rand.NewPCG(1, 2))
	var log []byte
	numbers := make([]uint32, players) // + 1
	seen := uint32(0)
	for range events {
		p := r.IntN(players)
		id := binary.LittleEndian.AppendUint64(nil, r.Uint64())
		id = binary.LittleEndian.AppendUint64(id, r.Uint64())
		ev := economy.Event{Kind: economy.KindDraw, ID: string(id), Pool: economy.Ref{Known: true}, Count: 1, Choices: []economy.Choice{{}}}
		if numbers[p] == 0 {
			seen++
			numbers[p] = seen
			ev.Player = economy.Ref{ID: fmt.Sprint("player", p)}
		} else {
			ev.Player = economy.Ref{Known: true, Num: numbers[p] - 1}
		}
		log = economy.AppendEvent(log, &ev)
	}
	var s *economy.State
	var rest []byte
	var g *economy.Group
	left, pos := 0, uint64(0)
	b.ResetTimer()
	for done := 0; done < b.N; {
		if left == 0 {
			b.StopTimer()
			m := newMachine(b, 1)
			m.apply("kuji: 1\nitems: {gem: {}}\npools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}}\n")
			s = m.s
			g, rest, left, pos = s.NewGroup(), log, events, s.Position()
			b.StartTimer()
		}
		pos++
		g.Begin(economy.At{Position: pos, Time: s.Now()})
		n := min(left, 1024)
		for range n {
			size, err := g.Add(rest)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[size:]
		}
		if _, err := s.ApplyGroup(g); err != nil {
			b.Fatal(err)
		}
		s.RememberGroup(g)
		g.Reset(true)
		if left == n || left == events/2 {
			if _, err := s.Settle(); err != nil {
				b.Fatal(err)
			}
		}
		left, done = left-n, done+n
	}
}
