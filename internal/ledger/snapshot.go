package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
)

// A snapshot is a file of frames. Its name has its position, that of the snapshot that it builds on, 0 for
// none, and the file's SHA-256 (docs/internals/formats/snapshot.md):
//
//	00000000000000012345-00000000000000000000-<64 hexadecimal digits>.snapshot
//
// A frame is the length of its data and a CRC32C, 4 bytes each, little-endian, its kind, 1 byte, and the
// data. The checksum covers the frame's number too. The first frame says what the file is, with the SHA-256
// of the file that it builds on. The last one, the footer, binds the file to the log, and to the bytes
// before the footer.
const (
	snapshotSuffix = ".snapshot"
	frameHead      = 9
	frameHeader    = 0   // first frame
	frameFooter    = 255 // last frame; between them, the blocks of the state
	maxFrame       = 1 << 30
)

var snapshotMagic = []byte("KJSN")

// Snapshots are a realm's snapshots. Methods may run concurrently; one file is written at once.
type Snapshots struct {
	log   driver.Realm
	realm string

	mu     sync.Mutex
	newest []Snapshot // the newest series, ascending: intact, as far as is known
	before []Snapshot // the series before it, as far as is known intact; nil: not known
	fresh  bool       // the next snapshot begins a series
}

type Snapshot struct {
	Position uint64 // of the newest entry of the log that it covers
	Base     uint64 // position of the snapshot it builds on; 0: none
	Bytes    int64

	sum    [32]byte      // SHA-256 of the file
	digest [32]byte      // SHA-256 of the file up to the footer
	cursor driver.Cursor // of the log's entry at Position
	read   bool          // digest and cursor are known
}

func (f *Snapshot) Name() string {
	return fmt.Sprintf("%020d-%020d-%x%s", f.Position, f.Base, f.sum, snapshotSuffix)
}

// Cursor returns that of the log's entry at Position, if the file was written or read here.
func (f *Snapshot) Cursor() driver.Cursor { return f.cursor }

func parseSnapshotName(name string) (f Snapshot, ok bool) {
	var sum []byte
	_, err := fmt.Sscanf(name, "%020d-%020d-%x"+snapshotSuffix, &f.Position, &f.Base, &sum)
	if err != nil || len(sum) != len(f.sum) {
		return f, false
	}
	f.sum = [32]byte(sum)
	return f, f.Name() == name
}

func SnapshotsOf(kept driver.Realm, realm string) *Snapshots {
	return &Snapshots{log: kept, realm: realm}
}

// Newest returns the newest snapshot that is intact as far as is known, or false.
func (s *Snapshots) Newest() (Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.newest) == 0 {
		return Snapshot{}, false
	}
	return s.newest[len(s.newest)-1], true
}

// SeriesBytes returns the size of the newest snapshot and of those that it builds on.
func (s *Snapshots) SeriesBytes() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.newest {
		n += uint64(s.newest[i].Bytes)
	}
	return n
}

// Whole reports whether the next snapshot holds the whole state: it has nothing to build on, or too much.
func (s *Snapshots) Whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		return true
	}
	var sum int64
	for i := len(s.newest) - 1; i >= 0; i-- {
		f := &s.newest[i]
		if f.Base == 0 {
			return sum > f.Bytes || len(s.newest)-i > maxSnapshotSeries
		}
		sum += f.Bytes
	}
	return true
}

const maxSnapshotSeries = 16 // that build on one another: recovery needs all of them intact

// Forget forgets the series: others write and remove snapshots, too. The next one begins a series.
func (s *Snapshots) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.before, s.fresh = nil, nil, true
}

func (s *Snapshots) BeginSeries() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = true
}

func (s *Snapshots) add(f Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Base == 0 {
		s.before, s.newest, s.fresh = s.newest, nil, false
	}
	s.newest = append(s.newest, f)
}

// Footer is the last frame of a snapshot: what recovery needs to continue from its position.
type Footer struct {
	At
	Values uint64 // drawn from the current epoch's source so far
	Last   int64  // the last time in the log: a batch's, what it set the clock back to, or an epoch's
	Epochs []Epoch
	Rules  uint8 // the version of the rules that decides the current epoch; 0: the format does not say
}

// Agrees reports whether a place in a log that goes on to last is the footer's. Of a log that many write,
// the footer may name a later copy of the entry. driver.ErrUnavailable: that copy cannot be seen yet.
func (s *Footer) Agrees(ctx context.Context, log driver.Log, last driver.Cursor, at *At) (bool, error) {
	got, want := s.At, *at
	if got.cursor > want.cursor {
		copied, err := s.copied(ctx, log, last)
		if err != nil {
			return false, err
		}
		if copied {
			got.cursor = want.cursor
		}
	}
	if got.chain.ahead <= got.chain.index { // it says nothing then, and a writer does not see what others append
		got.chain.ahead = want.chain.ahead
	}
	return got == want, nil
}

// copied reports whether the footer's entry stands at its cursor.
func (s *Footer) copied(ctx context.Context, log driver.Log, last driver.Cursor) (bool, error) {
	if _, sole := log.(driver.Sole); sole && s.cursor > last {
		return false, nil
	}
	if s.cursor > last {
		return false, fmt.Errorf("the log does not show cursor %d yet: %w", s.cursor, driver.ErrUnavailable)
	}
	for e, err := range log.Read(ctx, s.cursor-1, s.cursor) {
		return e.Cursor == s.cursor && sha256.Sum256(e.Data) == s.chain.entry, err
	}
	return false, nil
}

// footerHead begins a footer. The epochs follow, then the SHA-256 of the file before the footer.
type footerHead struct {
	Index, Cursor, Epoch, Ahead, Values uint64
	Last                                int64
	Writer                              [16]byte
	Hash, Entry                         [32]byte
	Ended                               bool
	Rules                               uint8
	Epochs                              uint32
}

func (s *Footer) append(b []byte, digest [32]byte, version uint8) []byte {
	c := &s.chain
	head := footerHead{
		Index: c.index, Cursor: uint64(s.cursor), Epoch: c.epoch, Ahead: c.ahead, Values: s.Values, Last: s.Last,
		Writer: c.writer, Hash: c.hash, Entry: c.entry, Ended: c.ended, Rules: s.Rules, Epochs: uint32(len(s.Epochs)),
	}
	if c.ahead <= c.index { // it says nothing
		head.Ahead = 0
	}
	start := len(b)
	b = encode(b, head)
	if version <= 6 {
		b = slices.Delete(b, start+footerRules, start+footerRules+1)
	}
	return append(encode(b, s.Epochs), digest[:]...)
}

const footerRules = 6*8 + 16 + 32 + 32 + 1 // where the version of the rules stands

var footerSize, epochSize = binary.Size(footerHead{}), binary.Size(Epoch{})

func decodeFooter(b []byte, realm string) (s Footer, digest [32]byte, err error) {
	var h footerHead
	if len(b) < footerSize+32 {
		return s, digest, fmt.Errorf("footer of %d bytes, want at least %d", len(b), footerSize+32)
	}
	epochs, digest := b[footerSize:len(b)-32], [32]byte(b[len(b)-32:])
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return s, digest, err
	}
	if want := int64(footerSize) + int64(h.Epochs)*int64(epochSize) + 32; int64(len(b)) != want {
		return s, digest, fmt.Errorf("footer of %d bytes with %d epochs, want %d", len(b), h.Epochs, want)
	}
	s = Footer{
		At: At{
			chain: chain{
				realm: realm, index: h.Index, epoch: h.Epoch, ahead: h.Ahead,
				writer: h.Writer, hash: h.Hash, entry: h.Entry, ended: h.Ended,
			},
			cursor: driver.Cursor(h.Cursor),
		},
		Values: h.Values, Last: h.Last, Rules: h.Rules, Epochs: make([]Epoch, h.Epochs),
	}
	if _, err := binary.Decode(epochs, binary.LittleEndian, s.Epochs); err != nil {
		return s, digest, err
	}
	if err := s.check(); err != nil {
		return s, digest, err
	}
	if !bytes.Equal(b, s.append(nil, digest, format.Snapshot(format.Newest))) {
		return s, digest, errors.New("a flag of the footer is neither 0 nor 1")
	}
	return s, digest, nil
}

// check reports epochs that cannot be those of a log up to the footer: the last one is in force there.
func (s *Footer) check() error {
	switch c := &s.chain; {
	case s.Last < 0 || s.Last > MaxTime:
		return fmt.Errorf("the last time is %d, want Unix milliseconds, at most %d", s.Last, int64(MaxTime))
	case c.ahead > 0 && c.ahead <= c.index:
		return fmt.Errorf("a void entry at position %d of %d, want 0 or a later one", c.ahead, c.index)
	}
	for i, e := range s.Epochs {
		if e.First > s.chain.index || i > 0 && (e.First <= s.Epochs[i-1].First || e.Number <= s.Epochs[i-1].Number) {
			return fmt.Errorf("epoch %d, which began at position %d, is out of order", e.Number, e.First)
		}
	}
	if n := len(s.Epochs); n == 0 || s.Epochs[n-1].Number != s.chain.epoch {
		return fmt.Errorf("epoch %d, the one in force, is not the last of the %d in the footer", s.chain.epoch, n)
	}
	return nil
}

type Writer struct {
	s      *Snapshots
	out    driver.FileWriter
	base   uint64
	level  format.Level
	buf    []byte
	size   int64 // of what was written, without buf
	frames uint64
	digest hash.Hash
}

// Create begins a snapshot of a realm of a format level. It builds on the newest one, unless whole.
func (s *Snapshots) Create(ctx context.Context, whole bool, level format.Level) (*Writer, error) {
	out, err := s.log.Create(ctx)
	if err != nil {
		return nil, err
	}
	w := &Writer{s: s, out: out, level: level, digest: sha256.New()}
	var on [32]byte
	if base, ok := s.Newest(); ok && !whole {
		w.base, on = base.Position, base.digest
	}
	head := append(bytes.Clone(snapshotMagic), format.Snapshot(level), byte(len(s.realm)))
	head = append(head, s.realm...)
	return w, w.Frame(frameHeader, append(head, on[:]...))
}

func (w *Writer) Frame(kind byte, data []byte) error {
	start := len(w.buf)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(data)))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, frameSum(kind, w.frames, data))
	w.buf = append(append(w.buf, kind), data...)
	w.frames++
	w.digest.Write(w.buf[start:]) // never fails: hash.Hash
	if len(w.buf) < snapshotWrite {
		return nil
	}
	return w.flush()
}

const snapshotWrite = 1 << 20 // bytes of a snapshot that are written at a time

func frameSum(kind byte, number uint64, data []byte) uint32 {
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], number)
	head[8] = kind
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, data)
}

func (w *Writer) flush() error {
	_, err := w.out.Write(w.buf)
	w.size += int64(len(w.buf))
	w.buf = w.buf[:0]
	return err
}

// Finish writes the footer and names the file, durably. The log must be durable up to the position.
func (w *Writer) Finish(ctx context.Context, s *Footer) (Snapshot, error) {
	f := Snapshot{Position: s.chain.index, Base: w.base, cursor: s.cursor, digest: [32]byte(w.digest.Sum(nil)), read: true}
	err := w.Frame(frameFooter, s.append(nil, f.digest, format.Snapshot(w.level)))
	if err == nil {
		err = w.flush()
	}
	f.sum, f.Bytes = [32]byte(w.digest.Sum(nil)), w.size
	if err == nil {
		err = w.out.Commit(ctx, f.Name())
	}
	if err == nil {
		w.s.add(f)
	}
	return f, err
}

// Abort drops the file, unless it is finished.
func (w *Writer) Abort() { w.out.Abort() }

