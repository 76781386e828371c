package store

import "hash/maphash"

// hashKey hashes ids that clients choose. Its seed is new at every start, so that nobody can find
// ids that collide.
type hashKey struct{ seed maphash.Seed }

func newHashKey() hashKey { return hashKey{maphash.MakeSeed()} }

// hash returns the upper half of an id's hash.
func (k *hashKey) hash(id string) uint32 { return uint32(maphash.String(k.seed, id) >> 32) }

func (k *hashKey) hashBytes(id []byte) uint32 { return uint32(maphash.Bytes(k.seed, id) >> 32) }
