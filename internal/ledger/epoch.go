package ledger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
)

// Randomness. At every start a writer begins an epoch with a new seed. Before the first draw it logs a
// commitment to the seed, and the seed itself, sealed with a key that is not in the log. It draws from
// ChaCha8 keyed by the seed. When the epoch ends, the seed is logged in clear: from then on anybody can
// check every draw. After a crash the next writer does that with the key, on whatever machine it runs.

type seed [32]byte

func (s *seed) commitment(realm string, epoch uint64) [32]byte {
	return s.derive("kuji/v1/rng-commitment", realm, epoch)
}

// source returns the generator for the epoch's draws, whose key's domain is not the commitment's.
func (s *seed) source(realm string, epoch uint64) *mathrand.ChaCha8 {
	return mathrand.NewChaCha8(s.derive("kuji/v1/rng-stream", realm, epoch))
}

// Source is an epoch's random values, counted: a verifier finds its place by the count in a snapshot.
type Source struct {
	src *mathrand.ChaCha8
	n   uint64
}

func (s *Source) Uint64() uint64 {
	s.n++
	return s.src.Uint64()
}

// Values returns how many values were drawn.
func (s *Source) Values() uint64 { return s.n }

// derive returns SHA-256(domain ‖ 0 ‖ realm ‖ 0 ‖ epoch ‖ seed), the epoch as 8 bytes little-endian.
func (s *seed) derive(domain, realm string, epoch uint64) [32]byte {
	b := make([]byte, 0, 160)
	b = append(b, domain...)
	b = append(b, 0)
	b = append(b, realm...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, epoch)
	b = append(b, s[:]...)
	return sha256.Sum256(b)
}

// MemoryEntropy fills p with bytes that only a seed, a realm's name and the length decide.
func MemoryEntropy(from [32]byte, realm string, p []byte) {
	s := seed(from)
	derived := s.derive("kuji/v2/memory", realm, uint64(len(p)))
	copy(p, derived[:])
}

// sealedSeed is a seed sealed by AES-256-GCM with the realm's key: nonce of 12 bytes, ciphertext, tag of 16
// bytes. The additional data "kuji/v1/epoch-seed" ‖ 0 ‖ realm ‖ 0 ‖ epoch ‖ writer binds it to its epoch.
type sealedSeed [nonceLen + 32 + 16]byte

const nonceLen = 12

func (i *Epoch) sealer(realm string, key *[32]byte) (gcm cipher.AEAD, additional []byte, err error) {
	block, err := aes.NewCipher(key[:])
	if err == nil {
		gcm, err = cipher.NewGCM(block)
	}
	additional = fmt.Appendf(nil, "kuji/v1/epoch-seed\x00%s\x00", realm)
	additional = binary.LittleEndian.AppendUint64(additional, i.Number)
	return gcm, append(additional, i.Writer[:]...), err
}

func (i *Epoch) seal(realm string, key *[32]byte, nonce [nonceLen]byte, s *seed) error {
	gcm, additional, err := i.sealer(realm, key)
	if err == nil {
		copy(i.Sealed[:], gcm.Seal(nonce[:], nonce[:], s[:], additional))
	}
	return err
}

// open returns the epoch's seed. ok is false if no key is the one that sealed it.
func (i *Epoch) open(realm string, keys ...[32]byte) (s seed, ok bool) {
	for k := range keys {
		gcm, additional, err := i.sealer(realm, &keys[k])
		if err != nil {
			continue
		}
		b, err := gcm.Open(nil, i.Sealed[:nonceLen], i.Sealed[nonceLen:], additional)
		if err != nil {
			continue
		}
		if s = seed(b); s.commitment(realm, i.Number) == i.Commitment {
			return s, true
		}
	}
	return s, false
}

// Epoch is what is known of an epoch, with the fields of a snapshot's footer.
type Epoch struct {
	First      uint64 // position of its epoch-begin
	Number     uint64
	Revealed   bool     // the seed is in the log in clear
	Commitment [32]byte // to its seed
	Writer     [16]byte
	Sealed     sealedSeed
}

// Lost reports that nobody can prove the epoch's choices: its seed is not revealed, and no key opens it.
func (i *Epoch) Lost(realm string, keys ...[32]byte) bool {
	if i.Revealed {
		return false
	}
	_, ok := i.open(realm, keys...)
	return !ok
}

// epochBegin is the payload of an epoch-begin entry.
type epochBegin struct {
	Rules      uint8
	Time       int64 // Unix milliseconds
	Commitment [32]byte
	Sealed     sealedSeed
}

// revelation is the payload of an epoch-end and of a reveal: an ended epoch's seed.
type revelation struct {
	Epoch uint64
	Seed  seed
}

// encode appends a struct with fields of fixed sizes, in their order, little-endian.
func encode(b []byte, v any) []byte {
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(err) // a field without a fixed size
	}
	return b
}

func decodePayload(b []byte, what string, into any) error {
	if want := binary.Size(into); len(b) != want {
		return fmt.Errorf("%s of %d bytes, want %d", what, len(b), want)
	}
	_, err := binary.Decode(b, binary.LittleEndian, into)
	return err
}

func decodeEpochBegin(b []byte) (p epochBegin, err error) {
	if err := decodePayload(b, "epoch-begin", &p); err != nil {
		return p, err
	}
	if p.Rules == 0 {
		return p, errors.New("rules version 0; versions count from 1")
	}
	if uint64(p.Time) > MaxTime {
		return p, fmt.Errorf("time stamp %d is out of range", uint64(p.Time))
	}
	return p, nil
}

// MaxTime is the latest time stamp that the format has, in Unix milliseconds.
const MaxTime = 1<<44 - 1
