package kuji

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// A snapshot is a file of frames in the realm's directory "snapshots". Its name has its position
// and that of the snapshot that it builds on, 0 for none (docs/internals/formats/snapshot.md):
//
//	00000000000000012345-00000000000000000000.snapshot
//
// A frame is the length of its data and a CRC32C, 4 bytes each, little-endian, then its kind, 1
// byte, then the data. The checksum also covers the frame's number in the file. The first frame
// says what the file is. The last one, the seal, binds the file to the log, and by SHA-256 to the
// bytes before the seal. The first frame has the SHA-256 of the file that this one builds on.
const (
	snapshotDir     = "snapshots"
	snapshotSuffix  = ".snapshot"
	snapshotVersion = 5
	frameHead       = 9
	frameHeader     = 0   // first frame
	frameSeal       = 255 // last frame; between them, the blocks of package store
	maxFrame        = 1 << 30
)

var snapshotMagic = []byte("KJSN")

// snapshotFile is a snapshot's file. Those in snapshots.files are intact as far as is known.
type snapshotFile struct {
	position uint64 // of the newest entry of the log that it covers
	base     uint64 // position of the snapshot it builds on; 0: none
	bytes    int64
	digest   [32]byte // SHA-256 of the file up to the seal
	offset   uint64   // of the log's entry at position
}

func (f *snapshotFile) name() string {
	return fmt.Sprintf("%020d-%020d%s", f.position, f.base, snapshotSuffix)
}

// parseSnapshotName is the inverse of name.
func parseSnapshotName(name string) (f snapshotFile, ok bool) {
	n, err := fmt.Sscanf(name, "%020d-%020d"+snapshotSuffix, &f.position, &f.base)
	return f, n == 2 && err == nil && f.name() == name
}

// seal is the last frame of a snapshot: what recovery needs to continue from its position.
type seal struct {
	chain  chain  // after the entry at the snapshot's position
	offset uint64 // of that entry in the log
	values uint64 // drawn from the current epoch's source so far
	last   int64  // the last time in the log: a batch's, what it set the clock back to, or an epoch's
	epochs []epochInfo
}

func (s *seal) append(b []byte, digest [32]byte) []byte {
	c := &s.chain
	ahead := c.ahead
	if ahead <= c.index { // it says nothing
		ahead = 0
	}
	for _, v := range []uint64{c.index, s.offset, c.epoch, ahead, s.values, uint64(s.last)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, c.writer[:]...)
	b = append(b, c.hash[:]...)
	b = append(b, flag(c.ended))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.epochs)))
	for _, e := range s.epochs {
		b = binary.LittleEndian.AppendUint64(b, e.first)
		b = binary.LittleEndian.AppendUint64(b, e.epoch)
		b = append(b, flag(e.revealed))
		b = append(b, e.commitment[:]...)
	}
	return append(b, digest[:]...)
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

const (
	sealHead  = 6*8 + 16 + 32 + 1 + 4
	sealEpoch = 8 + 8 + 1 + 32
)

