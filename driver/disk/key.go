package disk

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/step"
)

// keyFile holds the key that seals the seeds in the log: 64 hexadecimal digits. It is a secret:
// anyone who has it and the log can predict draws.
const keyFile = "key"

// Key returns the directory's key. If there is none, it is made, durably. A file that holds no key
// is moved aside and replaced by a new one: damaged then says so, and seeds that the old one sealed
// are lost as long as nobody repairs it. With readOnly nothing is made or moved.
func (d *Driver) Key(readOnly bool) (key [32]byte, damaged, err error) {
	name := d.dir + "/" + keyFile
	b, err := readFile(d.o.FS, name, 1<<10)
	if err == nil {
		if raw, wrong := hex.DecodeString(strings.TrimSuffix(string(b), "\n")); wrong == nil && len(raw) == len(key) {
			if !readOnly { // whoever made the key may have died before its name was durable
				err = classify(d.o.FS.SyncDir(d.dir))
			}
			return [32]byte(raw), nil, err
		}
		damaged = &driver.CorruptError{Place: name, Err: errors.New("want 64 hexadecimal digits")}
	} else if errors.Is(err, fs.ErrNotExist) {
		damaged = fmt.Errorf("%s: there was no key", name)
	} else {
		return key, nil, classify(err)
	}
	if readOnly {
		return key, damaged, nil
	}
	if err == nil {
		if err := d.aside(name); err != nil {
			return key, nil, classify(err)
		}
	}
	step.Entropy(d.o.Steps, key[:])
	return key, damaged, classify(replaceFile(d.o.FS, d.dir, keyFile, fmt.Appendf(nil, "%x\n", key)))
}

// aside gives a damaged key a name under which nobody looks for one.
func (d *Driver) aside(name string) error {
	for n := 1; ; n++ {
		old := fmt.Sprintf("%s.%d", name, n)
		_, err := d.o.FS.Stat(old)
		if errors.Is(err, fs.ErrNotExist) {
			return d.o.FS.Rename(name, old)
		}
		if err != nil {
			return err
		}
	}
}
