package disk

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// closedFile says where a realm's log ended when it was last closed. The log's own files cannot say that
// files are missing at its end. Format: docs/internals/formats/closed.md.
//
// It is made when the log is. Closing replaces it, once the log is closed and durable. Nothing else
// changes it, so it stays true: the log has this end, or goes on from there.
const closedFile = "closed"

// lastClose is where a log ended when it was last closed.
type lastClose struct {
	next uint64   // offset after the last entry; 0: it has not been closed yet
	hash [32]byte // SHA-256 of that entry
}

func (c *lastClose) append(b []byte) []byte {
	start := len(b)
	b = fmt.Appendf(b, "kuji closed 2\noffset %d\nhash %x\n", c.next, c.hash)
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b[start:], crc32.MakeTable(crc32.Castagnoli)))
}

// closedVersion is the version of the file.
const closedVersion = 2

// decodeLastClose is the inverse of append. Other bytes that mean the same are refused.
func decodeLastClose(b []byte) (c lastClose, err error) {
	if err := newerClosed(b); err != nil {
		return c, err
	}
	var hash []byte
	_, err = fmt.Sscanf(string(b), "kuji closed 2\noffset %d\nhash %x\n", &c.next, &hash)
	if err == nil && len(hash) == len(c.hash) {
		c.hash = [32]byte(hash)
	}
	if !bytes.Equal(c.append(nil), b) {
		return c, errors.New("its four lines or their checksum are damaged; to go on without it, move the file away: then nothing shows that the log has lost its end")
	}
	return c, nil
}

// newerClosed refuses a whole file of a newer version: every version ends with a line that has the checksum
// of those before.
func newerClosed(b []byte) error {
	var version uint64
	var sum uint32
	last := bytes.LastIndex(b, []byte("crc32c "))
	if last < 0 {
		return nil
	}
	if _, err := fmt.Sscanf(string(b[last:]), "crc32c %x\n", &sum); err != nil || sum != crc32.Checksum(b[:last], crc32.MakeTable(crc32.Castagnoli)) {
		return nil // damage
	}
	if _, err := fmt.Sscanf(string(b), "kuji closed %d\n", &version); err != nil {
		return nil
	}
	return format.Newer("file closed", version, closedVersion)
}

// writeLastClose replaces the file, durably.
func writeLastClose(fsys vfs.FS, dir string, c *lastClose) error {
	return vfs.ReplaceFile(fsys, dir+"/"+closedFile, tmpSuffix, c.append(nil))
}

// readLastClose reads the file. there says whether it exists.
func readLastClose(fsys vfs.FS, dir string) (last lastClose, there bool, err error) {
	name := dir + "/" + closedFile
	b, err := vfs.ReadFile(fsys, name, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return last, false, nil
	}
	if err != nil {
		return last, false, err
	}
	last, err = decodeLastClose(b)
	if _, newer := errors.AsType[*format.NewerError](err); newer {
		err = fmt.Errorf("%s: %w", name, err)
	} else if err != nil {
		err = &driver.CorruptError{Place: name, Err: err}
	}
	if err != nil {
		return lastClose{}, false, err
	}
	return last, true, nil
}

// agrees checks an entry of a log if it was the last one when the log was closed.
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

// checkLast checks that the log still has the entry that was its last one when it was closed, unless
// that was trimmed since.
func (r *Realm) checkLast() error {
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

// relic names something next to a realm's log that is only made when there is a log. It is empty if
// there is nothing.
func (r *Realm) relic() (string, error) {
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
func (r *Realm) missing(relic string, err error) error {
	return &driver.CorruptError{Place: r.dir + "/log", Err: fmt.Errorf("the log is gone, but its %s is there: %w", relic, err)}
}