// List returns the snapshots by their files' names, ascending. strays are names that Kuji never gives.
func (s *Snapshots) List(ctx context.Context) (files []Snapshot, strays []string, err error) {
	all, err := s.log.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range all { // sorted, and so by position
		if f, ok := parseSnapshotName(info.Name); ok {
			files = append(files, f)
		} else if _, ok := payloadPosition(info.Name); !ok {
			strays = append(strays, info.Name)
		}
	}
	return files, strays, nil
}

// SeriesOf returns the snapshots to load for f, in order; false if one is missing. Of equal positions, the
// first.
func SeriesOf(files []Snapshot, f Snapshot) ([]Snapshot, bool) {
	var series []Snapshot
	for {
		if f.Base >= f.Position {
			return nil, false
		}
		series = append(series, f)
		if f.Base == 0 {
			slices.Reverse(series)
			return series, true
		}
		i := slices.IndexFunc(files, func(base Snapshot) bool { return base.Position == f.Base })
		if i < 0 {
			return nil, false
		}
		f = files[i]
	}
}

// Loader takes the blocks of a series of snapshots.
type Loader interface {
	Block(kind byte, data []byte) error
	Loaded() error // at the end of each snapshot
}

type SnapshotError struct {
	Name string
	Err  error
}

func (e *SnapshotError) Error() string { return "snapshot " + e.Name + ": " + e.Err.Error() }
func (e *SnapshotError) Unwrap() error { return e.Err }

// Load loads one of the files and those that it builds on, and completes what is known of them.
func (s *Snapshots) Load(ctx context.Context, files []Snapshot, f Snapshot, loader Loader) (footer Footer, series []Snapshot, err error) {
	series, ok := SeriesOf(files, f)
	if !ok {
		return footer, nil, &SnapshotError{f.Name(), errors.New("the snapshot that it builds on is missing")}
	}
	for i := range series {
		if footer, err = s.loadFile(ctx, series, i, loader); err != nil {
			return footer, nil, err
		}
	}
	return footer, series, nil
}

