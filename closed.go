package kuji

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// closedFile says where a realm's log stood when it was last closed. The log's own files cannot
// say that files are missing at its end. Format: docs/internals/formats/closed.md.
//
// Closing replaces the file, once the log is closed and durable. Nothing else changes it. So what
// it says stays true in later lives, however they end: the log goes on from there, or ends there.
// A crash before it is replaced leaves what the life before wrote.
const closedFile = "closed"

// lastClose is where a log stood when it was last closed.
type lastClose struct {
	next     uint64 // offset after the last entry
	position uint64 // of that entry
	epoch    uint64 // that it ended
	hash     [32]byte
}

func (c *lastClose) append(b []byte) []byte {
	start := len(b)
	b = fmt.Appendf(b, "kuji closed 1\noffset %d\nposition %d\nepoch %d\nhash %x\n", c.next, c.position, c.epoch, c.hash)
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b[start:], castagnoli))
}

// decodeLastClose is the inverse of append. Other bytes that mean the same are refused.
func decodeLastClose(b []byte) (c lastClose, err error) {
	var hash []byte
	_, err = fmt.Sscanf(string(b), "kuji closed 1\noffset %d\nposition %d\nepoch %d\nhash %x\n", &c.next, &c.position, &c.epoch, &hash)
	if err == nil && len(hash) == len(c.hash) {
		c.hash = [32]byte(hash)
	}
	if !bytes.Equal(c.append(nil), b) {
		return c, errors.New("its six lines or their checksum are damaged; to go on without it, move the file away: then nothing shows that the log has lost its end")
	}
	return c, nil
}

// writeLastClose replaces the file, durably.
func writeLastClose(fsys vfs.FS, dir string, c *lastClose) error {
	return replaceFile(fsys, dir, closedFile, c.append(nil))
}

// readLastClose reads the file. It returns nil if there is none: the log was never closed.
func readLastClose(fsys vfs.FS, realm, dir string) (*lastClose, *Error) {
	name := dir + "/" + closedFile
	b, err := readFile(fsys, name, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "realm " + realm, Err: err}
	}
	c, err := decodeLastClose(b)
	if err != nil {
		return nil, &Error{Code: CodeCorrupt, Message: "realm " + realm, Err: fmt.Errorf("%s: %w", name, err)}
	}
	return &c, nil
}

// agrees checks that a log which has come to an entry goes through the place where it was closed.
// A nil c agrees with everything.
func (c *lastClose) agrees(at *chain, offset uint64) error {
	if c == nil || at.index != c.position || at.hash == c.hash && at.epoch == c.epoch && offset+1 == c.next {
		return nil
	}
	return fmt.Errorf("the entry at log offset %d, of epoch %d, has hash %x; when the log was closed, this position was at offset %d, of epoch %d, with hash %x",
		offset, at.epoch, at.hash, c.next-1, c.epoch, c.hash)
}

// reached checks that a log which ends at a position has not lost its end.
func (c *lastClose) reached(position uint64) error {
	if c == nil || position >= c.position {
		return nil
	}
	return fmt.Errorf("the log ends here, but when it was closed it had position %d, at log offset %d", c.position, c.next-1)
}

// relic names something next to a realm's log that is only made when there is a log. It is empty if
// there is nothing.
func relic(fsys vfs.FS, dir string) (string, error) {
	for _, name := range []string{closedFile, seedFile} {
		switch _, err := fsys.Stat(dir + "/" + name); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	files, _, err := listSnapshots(fsys, dir+"/"+snapshotDir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return snapshotDir + "/" + files[0].name(), nil
}

// missingLog is the error for a realm that has lost its log.
func missingLog(realm, relic string, err error) *Error {
	return &Error{Code: CodeCorrupt, Message: "log of realm " + realm, Err: fmt.Errorf("the log is gone, but its %s is there: %w", relic, err)}
}