// decodeSeal decodes a seal of a realm's snapshot.
func decodeSeal(b []byte, realm string) (s seal, digest [32]byte, err error) {
	if len(b) < sealHead+32 {
		return s, digest, fmt.Errorf("seal of %d bytes, want at least %d", len(b), sealHead+32)
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	s.chain = chain{realm: realm, index: u64(0), epoch: u64(16), ahead: u64(24), writer: [16]byte(b[48:]), hash: [32]byte(b[64:]), ended: b[96] == 1}
	s.offset, s.values, s.last = u64(8), u64(32), int64(u64(40))
	flags := []byte{b[96]}
	n := int64(binary.LittleEndian.Uint32(b[97:]))
	if want := sealHead + n*sealEpoch + 32; int64(len(b)) != want {
		return s, digest, fmt.Errorf("seal of %d bytes with %d epochs, want %d", len(b), n, want)
	}
	for at := sealHead; at < len(b)-32; at += sealEpoch {
		flags = append(flags, b[at+16])
		s.epochs = append(s.epochs, epochInfo{first: u64(at), epoch: u64(at + 8), revealed: b[at+16] == 1, commitment: [32]byte(b[at+17:])})
	}
	if i := slices.IndexFunc(flags, func(f byte) bool { return f > 1 }); i >= 0 {
		return s, digest, fmt.Errorf("a flag is %d, want 0 or 1", flags[i])
	}
	return s, [32]byte(b[len(b)-32:]), s.check()
}

// check reports epochs that cannot be those of a log up to the seal's position. The last one must
// be the epoch in force there.
func (s *seal) check() error {
	if s.last < 0 || s.last > rules.MaxTime {
		return fmt.Errorf("the last time is %d, want Unix milliseconds, at most %d", s.last, int64(rules.MaxTime))
	}
	if c := &s.chain; c.ahead > 0 && c.ahead <= c.index {
		return fmt.Errorf("a void entry at position %d of %d, want 0 or a later one", c.ahead, c.index)
	}
	for i, e := range s.epochs {
		if e.first > s.chain.index || i > 0 && (e.first <= s.epochs[i-1].first || e.epoch <= s.epochs[i-1].epoch) {
			return fmt.Errorf("epoch %d, which began at position %d, is out of order", e.epoch, e.first)
		}
	}
	if n := len(s.epochs); n == 0 || s.epochs[n-1].epoch != s.chain.epoch {
		return fmt.Errorf("epoch %d, the one in force, is not the last of the %d in the seal", s.chain.epoch, n)
	}
	return nil
}

// snapshotWriter writes a snapshot's frames to a file with a temporary name.
type snapshotWriter struct {
	fsys   vfs.FS
	dir    string
	f      vfs.File
	buf    []byte
	off    int64 // of buf in the file
	frames uint64
	digest hash.Hash
}

const snapshotTmp = "new.tmp"

// newSnapshotWriter creates the file of a snapshot that builds on base, nil for none.
func newSnapshotWriter(fsys vfs.FS, dir, realm string, base *snapshotFile) (*snapshotWriter, error) {
	if err := fsys.Remove(dir + "/" + snapshotTmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := fsys.Create(dir + "/" + snapshotTmp)
	if err != nil {
		return nil, err
	}
	w := &snapshotWriter{fsys: fsys, dir: dir, f: f, digest: sha256.New()}
	head := append(bytes.Clone(snapshotMagic), snapshotVersion, byte(len(realm)))
	head = append(head, realm...)
	var on [32]byte
	if base != nil {
		on = base.digest
	}
	return w, w.frame(frameHeader, append(head, on[:]...))
}

// frame writes one frame.
func (w *snapshotWriter) frame(kind byte, data []byte) error {
	start := len(w.buf)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(data)))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, frameSum(kind, w.frames, data))
	w.buf = append(append(w.buf, kind), data...)
	w.frames++
	w.digest.Write(w.buf[start:]) // never fails: hash.Hash
	if len(w.buf) < snapshotWrite {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.f.Sync() // in small parts: one large fsync at the end would delay those of the log
}

// snapshotWrite is how many bytes of a snapshot are written and fsynced at a time.
const snapshotWrite = 1 << 20

func frameSum(kind byte, number uint64, data []byte) uint32 {
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], number)
	head[8] = kind
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, data)
}

func (w *snapshotWriter) flush() error {
	_, err := w.f.WriteAt(w.buf, w.off)
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return err
}

// finish seals the file and gives it its name, durably.
func (w *snapshotWriter) finish(s *seal, base uint64) (snapshotFile, error) {
	file := snapshotFile{position: s.chain.index, base: base, offset: s.offset, digest: [32]byte(w.digest.Sum(nil))}
	err := w.frame(frameSeal, s.append(nil, file.digest))
	if err == nil {
		err = w.flush()
	}
	file.bytes = w.off
	if err == nil {
		err = w.f.Sync()
	}
	if err = errors.Join(err, w.f.Close()); err != nil {
		return file, err
	}
	if err := w.fsys.Rename(w.dir+"/"+snapshotTmp, w.dir+"/"+file.name()); err != nil {
		return file, err
	}
	return file, w.fsys.SyncDir(w.dir)
}

// abort closes and removes the file.
func (w *snapshotWriter) abort() {
	w.f.Close() // the error does not matter: the file is removed
	w.fsys.Remove(w.dir + "/" + snapshotTmp)
}

// listSnapshots returns the snapshots that a directory's file names announce, ascending. strays
// are names that Kuji never gives, such as somebody's copies: they are neither read nor removed.
func listSnapshots(fsys vfs.FS, dir string) (files []snapshotFile, strays []string, err error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names { // sorted, and so by position
		if f, ok := parseSnapshotName(name); ok {
			files = append(files, f)
		} else if name != snapshotTmp {
			strays = append(strays, name)
		}
	}
	return files, strays, nil
}

// snapshotChain returns the snapshots to load for f, in order, and false if one of them is
// missing. A realm never writes two snapshots of one position: positions only go up, even when it
// is reopened, and a second attempt at one position builds on the same base and so has the same
// name. If somebody has added another all the same, the first one of a position is the base.
func snapshotChain(files []snapshotFile, f snapshotFile) ([]snapshotFile, bool) {
	var chain []snapshotFile
	for {
		if f.base >= f.position {
			return nil, false
		}
		chain = append(chain, f)
		if f.base == 0 {
			slices.Reverse(chain)
			return chain, true
		}
		i := slices.IndexFunc(files, func(base snapshotFile) bool { return base.position == f.base })
		if i < 0 {
			return nil, false
		}
		f = files[i]
	}
}

// restored is a state loaded from snapshots.
type restored struct {
	state *store.State
	mark  store.Mark
	seal  seal
	chain []snapshotFile // what it was loaded from, in order
}

// loadSnapshot loads the state in one of a directory's snapshots, together with those that it
// builds on.
func loadSnapshot(fsys vfs.FS, dir, realm string, files []snapshotFile, file snapshotFile) (*restored, error) {
	chain, ok := snapshotChain(files, file)
	if !ok {
		return nil, fmt.Errorf("snapshot %s/%s: the snapshot that it builds on is missing", dir, file.name())
	}
	r, loader := &restored{chain: chain}, store.NewLoader()
	var err error
	for i := range chain {
		if r.seal, err = loadFile(fsys, dir, realm, chain, i, loader); err != nil {
			return nil, err
		}
	}
	r.state, r.mark, err = loader.State()
	return r, err
}

// snapshotLoader is a *store.Loader, or one with something around it.
type snapshotLoader interface {
	Block(kind store.BlockKind, data []byte) error
	Loaded() error
}

// loadFile loads number i of a chain, behind those before it, and completes what is known of it.
func loadFile(fsys vfs.FS, dir, realm string, chain []snapshotFile, i int, loader snapshotLoader) (seal, error) {
	f := &chain[i]
	var base [32]byte
	if i > 0 {
		base = chain[i-1].digest
	}
	s, err := readSnapshot(fsys, dir, realm, base, f, loader)
	if err == nil {
		err = loader.Loaded()
	}
	if err != nil {
		return s, fmt.Errorf("snapshot %s/%s: %w", dir, f.name(), err)
	}
	return s, nil
}

// readSnapshot loads a file's blocks and completes f.
func readSnapshot(fsys vfs.FS, dir, realm string, base [32]byte, f *snapshotFile, loader snapshotLoader) (s seal, err error) {
	file, err := fsys.Open(dir + "/" + f.name())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if f.bytes, err = file.Size(); err != nil {
		return s, err
	}
	return readBlocks(file, realm, base, f, loader)
}

