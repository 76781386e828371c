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

func (c *lastClose) text() string {
	text := fmt.Sprintf("kuji closed 2\noffset %d\nhash %x\n", c.next, c.hash)
	return text + sumLine(text)
}

// sumLine is the last line of the file in every version: the checksum of those before.
func sumLine(text string) string {
	return fmt.Sprintf("crc32c %08x\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// closedVersion is the version of the file.
const closedVersion = 2

// decodeLastClose is the inverse of text. It refuses other texts that mean the same, and whole ones of
// newer versions by name.
func decodeLastClose(text string) (c lastClose, err error) {
	var version uint64
	fmt.Sscanf(text, "kuji closed %d\n", &version)
	if end := max(0, len(text)-len(sumLine(""))); text[end:] == sumLine(text[:end]) {
		if err := format.Newer("file closed", version, closedVersion); err != nil {
			return c, err
		}
	}
	var hash []byte
	_, err = fmt.Sscanf(text, "kuji closed 2\noffset %d\nhash %x\n", &c.next, &hash)
	if err == nil && len(hash) == len(c.hash) {
		c.hash = [32]byte(hash)
	}
	if c.text() != text {
		return c, errors.New("its four lines or their checksum are damaged; to go on without it, move the file away: then nothing shows that the log has lost its end")
	}
	return c, nil
}

// writeLastClose replaces the file, durably.
func writeLastClose(fsys vfs.FS, dir string, c *lastClose) error {
	return vfs.ReplaceFile(fsys, dir+"/"+closedFile, tmpSuffix, []byte(c.text()))
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
	last, err = decodeLastClose(string(b))
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

// relic names something next to a realm's log that is only made when there is a log. It is empty if
// there is nothing.
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
