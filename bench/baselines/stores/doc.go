// Package stores holds the ways in which a reward store is usually written, each small and in its plainest honest form, for the
// benchmarks of package bench to be compared with. Nothing but benchmarks and their tests may import it.
//
// All of them pick an entry by weight, hand out its item, keep what each player holds and remember every request id for ever.
// They know no stock, no price, no limits and no receipts, and but for JSONLines nothing of them outlives the process.
package stores

import "math/rand/v2"

// Store is what all of them do.
type Store interface {
	// Draw gives player the item of an entry chosen by weight and returns the
	// entry. A request id that is not empty gets its first answer again.
	Draw(id, player string) (entry int)
	// Held is how often player has drawn an entry.
	Held(player string, entry int) int
	// Close ends what runs in the background. Nothing may be called afterwards.
	Close() error
}

func newSource(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }
