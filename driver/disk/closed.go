package disk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// closedFile says where a realm's log ended when it was last closed: the log's own files do not
// show that the last of them are missing. Format: docs/internals/formats/closed.md.
//
// It is created with the log, and replaced when the log is closed and durable. Nothing else changes
// it. So it stays true: the log ends there, or goes on from there.
const closedFile = "closed"

// lastClose is where a log ended when it was last closed.
type lastClose struct {
	next uint64   // offset after the last entry; 0: it has not been closed yet
	hash [32]byte // SHA-256 of that entry
}

func (c *lastClose) text() string {
	text := fmt.Sprintf("kuji closed 2\noffset %d\nhash %x\n", c.next, c.hash)
	return text + sumLine(text)
}

// sumLine is the file's last line in every version: the checksum of the lines before it.
func sumLine(text string) string {
	return fmt.Sprintf("crc32c %08x\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// decodeLastClose is the inverse of text. It refuses any other form of the same values. Of an
// undamaged file of a newer version it says so.
func decodeLastClose(text string) (c lastClose, err error) {
	var version uint64
	fmt.Sscanf(text, "kuji closed %d\n", &version)
	if end := max(0, len(text)-len(sumLine(""))); text[end:] == sumLine(text[:end]) {
		if err := format.Newer("file closed", version, 2); err != nil {
			return c, err
		}
	}
	var hash []byte
	fmt.Sscanf(text, "kuji closed 2\noffset %d\nhash %x\n", &c.next, &hash)
	copy(c.hash[:], hash)
	if c.text() != text {
		return c, errors.New("its four lines or their checksum are damaged; to go on without it, move the file away: then nothing shows that the log has lost its end")
	}
	return c, nil
}

// writeLastClose replaces the file, durably.
func writeLastClose(fsys vfs.FS, dir string, c *lastClose) error {
	return vfs.ReplaceFile(fsys, dir+"/"+closedFile, tmpSuffix, []byte(c.text()))
}

// readLastClose reads the file, if it is there.
func readLastClose(fsys vfs.FS, dir string) (last lastClose, there bool, err error) {
	name := dir + "/" + closedFile
	b, err := vfs.ReadFile(fsys, name, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return last, false, nil
	}
	if err != nil {
		return last, false, err
	}
	last, err = decodeLastClose(string(b))
	if err == nil {
		return last, true, nil
	}
	if _, newer := errors.AsType[*format.NewerError](err); newer {
		return lastClose{}, false, fmt.Errorf("%s: %w", name, err)
	}
	return lastClose{}, false, &driver.CorruptError{Place: name, Err: err}
}

// agrees checks an entry's hash if it was the last entry when the log was closed.
func (c *lastClose) agrees(dir string, offset uint64, entry []byte) error {
	if offset+1 != c.next {
		return nil
	}
	if got := sha256.Sum256(entry); got != c.hash {
		return &driver.CorruptError{Place: dir + "/log", At: driver.Cursor(c.next),
			Err: fmt.Errorf("the entry at offset %d has hash %x; when the log was closed, it had %x", offset, got, c.hash)}
	}
	return nil
}

// checkLast checks that the log has its last entry from when it was closed, or trimmed it.
func (r *realm) checkLast() error {
	next := r.last.next
	if next <= r.log.First() {
		return nil
	}
	if next > r.log.Next() { // read-only: otherwise the log was not opened
		return r.wrong(driver.Cursor(r.log.Next()))
	}
	data, err := r.log.Read(next-1, nil)
	if err != nil {
		return err
	}
	return r.last.agrees(r.dir, next-1, data)
}

// relic names something next to the log that exists only if there was a log. "": there is nothing.
func (r *realm) relic() (string, error) {
	switch _, err := r.fs.Stat(r.dir + "/" + closedFile); {
	case err == nil:
		return closedFile, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	names, err := r.names()
	if err != nil || len(names) == 0 {
		return "", err
	}
	return filesDir + "/" + names[0], nil
}

// missing is the error for a realm that has lost its log.
func (r *realm) missing(relic string, err error) error {
	return &driver.CorruptError{Place: r.dir + "/log", Err: fmt.Errorf("the log is gone, but its %s is there: %w", relic, err)}
}
