package peers

import (
	"context"

	"github.com/kuji-dev/kuji/wal"
)

// kujiLog is Kuji's wal, as it is.
type kujiLog struct {
	*wal.Log
	durable bool
}

func openKuji(dir string, o wal.Options, durable bool) (kujiLog, error) {
	l, err := wal.Open(dir, o)
	return kujiLog{l, durable}, err
}

func (l kujiLog) Append(rec []byte) (err error) {
	if l.durable {
		_, err = l.Log.AppendSync(context.Background(), rec)
	} else {
		_, err = l.Log.Append(rec)
	}
	return err
}

func (l kujiLog) Read(i int, dst []byte) ([]byte, error) { return l.Log.Read(uint64(i), dst) }

func (l kujiLog) Scan(f func(rec []byte) bool) error {
	for rec, err := range l.Views(l.First()) {
		if err != nil {
			return err
		}
		if !f(rec.Data) {
			break
		}
	}
	return nil
}

// kujiWith is the contestant with some options.
func kujiWith(name string, o wal.Options) contestant {
	return contestant{
		name:     name,
		buffered: func(dir string) (appender, error) { return openKuji(dir, o, false) },
		durable:  func(dir string) (appender, error) { return openKuji(dir, o, true) },
		source:   func(dir string) (source, error) { return openKuji(dir, o, false) },
		reopen: func(dir string) (int, appender, error) {
			l, err := openKuji(dir, o, false)
			if err != nil {
				return 0, nil, err
			}
			return int(l.Next() - l.First()), l, nil
		},
	}
}

var kuji = kujiWith("kuji", wal.Options{})

// kujiOne has all records in one segment, so that opening it after a crash has
// to check them all; with segments of the default size, those that are full
// are trusted by their footers.
var kujiOne = func() contestant {
	c := kujiWith("kuji-one-segment", wal.Options{SegmentSize: wal.MaxSegmentSize})
	c.durable, c.source = nil, nil // no different
	return c
}()