// LoadNewest loads the newest intact snapshot that the log goes back to; footer is nil if there is none.
// damaged says what is wrong with newer ones. newLoader is called for each attempt.
func (s *Snapshots) LoadNewest(ctx context.Context, newLoader func() Loader) (footer *Footer, damaged, err error) {
	files, _, err := s.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	first, err := s.log.First(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, f := range slices.Backward(files) {
		footer, series, err := s.Load(ctx, files, f, newLoader())
		if err == nil && footer.cursor < first {
			err = &SnapshotError{f.Name(), fmt.Errorf("it ends at cursor %d, before the log begins", footer.cursor)}
		}
		_, newer := errors.AsType[*format.NewerError](err)
		if newer || errors.Is(err, driver.ErrUnavailable) || err != nil && ctx.Err() != nil { // nothing is wrong with the file
			return nil, nil, err
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		s.newest, s.fresh = series, len(errs) > 0 // a series is damaged: the next snapshot begins another
		s.mu.Unlock()
		return &footer, errors.Join(errs...), nil
	}
	return nil, errors.Join(errs...), nil
}

// loadFile loads number i of a series, after those before it, and completes what is known of it.
func (s *Snapshots) loadFile(ctx context.Context, series []Snapshot, i int, loader Loader) (footer Footer, err error) {
	f := &series[i]
	defer func() {
		if err != nil {
			err = &SnapshotError{f.Name(), err}
		}
	}()
	var base [32]byte
	if i > 0 {
		base = series[i-1].digest
	}
	file, err := s.log.OpenFile(ctx, f.Name())
	if err != nil {
		return footer, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	f.Bytes = file.Size()
	if footer, err = readBlocks(ctx, file, s.realm, base, f, loader); err != nil {
		return footer, err
	}
	return footer, loader.Loaded()
}

func readBlocks(ctx context.Context, file driver.File, realm string, base [32]byte, f *Snapshot, loader Loader) (s Footer, err error) {
	ended, version := false, byte(0)
	for fr, err := range readFrames(file, f.Bytes) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return s, err
		}
		switch {
		case ended:
			return s, fmt.Errorf("byte %d: a frame after the footer", fr.at)
		case (fr.number == 0) != (fr.kind == frameHeader):
			return s, fmt.Errorf("byte %d: frame %d of kind %d", fr.at, fr.number, fr.kind)
		case fr.kind == frameHeader:
			version, err = checkSnapshotHeader(fr.data, realm, base)
		case fr.kind == frameFooter:
			var digest [32]byte
			s, digest, err = decodeFooter(footerOf(version, fr.data), realm)
			if err == nil && (digest != fr.before || s.chain.index != f.Position) {
				err = errors.New("the footer is not that of this file")
			}
			f.digest, f.cursor, f.read, ended = digest, s.cursor, true, true
		default:
			err = loader.Block(fr.kind, fr.data)
		}
		if err != nil {
			return s, fmt.Errorf("byte %d: %w", fr.at, err)
		}
	}
	if !ended {
		return s, fmt.Errorf("byte %d: the file ends before its footer", f.Bytes)
	}
	return s, nil
}

// checkSnapshotHeader returns the format's version. A newer one than this build's is a *format.NewerError.
func checkSnapshotHeader(b []byte, realm string, base [32]byte) (version byte, err error) {
	if len(b) < 5 || !bytes.Equal(b[:4], snapshotMagic) {
		return 0, errors.New("not a snapshot of Kuji")
	}
	version = b[4]
	if err := format.Newer("snapshot", uint64(version), uint64(format.Snapshot(format.Newest))); err != nil {
		return version, err
	}
	want := append(bytes.Clone(snapshotMagic), version, byte(len(realm)))
	want = append(want, realm...)
	switch {
	case version < snapshotOldest:
		return version, fmt.Errorf("version %d of the format; the oldest that was ever released is %d", version, snapshotOldest)
	case len(b) != len(want)+32 || !bytes.Equal(b[:len(want)], want):
		return version, fmt.Errorf("not a snapshot of realm %q", realm)
	case [32]byte(b[len(want):]) != base:
		return version, errors.New("it builds on a snapshot other than the one before it")
	}
	return version, nil
}

const snapshotOldest = 6 // version of the format that is read

type frame struct {
	at     int64 // in the file
	number uint64
	kind   byte
	data   []byte   // valid until the next iteration
	before [32]byte // of a footer: SHA-256 of the file before it
}

func readFrames(file driver.File, size int64) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		in := io.NewSectionReader(file, 0, size)
		digest := sha256.New()
		for fr := (frame{}); fr.at < size; fr.number++ {
			if err := fr.read(in, size, digest); err != nil {
				yield(fr, fmt.Errorf("byte %d: frame %d: %w", fr.at, fr.number, err))
				return
			}
			if !yield(fr, nil) {
				return
			}
			fr.at += frameHead + int64(len(fr.data))
		}
	}
}

// read reads the next frame, and adds it to the digest of the file.
func (fr *frame) read(in io.Reader, size int64, digest hash.Hash) error {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if left := size - fr.at - frameHead; n > maxFrame || n > left {
		return fmt.Errorf("%d bytes announced, but %d left", n, left)
	}
	fr.data = slices.Grow(fr.data[:0], int(n))[:n]
	if _, err := io.ReadFull(in, fr.data); err != nil {
		return err
	}
	fr.kind = head[8]
	if got, want := frameSum(fr.kind, fr.number, fr.data), binary.LittleEndian.Uint32(head[4:]); got != want {
		return fmt.Errorf("checksum %08x, the frame says %08x", got, want)
	}
	if fr.kind == frameFooter {
		fr.before = [32]byte(digest.Sum(nil))
	}
	digest.Write(head[:]) // never fails: hash.Hash
	digest.Write(fr.data)
	return nil
}
