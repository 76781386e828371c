// Package stores holds the usual ways to write a reward store, each small and in its plainest
// honest form, as baselines for package bench. Only benchmarks and their tests may import it.
//
// All of them choose an entry by weight, hand out its item, keep what each player holds, and
// remember every request id for ever. They have no stock, prices, limits or receipts. Except for
// JSONLines, nothing outlives the process.
package stores

import "math/rand/v2"

// Store is what all of them implement.
type Store interface {
	// Draw gives player the item of an entry chosen by weight and returns the entry. A request id
	// that is not empty gets its first answer again.
	Draw(id, player string) (entry int)
	// Held returns how often player has drawn an entry.
	Held(player string, entry int) int
	// Close ends background work. The store must not be used afterwards.
	Close() error
}

func newSource(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }
