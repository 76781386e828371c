package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// A file is a row of table files, and a row of table chunks for each chunk. It gets its name last, by a
// statement that counts its chunks. A file that is removed first loses its name. Whatever has none for a
// day is dropped when the realm is next opened.

const (
	chunkSize  = 256 << 10 // bytes: a file that is open for reading or writing has one chunk in memory
	dropChunks = 64        // how many one statement deletes
)

// errChunks is in the error of a file whose chunks are not there any more.
var errChunks = errors.New("parts of it are not there any more: write it again")

// files implements [driver.Files] for a realm.
type files struct {
	*handle
}

func (s *files) List(ctx context.Context) (list []driver.FileInfo, err error) {
	err = s.do(ctx, s.life, "list the files", func(ctx context.Context, c *conn) error {
		rows, err := c.query(ctx, `SELECT name, size FROM $.files WHERE realm = $1::int AND name IS NOT NULL ORDER BY name COLLATE "C"`, s.id)
		if err == nil {
			list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[driver.FileInfo])
		}
		return err
	})
	return list, err
}

func (s *files) OpenFile(ctx context.Context, name string) (driver.File, error) {
	if err := driver.CheckFile(name); err != nil {
		return nil, err
	}
	f := &file{files: s, name: name, at: -1}
	err := s.do(ctx, s.life, fmt.Sprintf("open file %q", name), func(ctx context.Context, c *conn) error {
		err := c.row(ctx, `SELECT id, size, chunk FROM $.files WHERE realm = $1::int AND name = $2::text`, s.handle.id, name).Scan(&f.id, &f.size, &f.chunk)
		if errors.Is(err, pgx.ErrNoRows) {
			err = driver.ErrNotExist
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// file implements [driver.File].
type file struct {
	*files
	name  string
	id    int64
	size  int64
	chunk int32 // bytes in each chunk but the last

	reading sync.Mutex // guards what follows
	at      int64      // the number of the chunk in memory; -1: none
	data    []byte     // of that chunk
}

func (f *file) Size() int64  { return f.size }
func (f *file) Close() error { return nil }

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read file %q at %d: want at least 0", f.name, off)
	}
	for n < len(p) && off < f.size {
		took, err := f.readChunk(p[n:], off/int64(f.chunk), int(off%int64(f.chunk)))
		n += took
		off += int64(took)
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readChunk copies from one chunk.
func (f *file) readChunk(p []byte, number int64, from int) (int, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.at != number {
		data, err := f.load(number)
		if err != nil {
			return 0, err
		}
		f.at, f.data = number, data
	}
	return copy(p, f.data[from:]), nil
}

// load reads a chunk and checks it.
func (f *file) load(number int64) (data []byte, err error) {
	err = f.do(f.life, f.life, fmt.Sprintf("read file %q", f.name), func(ctx context.Context, c *conn) error {
		var named bool
		var sum *int32
		err := c.row(ctx, `SELECT f.name IS NOT NULL, c.sum, c.data FROM $.files f
			LEFT JOIN $.chunks c ON c.file = f.id AND c.n = $2::int WHERE f.id = $1::bigint`, f.id, int32(number)).Scan(&named, &sum, &data)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("it was removed: %w", driver.ErrNotExist)
		case err != nil && !isA[*driver.CorruptError](known(err)):
			return err
		case err != nil:
		case sum == nil && !named:
			return fmt.Errorf("it was removed: %w", driver.ErrNotExist)
		case sum == nil:
			err = errors.New("it is not there")
		case *sum != sumOf(data):
			err = fmt.Errorf("CRC32C %08x, want %08x", uint32(sumOf(data)), uint32(*sum))
		case len(data) != int(min(int64(f.chunk), f.size-number*int64(f.chunk))):
			err = fmt.Errorf("it has %d bytes, and the file %d in chunks of %d", len(data), f.size, f.chunk)
		}
		if err != nil {
			return &driver.CorruptError{Place: fmt.Sprintf("realm %s: chunk %d of file %q in %s.chunks", f.handle.name, number, f.name, f.config.schema), Err: err}
		}
		return nil
	})
	return data, err
}

func (s *files) Create(ctx context.Context) (driver.FileWriter, error) {
	var random [8]byte
	rand.Read(random[:])
	w := &fileWriter{files: s, id: int64(binary.BigEndian.Uint64(random[:]) >> 1)}
	err := s.write(ctx, "create a file", func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, `INSERT INTO $.files (id, realm, chunk, begun) VALUES ($1::bigint, $2::int, $3::int, now()) ON CONFLICT DO NOTHING`,
			w.id, s.handle.id, int32(chunkSize))
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// fileWriter implements [driver.FileWriter].
type fileWriter struct {
	*files
	id     int64
	size   int64
	chunks int32
	rest   []byte // of the chunk that is not yet full
	tried  bool   // Commit gave the name: the file may be there
	over   bool   // committed or aborted
}

func (w *fileWriter) Write(p []byte) (n int, err error) {
	if w.over {
		return 0, driver.ErrClosed
	}
	for n < len(p) {
		took := min(len(p)-n, chunkSize-len(w.rest))
		w.rest = append(w.rest, p[n:n+took]...)
		n += took
		if len(w.rest) == chunkSize {
			if err := w.flush(w.life); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush inserts the chunk.
func (w *fileWriter) flush(ctx context.Context) error {
	err := w.write(ctx, "write a file", func(ctx context.Context, c *conn) error {
		_, err := c.exec(ctx, `INSERT INTO $.chunks (file, n, sum, data) VALUES ($1::bigint, $2::int, $3::int, $4::bytea) ON CONFLICT DO NOTHING`,
			w.id, w.chunks, sumOf(w.rest), w.rest)
		return err
	})
	if err != nil {
		return err
	}
	w.chunks++
	w.size += int64(len(w.rest))
	w.rest = w.rest[:0]
	return nil
}

func (w *fileWriter) Commit(ctx context.Context, name string) error {
	if w.over {
		return driver.ErrClosed
	}
	if err := driver.CheckFile(name); err != nil {
		return err
	}
	if len(w.rest) > 0 {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.tried = true
	mine := true
	err := w.write(ctx, fmt.Sprintf("commit file %q", name), func(ctx context.Context, c *conn) (err error) {
		mine, err = w.name(ctx, c, name)
		return err
	})
	if err != nil {
		return err
	}
	w.over, w.rest = true, nil
	if mine {
		return nil
	}
	return w.write(ctx, "drop a second copy of a file", func(ctx context.Context, c *conn) error { return w.drop(ctx, c, w.id) })
}

// name gives the file its name. If another writer was faster, that file counts, and mine is false. Each
// way is a write, whose commit makes all that it has seen as durable as itself.
func (w *fileWriter) name(ctx context.Context, c *conn, name string) (mine bool, err error) {
	rows, err := c.exec(ctx, `UPDATE $.files SET name = $2::text, size = $3::bigint
		WHERE id = $1::bigint AND (name IS NULL OR name = $2::text)
		AND (SELECT count(*) FROM $.chunks WHERE file = $1::bigint) = $4::int`, w.id, name, w.size, w.chunks)
	switch {
	case codeOf(err) == codeUnique:
		rows, err = c.exec(ctx, `UPDATE $.files SET begun = '-infinity' WHERE id = $1::bigint
			AND EXISTS (SELECT 1 FROM $.files WHERE realm = $2::int AND name = $3::text AND size = $4::bigint)`, w.id, w.handle.id, name, w.size)
		if err == nil && rows == 0 {
			err = errors.New("the file of another writer was there, and is not any more or has another size")
		}
	case err == nil && rows == 0:
		err = errChunks
	default:
		mine = true
	}
	return mine, cmp.Or(err, c.warned())
}

// Abort implements [driver.FileWriter]. After a failed Commit it drops nothing: the file may be there.
func (w *fileWriter) Abort() {
	if w.over {
		return
	}
	w.over, w.rest = true, nil
	if !w.tried {
		// If this fails, the chunks are dropped a day later.
		_ = w.write(w.life, "drop a file", func(ctx context.Context, c *conn) error { return w.drop(ctx, c, w.id) })
	}
}

func (s *files) Remove(ctx context.Context, name string) error {
	return s.write(ctx, fmt.Sprintf("remove file %q", name), func(ctx context.Context, c *conn) error {
		var id int64
		err := c.row(ctx, `UPDATE $.files SET name = NULL, begun = '-infinity' WHERE realm = $1::int AND name = $2::text RETURNING id`, s.id, name).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.drop(ctx, c, id)
	})
}

// drop deletes a file without a name, in steps.
func (s *files) drop(ctx context.Context, c *conn, id int64) error {
	for {
		rows, err := c.exec(ctx, `DELETE FROM $.chunks WHERE file = $1::bigint
			AND n < (SELECT min(n) FROM $.chunks WHERE file = $1::bigint) + $2::int`, id, int32(dropChunks))
		if err != nil {
			return err
		}
		if rows == 0 {
			_, err := c.exec(ctx, `DELETE FROM $.files WHERE id = $1::bigint AND name IS NULL`, id)
			return err
		}
	}
}

// sweep drops files that were never committed, or whose removal was interrupted.
func (s *files) sweep(ctx context.Context, c *conn) error {
	rows, err := c.query(ctx, `SELECT id FROM $.files WHERE realm = $1::int AND name IS NULL AND begun < now() - interval '1 day'`, s.id)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, id := range ids {
		if err == nil {
			err = s.drop(ctx, c, id)
		}
	}
	return err
}
