package peers

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleRecordLog is the writer below pebble's WAL, set up as pebble does.
type pebbleRecordLog struct {
	mu      sync.Mutex // a LogWriter has one writer at a time
	w       *record.LogWriter
	written *countedFile
	slots   chan struct{} // keeps its queue of syncs from overflowing
	durable bool
}

const pebbleLogNum = 1

func pebbleLogName(dir string) string { return filepath.Join(dir, "000001.log") }

func openPebbleRecord(dir string, durable bool) (appender, error) {
	if err := mkdir(dir); err != nil {
		return nil, err
	}
	f, err := vfs.Default.Create(pebbleLogName(dir), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	written := &countedFile{File: f}
	f = vfs.NewSyncingFile(written, vfs.SyncingFileOptions{NoSyncOnClose: true, PreallocateSize: 64 << 20})
	slots := make(chan struct{}, record.SyncConcurrency)
	w := record.NewLogWriter(f, pebbleLogNum, record.LogWriterConfig{
		WALMinSyncInterval:  func() time.Duration { return 0 },
		QueueSemChan:        slots,
		WriteWALSyncOffsets: func() bool { return false },
	})
	return &pebbleRecordLog{w: w, written: written, slots: slots, durable: durable}, nil
}

// countedFile knows how much was written to it.
type countedFile struct {
	vfs.File
	bytes atomic.Int64
}

func (f *countedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.bytes.Add(int64(n))
	return n, err
}

// waiter is what a goroutine needs to wait for a sync.
type waiter struct {
	wg  sync.WaitGroup
	err error
}

var waiters = sync.Pool{New: func() any { return new(waiter) }}

func (l *pebbleRecordLog) Append(rec []byte) error {
	if l.durable {
		return l.appendSync(rec)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.WriteRecord(rec)
	return err
}

func (l *pebbleRecordLog) appendSync(rec []byte) error {
	s := waiters.Get().(*waiter)
	defer waiters.Put(s)
	s.err = nil
	s.wg.Add(1)
	l.slots <- struct{}{}
	l.mu.Lock()
	_, err := l.w.SyncRecord(rec, &s.wg, &s.err)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	s.wg.Wait()
	return s.err
}

// pebbleBlock is what the writer hands over to its flusher.
const pebbleBlock = 32 << 10

// Flush waits for the flusher, whose queue of full blocks has no bound. It has
// no call for that.
func (l *pebbleRecordLog) Flush() error {
	for l.w.Size()-l.written.bytes.Load() > pebbleBlock {
		time.Sleep(10 * time.Microsecond)
	}
	return nil
}

// Sync appends an empty record and waits for it: there is no other way.
func (l *pebbleRecordLog) Sync() error { return l.appendSync(nil) }

// Close closes the file, too.
func (l *pebbleRecordLog) Close() error { return l.w.Close() }

type pebbleRecordSource struct{ name string }

func (pebbleRecordSource) Read(int, []byte) ([]byte, error) { return nil, errUnsupported }
func (pebbleRecordSource) Close() error                     { return nil }

func (s pebbleRecordSource) Scan(f func(rec []byte) bool) error {
	file, err := vfs.Default.Open(s.name, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	r := record.NewReader(file, pebbleLogNum)
	var buf bytes.Buffer
	for {
		next, err := r.Next()
		if err == nil {
			buf.Reset()
			_, err = io.Copy(&buf, next)
		}
		if err != nil {
			if err == io.EOF || record.IsInvalidRecord(err) { // the end, torn or not
				err = nil
			}
			return errors.Join(err, file.Close())
		}
		if buf.Len() > 0 && !f(buf.Bytes()) {
			return file.Close()
		}
	}
}

var pebbleRecord = contestant{
	name:     "pebble-record",
	buffered: func(dir string) (appender, error) { return openPebbleRecord(dir, false) },
	durable:  func(dir string) (appender, error) { return openPebbleRecord(dir, true) },
	source:   func(dir string) (source, error) { return pebbleRecordSource{pebbleLogName(dir)}, nil },
}

// pebbleLog is a whole pebble, through its batches and commit pipeline.
// LogData goes to the log alone and to no table: the log's price.
type pebbleLog struct {
	db   *pebble.DB
	sync *pebble.WriteOptions
}

// quietLogger drops what pebble tells of its background work, and panics as
// its own logger does.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, _ ...any) {
	panic(format)
}

func openPebble(dir string, sync *pebble.WriteOptions) (pebbleLog, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: quietLogger{}, FormatMajorVersion: pebble.FormatNewest})
	return pebbleLog{db, sync}, err
}

func (l pebbleLog) Append(rec []byte) error { return l.db.LogData(rec, l.sync) }
func (l pebbleLog) Sync() error             { return l.db.LogData(nil, pebble.Sync) }
func (l pebbleLog) Close() error            { return l.db.Close() }

var pebbleDB = contestant{
	name:     "pebble-batch",
	buffered: func(dir string) (appender, error) { return openPebble(dir, pebble.NoSync) },
	durable:  func(dir string) (appender, error) { return openPebble(dir, pebble.Sync) },
	reopen: func(dir string) (int, appender, error) {
		l, err := openPebble(dir, pebble.NoSync)
		return -1, l, err
	},
}