func readBlocks(file vfs.File, realm string, base [32]byte, f *snapshotFile, loader snapshotLoader) (s seal, err error) {
	sealed := false
	for fr, err := range readFrames(file, f.bytes) {
		if err != nil {
			return s, err
		}
		switch {
		case sealed:
			return s, fmt.Errorf("byte %d: a frame after the seal", fr.at)
		case (fr.number == 0) != (fr.kind == frameHeader):
			return s, fmt.Errorf("byte %d: frame %d of kind %d", fr.at, fr.number, fr.kind)
		case fr.kind == frameHeader:
			err = checkSnapshotHeader(fr.data, realm, base)
		case fr.kind == frameSeal:
			var digest [32]byte
			s, digest, err = decodeSeal(fr.data, realm)
			if err == nil && (digest != fr.before || s.chain.index != f.position) {
				err = errors.New("the seal is not that of this file")
			}
			f.digest, f.offset, sealed = digest, s.offset, true
		default:
			err = loader.Block(store.BlockKind(fr.kind), fr.data)
		}
		if err != nil {
			return s, fmt.Errorf("byte %d: %w", fr.at, err)
		}
	}
	if !sealed {
		return s, fmt.Errorf("byte %d: the file ends before its seal", f.bytes)
	}
	return s, nil
}

func checkSnapshotHeader(b []byte, realm string, base [32]byte) error {
	want := append(bytes.Clone(snapshotMagic), snapshotVersion, byte(len(realm)))
	want = append(want, realm...)
	switch {
	case len(b) < 5 || !bytes.Equal(b[:4], snapshotMagic):
		return errors.New("not a snapshot of Kuji")
	case b[4] != snapshotVersion:
		return fmt.Errorf("version %d of the format; this build knows version %d", b[4], snapshotVersion)
	case len(b) != len(want)+32 || !bytes.Equal(b[:len(want)], want):
		return fmt.Errorf("not a snapshot of realm %q", realm)
	case [32]byte(b[len(want):]) != base:
		return errors.New("it builds on a snapshot other than the one before it")
	}
	return nil
}

// frame is one frame of a snapshot, checked.
type frame struct {
	at     int64 // in the file
	number uint64
	kind   byte
	data   []byte   // valid until the next iteration
	before [32]byte // of a seal: SHA-256 of the file before it
}

// readFrames iterates over a file's frames, to the end or to the first error.
func readFrames(file vfs.File, size int64) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		in := io.NewSectionReader(file, 0, size)
		digest := sha256.New()
		var head [frameHead]byte
		var buf []byte
		for fr := (frame{}); fr.at < size; fr.number++ {
			fail := func(err error) { yield(fr, fmt.Errorf("byte %d: frame %d: %w", fr.at, fr.number, err)) }
			if _, err := io.ReadFull(in, head[:]); err != nil {
				fail(err)
				return
			}
			n := int64(binary.LittleEndian.Uint32(head[:]))
			if n > maxFrame || n > size-fr.at-frameHead {
				fail(fmt.Errorf("%d bytes announced, but %d left", n, size-fr.at-frameHead))
				return
			}
			buf = slices.Grow(buf[:0], int(n))[:n]
			if _, err := io.ReadFull(in, buf); err != nil {
				fail(err)
				return
			}
			fr.kind, fr.data = head[8], buf
			if got, want := frameSum(fr.kind, fr.number, buf), binary.LittleEndian.Uint32(head[4:]); got != want {
				fail(fmt.Errorf("checksum %08x, the frame says %08x", got, want))
				return
			}
			if fr.kind == frameSeal {
				fr.before = [32]byte(digest.Sum(nil))
			}
			digest.Write(head[:]) // never fails: hash.Hash
			digest.Write(buf)
			if !yield(fr, nil) {
				return
			}
			fr.at += frameHead + n
		}
	}
}
