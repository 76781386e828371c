package jetstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
)

// A file is a message for each chunk,
//
//	kuji.CLUSTER.file.REALM.chunk.UPLOAD.NUMBER
//
// and one message that names them, its directory, which makes it visible:
//
//	kuji.CLUSTER.file.REALM.name.NAME.SIZE
//
// The directory has the SHA-256 of every chunk, and readers check it. NAME has '=' for each dot. A
// name has one size, since it has one content.

// files implements [driver.Files] for a realm.
type files struct {
	*handle
	msgs  jetstream.Stream
	swept atomic.Bool // sweep has run
}

// directory is what names a file's chunks.
type directory struct {
	Upload string `json:"upload"`
	Chunk  int    `json:"chunk"` // bytes in each chunk but the last
	Sums   []byte `json:"sums"`  // SHA-256 of each chunk
	seq    uint64 // of its message
	size   int64
}

const (
	maxChunk  = 512 << 10      // bytes. A file that is open for reading or writing has one chunk in memory
	maxUpload = time.Hour      // how long a file may take to be written
	abandoned = 24 * time.Hour // the age of chunks that no writer can still be writing, whatever the clocks say
)

func (s *files) chunkSubject(upload, number string) string {
	return s.fileSubject(s.name) + ".chunk." + upload + "." + number
}

func (s *files) nameSubject(name, size string) string {
	return s.fileSubject(s.name) + ".name." + strings.ReplaceAll(name, ".", "=") + "." + size
}

// subjects returns the subjects of the files' stream that match a filter. It first sends a message,
// and accepts only a state that has it: a replica without a leader answers with an old one.
func (s *files) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	var found map[string]uint64
	err := s.try(ctx, s.life, func(ctx context.Context) error {
		ack, err := s.js.Publish(ctx, s.fileSubject(s.name)+".barrier", nil, jetstream.WithRetryAttempts(0))
		if err != nil {
			return err
		}
		info, err := s.msgs.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return err
		}
		if info.State.LastSeq < ack.Sequence {
			return errors.New("the state of the files is old")
		}
		found = info.State.Subjects
		return nil
	})
	return found, err
}

// file returns the name and the size in a directory's subject.
func (s *files) file(subject string) (driver.FileInfo, bool) {
	rest, ok := strings.CutPrefix(subject, s.fileSubject(s.name)+".name.")
	name, digits, cut := strings.Cut(rest, ".")
	size, err := strconv.ParseInt(digits, 10, 64)
	return driver.FileInfo{Name: strings.ReplaceAll(name, "=", "."), Size: size}, ok && cut && err == nil
}

func (s *files) List(ctx context.Context) ([]driver.FileInfo, error) {
	subjects, err := s.subjects(ctx, s.nameSubject("*", "*"))
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	var list []driver.FileInfo
	for subject := range subjects {
		info, ok := s.file(subject)
		if !ok {
			return nil, &driver.CorruptError{Place: "stream " + s.fileStream(s.name), Err: fmt.Errorf("subject %q is no file's", subject)}
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b driver.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// lookup returns a file's directory.
func (s *files) lookup(ctx context.Context, name string) (*directory, error) {
	if err := driver.CheckFile(name); err != nil {
		return nil, err
	}
	subjects, err := s.subjects(ctx, s.nameSubject(name, "*"))
	if err != nil {
		return nil, err
	}
	for subject := range subjects {
		return s.directory(ctx, subject)
	}
	return nil, driver.ErrNotExist
}

// directory reads the directory of a subject.
func (s *files) directory(ctx context.Context, subject string) (*directory, error) {
	info, ok := s.file(subject)
	msg, err := s.message(ctx, subject)
	if err != nil {
		return nil, err
	}
	d := &directory{seq: msg.Sequence, size: info.Size}
	err = json.Unmarshal(msg.Data, d)
	if err == nil && (!ok || msg.Header.Get(sumHeader) != sum(msg.Data) || d.Upload == "" || d.Chunk <= 0 || d.chunks()*sha256.Size != len(d.Sums)) {
		err = errors.New("the directory of its chunks is damaged")
	}
	if err != nil {
		return nil, &driver.CorruptError{Place: fmt.Sprintf("stream %s, message %d, of file %q", s.fileStream(s.name), msg.Sequence, info.Name), Err: err}
	}
	return d, nil
}

// message returns the message of a subject. ErrNotExist: there is none, or it was removed meanwhile.
func (s *files) message(ctx context.Context, subject string) (msg *jetstream.RawStreamMsg, err error) {
	err = s.try(ctx, s.life, func(ctx context.Context) (err error) {
		msg, err = s.msgs.GetLastMsgForSubject(ctx, subject)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = driver.ErrNotExist
	}
	return msg, err
}

// chunks returns the number of chunks.
func (d *directory) chunks() int { return int((d.size + int64(d.Chunk) - 1) / int64(d.Chunk)) }

func (s *files) OpenFile(ctx context.Context, name string) (driver.File, error) {
	d, err := s.lookup(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open file %q: %w", name, err)
	}
	return &file{files: s, name: name, directory: d, at: -1}, nil
}

// file implements [driver.File].
type file struct {
	*files
	name string
	*directory

	mu   sync.Mutex
	at   int    // the number of the chunk in memory; -1: none
	data []byte // of that chunk
}

func (f *file) Size() int64  { return f.size }
func (f *file) Close() error { return nil }

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read file %q at %d: want at least 0", f.name, off)
	}
	for n < len(p) && off < f.size {
		took, err := f.readChunk(p[n:], int(off/int64(f.Chunk)), int(off%int64(f.Chunk)))
		n += took
		off += int64(took)
		if err != nil {
			return n, fmt.Errorf("read file %q: %w", f.name, err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readChunk copies from one chunk.
func (f *file) readChunk(p []byte, number, from int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != number {
		msg, err := f.message(f.life, f.chunkSubject(f.Upload, strconv.Itoa(number)))
		if err != nil {
			return 0, fmt.Errorf("chunk %d: %w", number, err)
		}
		want := f.Sums[number*sha256.Size:][:sha256.Size]
		if got := sha256.Sum256(msg.Data); !bytes.Equal(got[:], want) || len(msg.Data) != int(min(int64(f.Chunk), f.size-int64(number)*int64(f.Chunk))) {
			return 0, &driver.CorruptError{
				Place: fmt.Sprintf("stream %s, message %d, chunk %d of file %q", f.fileStream(f.files.name), msg.Sequence, number, f.name),
				Err:   fmt.Errorf("SHA-256 %x, want %x", got, want),
			}
		}
		f.at, f.data = number, msg.Data
	}
	return copy(p, f.data[from:]), nil
}

func (s *files) Create(ctx context.Context) (driver.FileWriter, error) {
	if err := s.mayWrite(); err != nil {
		return nil, err
	}
	if !s.swept.Load() {
		if err := s.sweep(ctx); err != nil {
			return nil, fmt.Errorf("look for abandoned files: %w", err)
		}
		s.swept.Store(true)
	}
	now := time.Now()
	var random [16]byte
	rand.Read(random[:])
	return &fileWriter{
		files: s,
		dir:   directory{Upload: fmt.Sprintf("%x-%x", now.Unix(), random), Chunk: min(maxChunk, s.maxEntry)},
		begun: now,
	}, nil
}

// fileWriter implements [driver.FileWriter].
type fileWriter struct {
	*files
	dir   directory
	begun time.Time
	chunk []byte // not yet sent
	tried bool   // Commit sent the directory: the file may be there
	over  bool   // committed or aborted
}

func (w *fileWriter) Write(p []byte) (n int, err error) {
	if w.over {
		return 0, driver.ErrClosed
	}
	for n < len(p) {
		took := min(len(p)-n, w.dir.Chunk-len(w.chunk))
		w.chunk = append(w.chunk, p[n:n+took]...)
		n += took
		if len(w.chunk) == w.dir.Chunk {
			if err := w.flush(w.life); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush sends the chunk. If it arrives twice, the second replaces the first.
func (w *fileWriter) flush(ctx context.Context) error {
	if time.Since(w.begun) > maxUpload {
		return fmt.Errorf("the file takes more than %v to be written", maxUpload)
	}
	hash := sha256.Sum256(w.chunk)
	if len(w.dir.Sums)*4/3+1024 > w.maxEntry {
		return fmt.Errorf("%w: a file has at most %d bytes here", driver.ErrFull, w.dir.size)
	}
	subject := w.chunkSubject(w.dir.Upload, strconv.Itoa(len(w.dir.Sums)/sha256.Size))
	err := w.write(ctx, func(ctx context.Context) error {
		_, err := w.js.Publish(ctx, subject, w.chunk, jetstream.WithRetryAttempts(0))
		return err
	})
	if err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	w.dir.Sums = append(w.dir.Sums, hash[:]...)
	w.dir.size += int64(len(w.chunk))
	w.chunk = w.chunk[:0]
	return nil
}

func (w *fileWriter) Commit(ctx context.Context, name string) error {
	if w.over {
		return driver.ErrClosed
	}
	if err := driver.CheckFile(name); err != nil {
		return err
	}
	if len(w.chunk) > 0 {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	data, err := json.Marshal(&w.dir)
	if err != nil {
		return err
	}
	msg := summed(w.nameSubject(name, strconv.FormatInt(w.dir.size, 10)), data)
	mine := true
	w.tried = true
	err = w.write(ctx, func(ctx context.Context) error {
		_, err := w.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
		if code := codeOf(err); code != codeWrongLast && code != codeWrongLastConstant {
			return err
		}
		// It is there, or on its way and may get lost. Only one that is there counts.
		there, lookErr := w.msgs.GetLastMsgForSubject(ctx, msg.Subject)
		if lookErr != nil {
			return err
		}
		var d directory
		mine = json.Unmarshal(there.Data, &d) == nil && d.Upload == w.dir.Upload
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit file %q: %w", name, err) // it may be there: its chunks must stay
	}
	w.over, w.chunk = true, nil
	if !mine {
		return w.dropChunks(ctx, w.dir.Upload)
	}
	return nil
}

// Abort implements [driver.FileWriter]. After a failed Commit it drops nothing: the file may be there.
func (w *fileWriter) Abort() {
	if w.over {
		return
	}
	w.over, w.chunk = true, nil
	if len(w.dir.Sums) > 0 && !w.tried {
		// If this fails, a later sweep drops the chunks.
		_ = w.dropChunks(w.life, w.dir.Upload)
	}
}

func (s *files) dropChunks(ctx context.Context, upload string) error {
	return s.write(ctx, func(ctx context.Context) error {
		return s.msgs.Purge(ctx, jetstream.WithPurgeSubject(s.chunkSubject(upload, ">")))
	})
}

func (s *files) Remove(ctx context.Context, name string) error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	d, err := s.lookup(ctx, name)
	if errors.Is(err, driver.ErrNotExist) {
		return nil
	}
	if err == nil {
		// By its sequence: a late request cannot remove a newer file of that name.
		err = s.write(ctx, func(ctx context.Context) error { return s.msgs.DeleteMsg(ctx, d.seq) })
		if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) || codeOf(err) == codeNoSequence {
			err = s.dropChunks(ctx, d.Upload)
		}
	}
	if err != nil {
		return fmt.Errorf("remove file %q: %w", name, err)
	}
	return nil
}

// sweep drops the chunks of writers that died before they sent the directory.
func (s *files) sweep(ctx context.Context) error {
	chunks, err := s.subjects(ctx, s.chunkSubject("*", "0"))
	if err != nil {
		return err
	}
	old := map[string]bool{}
	for subject := range chunks {
		upload := strings.TrimSuffix(strings.TrimPrefix(subject, s.fileSubject(s.name)+".chunk."), ".0")
		begun, _, _ := strings.Cut(upload, "-")
		if seconds, err := strconv.ParseInt(begun, 16, 64); err == nil && time.Since(time.Unix(seconds, 0)) > abandoned {
			old[upload] = true
		}
	}
	if len(old) == 0 {
		return nil
	}
	names, err := s.subjects(ctx, s.nameSubject("*", "*"))
	if err != nil {
		return err
	}
	for subject := range names {
		d, err := s.directory(ctx, subject)
		if errors.Is(err, driver.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		delete(old, d.Upload)
	}
	for upload := range old {
		if err := s.dropChunks(ctx, upload); err != nil {
			return err
		}
	}
	return nil
}
