package postgres

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// A realm's mark is kept in a file of two slots, which are written in turn, so that a crash in the middle
// of a write leaves the other one:
//
//	0     slot 0
//	4096  slot 1
//
// A slot has 60 bytes. Numbers are big-endian.
//
//	0   "kujimark"
//	8   line
//	16  cursor
//	24  hash
//	56  CRC32C of what comes before
//
// Of the slots that are whole, the one that is further counts. A write of each append would be much for
// a disk: the file is synced once a second. What a crash of this machine takes from a mark, only matters
// if the database loses entries in the same second.

const (
	slotMagic = "kujimark"
	slotSize  = 60
	slotEvery = 4096
	markFile  = ".mark" // ends the name of a file
	keepEvery = time.Second
)

// further reports whether a mark is after another one.
func further(m, than driver.Mark) bool {
	return cmp.Or(cmp.Compare(m.Line, than.Line), cmp.Compare(m.Cursor, than.Cursor)) > 0
}

// headSize is how much of an entry is hashed. Its first bytes name its writer and the entry before it.
const headSize = 512

// hashOf returns the hash of an entry for a mark.
func hashOf(data []byte) [32]byte { return hashFrom(len(data), sumOf(data), data) }

// hashFrom is hashOf, given an entry's length, checksum and first bytes.
func hashFrom(size int, sum int32, head []byte) [32]byte {
	text := binary.BigEndian.AppendUint64(make([]byte, 0, 12+headSize), uint64(size))
	text = binary.BigEndian.AppendUint32(text, uint32(sum))
	return sha256.Sum256(append(text, head[:min(len(head), headSize)]...))
}

// marks are what this process knows of how far a log came. The course's mutex guards them.
type marks struct {
	dir    string // "": they are kept only in memory
	logger *slog.Logger

	line  uint64      // cuts that were accepted
	own   driver.Mark // the furthest entry that was acknowledged or read here; cursor 0: none
	prior driver.Mark // own before that
	told  driver.Mark // by another process, and not compared with the log yet; cursor 0: none
	cut   *driver.CutError

	file   *os.File
	slot   int  // the one that is written next
	dirty  bool // not yet synced
	failed bool // the last write failed
}

// pass moves the mark to an entry that survives, if it is further.
func (m *marks) pass(at driver.Cursor, data []byte) {
	next := driver.Mark{Line: m.line, Cursor: at}
	if m.logger == nil || !further(next, m.own) {
		return
	}
	next.Hash = hashOf(data)
	m.move(next)
}

// move moves the mark.
func (m *marks) move(to driver.Mark) {
	m.prior, m.own = m.own, to
	if m.dir == "" {
		return
	}
	if err := m.write(); err != nil {
		if !m.failed {
			m.logger.Warn("PostgreSQL: a mark cannot be kept: after a restart, this process does not know how far the log came", "error", err)
		}
		m.failed = true
		return
	}
	m.failed = false
}

// adopt makes a mark that was told, and is compared now, this process's own.
func (m *marks) adopt(told driver.Mark) {
	if m.told != told {
		return
	}
	m.told = driver.Mark{}
	if further(told, m.own) {
		m.move(told)
	}
}

// open opens the file. It makes a missing one.
func (m *marks) open(realm string) error {
	if m.dir == "" || m.file != nil {
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(m.dir, realm+markFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	var all [slotEvery + slotSize]byte
	if _, err := file.ReadAt(all[:], 0); err != nil && err != io.EOF {
		return errors.Join(err, file.Close())
	}
	m.file = file
	for i := range 2 {
		if got, ok := decodeMark(all[i*slotEvery:][:slotSize]); ok && further(got, m.own) {
			m.prior, m.own, m.slot = m.own, got, 1-i
		}
	}
	if all != [slotEvery + slotSize]byte{} && m.own.Cursor == 0 && m.own.Line == 0 {
		m.logger.Warn("PostgreSQL: a file with a mark is damaged: what it said is not known", "file", file.Name())
	}
	return nil
}

func (m *marks) write() error {
	if m.file == nil {
		return errors.New("there is no file for it")
	}
	if _, err := m.file.WriteAt(encodeMark(m.own), int64(m.slot)*slotEvery); err != nil {
		return err
	}
	m.slot, m.dirty = 1-m.slot, true
	return nil
}

func encodeMark(m driver.Mark) []byte {
	b := append(make([]byte, 0, slotSize), slotMagic...)
	b = binary.BigEndian.AppendUint64(b, m.Line)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Cursor))
	b = append(b, m.Hash[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeMark returns the mark in a slot, unless the slot is empty or torn.
func decodeMark(b []byte) (m driver.Mark, ok bool) {
	if !bytes.HasPrefix(b, []byte(slotMagic)) || binary.BigEndian.Uint32(b[56:]) != crc32.Checksum(b[:56], castagnoli) {
		return m, false
	}
	m = driver.Mark{Line: binary.BigEndian.Uint64(b[8:]), Cursor: driver.Cursor(binary.BigEndian.Uint64(b[16:]))}
	copy(m.Hash[:], b[24:56])
	return m, true
}

// load reads the marks that are kept.
func (cs *courses) load() error {
	if cs.dir == "" {
		return nil
	}
	if err := os.MkdirAll(cs.dir, 0o700); err != nil {
		return err
	}
	names, err := os.ReadDir(cs.dir)
	if err != nil {
		return err
	}
	for _, entry := range names {
		realm, ok := strings.CutSuffix(entry.Name(), markFile)
		if !ok || driver.CheckRealm(realm) != nil {
			continue
		}
		if err := cs.of(realm).prepare(); err != nil {
			return err
		}
	}
	return nil
}

// prepare opens the file of the realm's mark.
func (c *course) prepare() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.marks.open(c.realm); err != nil {
		return fmt.Errorf("the mark of realm %s: %w", c.realm, err)
	}
	return nil
}

// all returns all courses.
func (cs *courses) all() (all []*course) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.byName {
		all = append(all, c)
	}
	return all
}

// sync makes a mark durable.
func (c *course) sync() error {
	c.mu.Lock()
	file, dirty := c.marks.file, c.marks.dirty
	c.marks.dirty = false
	c.mu.Unlock()
	if !dirty {
		return nil
	}
	return file.Sync()
}

// keepMarks makes the marks durable, once a second.
func (d *Driver) keepMarks() {
	for d.life.Err() == nil {
		pause(d.life, keepEvery)
		for _, c := range d.courses.all() {
			if err := c.sync(); err != nil {
				d.o.Logger.Warn("PostgreSQL: a mark cannot be kept", "realm", c.realm, "error", err)
			}
		}
	}
}

// close closes the files, after keepMarks has ended.
func (cs *courses) close() (err error) {
	for _, c := range cs.all() {
		err = errors.Join(err, c.sync())
		c.mu.Lock()
		if c.marks.file != nil {
			err = errors.Join(err, c.marks.file.Close())
		}
		c.marks.file = nil
		c.mu.Unlock()
	}
	return err
}
