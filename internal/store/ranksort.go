package store

import "slices"

// sortRanks sorts keys in place, byte by byte from the highest one on: American flag sort (McIlroy,
// Bostic and McIlroy, "Engineering Radix Sort", Computing Systems 6, 1993). Ten million keys take a
// third of the time that comparing them would.
func sortRanks(keys []rankKey) { sortRanksFrom(keys, 0) }

// fewRanks is the number of keys up to which comparing them is faster.
const fewRanks = 64

// keyBytes is the number of bytes of a key.
const keyBytes = 8 + 8 + 4

// digit returns a byte of a key, 0 for the highest.
func (k *rankKey) digit(n int) uint8 {
	switch {
	case n < 8:
		return uint8(k.a >> (56 - 8*n))
	case n < 16:
		return uint8(k.b >> (120 - 8*n))
	}
	return uint8(k.player >> (152 - 8*n))
}

// sortRanksFrom sorts keys that have equal bytes up to one.
func sortRanksFrom(keys []rankKey, digit int) {
	if len(keys) <= fewRanks {
		slices.SortFunc(keys, rankKey.compare)
		return
	}
	var next, end [256]int
	for ; ; digit++ {
		if digit == keyBytes {
			return
		}
		for i := range keys {
			end[keys[i].digit(digit)]++
		}
		first := keys[0].digit(digit)
		if end[first] < len(keys) {
			break
		}
		end[first] = 0
	}
	sum := 0
	for d := range end {
		next[d] = sum
		sum += end[d]
		end[d] = sum
	}
	from := next
	for d := range end {
		for next[d] < end[d] {
			k := keys[next[d]]
			for at := k.digit(digit); int(at) != d; at = k.digit(digit) {
				k, keys[next[at]] = keys[next[at]], k
				next[at]++
			}
			keys[next[d]] = k
			next[d]++
		}
	}
	for d := range end {
		if from[d] < end[d] {
			sortRanksFrom(keys[from[d]:end[d]], digit+1)
		}
	}
}
