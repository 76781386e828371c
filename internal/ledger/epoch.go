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

// Randomness. At every start a writer begins an epoch. It takes a new seed from crypto/rand and logs
// a commitment to it before the first draw, together with the seed itself, sealed with a key that
// is not in the log. It draws from ChaCha8 keyed by the seed. The seed is logged in clear when the
// epoch ends. From then on anybody can check the commitment and compute every draw again. If the
// epoch ends in a crash, the next writer has the key and does that, on whatever machine it runs.

type seed [32]byte

// commitment returns the public commitment to a seed.
func (s *seed) commitment(realm string, epoch uint64) [32]byte {
	return s.derive("kuji/v1/rng-commitment", realm, epoch)
}

// source returns the generator for the epoch's draws. Its key is derived under another domain than
// the commitment, so the commitment reveals nothing about it.
func (s *seed) source(realm string, epoch uint64) *mathrand.ChaCha8 {
	return mathrand.NewChaCha8(s.derive("kuji/v1/rng-stream", realm, epoch))
}

// Source is an epoch's random values. It counts them: a verifier that starts from a snapshot needs
// the count to find its place in the epoch.
type Source struct {
	src *mathrand.ChaCha8
	n   uint64
}

// Uint64 returns the next value.
func (s *Source) Uint64() uint64 {
	s.n++
	return s.src.Uint64()
}

// Values returns how many values were drawn.
func (s *Source) Values() uint64 { return s.n }

// derive returns SHA-256(domain ‖ 0 ‖ realm ‖ 0 ‖ epoch ‖ seed), with the epoch as 8 bytes
// little-endian. Domains and names contain no zero byte.
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

// MemoryEntropy fills p with bytes derived from a seed and a realm's name. They repeat in every
// run, because an engine in memory asks for the same lengths in the same order.
func MemoryEntropy(from [32]byte, realm string, p []byte) {
	s := seed(from)
	derived := s.derive("kuji/v2/memory", realm, uint64(len(p)))
	copy(p, derived[:])
}

// sealedSeed is a seed sealed by AES-256-GCM with the realm's key: a nonce of 12 bytes, the
// ciphertext, and a tag of 16 bytes. The additional data is "kuji/v1/epoch-seed" ‖ 0 ‖ realm ‖ 0 ‖
// epoch ‖ writer, so that it opens for nothing else.
type sealedSeed [nonceLen + 32 + 16]byte

const nonceLen = 12

func (i *Epoch) sealer(realm string, key *[32]byte) (gcm cipher.AEAD, additional []byte, err error) {
	block, err := aes.NewCipher(key[:])
	if err == nil {
		gcm, err = cipher.NewGCM(block)
	}
	additional = fmt.Appendf(nil, "kuji/v1/epoch-seed\x00%s\x00", realm)
	additional = binary.LittleEndian.AppendUint64(additional, i.Number)
	return gcm, append(additional, i.writer[:]...), err
}

// seal seals the epoch's seed.
func (i *Epoch) seal(realm string, key *[32]byte, nonce [nonceLen]byte, s *seed) error {
	gcm, additional, err := i.sealer(realm, key)
	if err == nil {
		copy(i.sealed[:], gcm.Seal(nonce[:], nonce[:], s[:], additional))
	}
	return err
}

// open returns the epoch's seed. ok is false if the key is not the one that sealed it.
func (i *Epoch) open(realm string, key *[32]byte) (s seed, ok bool) {
	gcm, additional, err := i.sealer(realm, key)
	if err != nil {
		return s, false
	}
	b, err := gcm.Open(nil, i.sealed[:nonceLen], i.sealed[nonceLen:], additional)
	if err != nil {
		return s, false
	}
	s = seed(b)
	return s, s.commitment(realm, i.Number) == i.Commitment
}

// openAny is open with one of several keys.
func (i *Epoch) openAny(realm string, keys [][32]byte) (s seed, ok bool) {
	for k := range keys {
		if s, ok = i.open(realm, &keys[k]); ok {
			return s, true
		}
	}
	return s, false
}

// Epoch is what is known of an epoch.
type Epoch struct {
	First      uint64 // position of its epoch-begin
	Number     uint64
	Commitment [32]byte // to its seed
	Revealed   bool     // the seed is in the log in clear

	writer [16]byte
	sealed sealedSeed
}

// Lost reports that the seed is neither in the log in clear, nor can one of the keys open it: nobody
// can prove the choices of this epoch.
func (i *Epoch) Lost(realm string, keys ...[32]byte) bool {
	if i.Revealed {
		return false
	}
	_, ok := i.openAny(realm, keys)
	return !ok
}

// epochBegin is the payload of an epoch-begin entry: rules version (1 byte), time stamp (8 bytes,
// Unix milliseconds), commitment (32 bytes), sealed seed (60 bytes).
type epochBegin struct {
	rules      uint8
	time       int64
	commitment [32]byte
	sealed     sealedSeed
}

const epochBeginLen = 1 + 8 + 32 + len(sealedSeed{})

func (p *epochBegin) append(b []byte) []byte {
	b = append(b, p.rules)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.time))
	b = append(b, p.commitment[:]...)
	return append(b, p.sealed[:]...)
}

func decodeEpochBegin(b []byte) (p epochBegin, err error) {
	if len(b) != epochBeginLen {
		return p, fmt.Errorf("epoch-begin of %d bytes, want %d", len(b), epochBeginLen)
	}
	if b[0] == 0 {
		return p, errors.New("rules version 0; versions count from 1")
	}
	t := binary.LittleEndian.Uint64(b[1:])
	if t > MaxTime {
		return p, fmt.Errorf("time stamp %d is out of range", t)
	}
	return epochBegin{rules: b[0], time: int64(t), commitment: [32]byte(b[9:]), sealed: sealedSeed(b[41:])}, nil
}

// MaxTime is the latest time stamp that the format has, in Unix milliseconds.
const MaxTime = 1<<44 - 1

// revelation is the payload of an epoch-end and of a reveal entry: the number
// of an epoch that has ended (8 bytes) and its seed (32 bytes).
type revelation struct {
	epoch uint64
	seed  seed
}

func (p *revelation) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.epoch)
	return append(b, p.seed[:]...)
}

func decodeRevelation(b []byte) (p revelation, err error) {
	if len(b) != 40 {
		return p, fmt.Errorf("reveal of %d bytes, want 40", len(b))
	}
	return revelation{epoch: binary.LittleEndian.Uint64(b), seed: seed(b[8:])}, nil
}
