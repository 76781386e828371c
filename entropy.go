package kuji

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"strings"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Randomness. At every start a writer begins an epoch. It takes a new seed from crypto/rand, logs
// a commitment to the seed before the first draw, and draws from ChaCha8 keyed by the seed. The
// seed is logged when the epoch ends. From then on anybody can check the commitment and compute
// every draw again. Until then the seed is also kept in a file next to the log, so that a crash
// cannot make an epoch unprovable.

// rulesVersion numbers what decisions depend on: how they use the epoch's random values, and what
// counters hold. After a change to that, a new build cannot verify old epochs unless its verifier
// keeps the old way. It must do that or refuse.
const rulesVersion = 4

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

// countedSource counts the values it returns. A verifier that starts from a snapshot needs the
// count to find its place in the epoch.
type countedSource struct {
	src *mathrand.ChaCha8
	n   uint64
}

func (s *countedSource) Uint64() uint64 {
	s.n++
	return s.src.Uint64()
}

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

// memoryEntropy fills p with bytes derived from a seed and a realm's name. They repeat in every
// run, because an engine in memory asks for the same lengths in the same order.
func memoryEntropy(s seed, realm string, p []byte) {
	derived := s.derive("kuji/v2/memory", realm, uint64(len(p)))
	copy(p, derived[:])
}

// epochBegin is the payload of an epoch-begin entry: rules version (1 byte), time stamp (8 bytes,
// Unix milliseconds), commitment (32 bytes).
type epochBegin struct {
	rules      uint8
	time       int64
	commitment [32]byte
}

func (p *epochBegin) append(b []byte) []byte {
	b = append(b, p.rules)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.time))
	return append(b, p.commitment[:]...)
}

func decodeEpochBegin(b []byte) (p epochBegin, err error) {
	if len(b) != 41 {
		return p, fmt.Errorf("epoch-begin of %d bytes, want 41", len(b))
	}
	t := binary.LittleEndian.Uint64(b[1:])
	if t > rules.MaxTime {
		return p, fmt.Errorf("time stamp %d is out of range", t)
	}
	return epochBegin{rules: b[0], time: int64(t), commitment: [32]byte(b[9:])}, nil
}

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

// seedFile holds the seeds that are not revealed yet, one line "epoch hex" each. It is a secret:
// anyone who reads it can predict the draws of the current epoch.
const seedFile = "seeds"

// maxSeedFile bounds what is read of a seed file. It has a line for each epoch that ended in a
// crash since the last opening, so it has one or two.
const maxSeedFile = 1 << 20

// savedSecrets is what a seed file holds.
type savedSecrets struct {
	raw    []byte
	seeds  []revelation
	damage error // the first line that holds no seed; nil: there is none
}

// readSecrets reads the seed file in a realm's directory. A missing file is an empty one. Damage is
// no error: only what the log says of the epochs tells whether a seed is missed.
func readSecrets(fsys vfs.FS, dir string) (saved savedSecrets, err error) {
	saved.raw, err = readFile(fsys, dir+"/"+seedFile, maxSeedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(saved.raw), "\n"), "\n") {
		var s revelation
		var text string
		_, err := fmt.Sscanf(line, "%d %s", &s.epoch, &text)
		raw, hexErr := hex.DecodeString(text)
		if err != nil || hexErr != nil || len(raw) != len(s.seed) {
			if saved.damage == nil {
				saved.damage = fmt.Errorf("%s:%d: want an epoch number and 64 hexadecimal digits", seedFile, i+1)
			}
			continue
		}
		copy(s.seed[:], raw)
		saved.seeds = append(saved.seeds, s)
	}
	return saved, nil
}

// writeSecrets replaces the seed file, durably.
func writeSecrets(fsys vfs.FS, dir string, secrets []revelation) error {
	var b strings.Builder
	for _, s := range secrets {
		fmt.Fprintf(&b, "%d %x\n", s.epoch, s.seed)
	}
	return replaceFile(fsys, dir, seedFile, []byte(b.String()))
}

// readFile reads the first bytes of a file, at most as many as the limit.
func readFile(fsys vfs.FS, name string, limit int64) (b []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b = make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("%s: read %d of %d bytes: %w", name, n, len(b), err)
	}
	return b, nil
}

// replaceFile replaces the contents of dir/name by b. After a crash or an error the file holds
// either b or its old contents. If the error is nil, it durably holds b.
func replaceFile(fsys vfs.FS, dir, name string, b []byte) error {
	tmp := dir + "/" + name + ".tmp"
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, dir+"/"+name); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}
