package wal_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kuji-dev/kuji/wal"
)

// A log is written, closed, opened again and read.
func Example() {
	if err := keep(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// durable 0
	// next 3
	// 0 one
	// 1 two
	// 2 three
	// no such record: true
}

func keep(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "wal") // a real one keeps its data
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	l, err := wal.Open(dir, wal.Options{})
	if err != nil {
		return err
	}
	offset, err := l.AppendSync(ctx, []byte("one")) // on disk when it returns
	if err != nil {
		return errors.Join(err, l.Close())
	}
	fmt.Println("durable", offset)
	if _, err := l.AppendBatch([][]byte{[]byte("two"), []byte("three")}); err != nil { // all or none
		return errors.Join(err, l.Close())
	}
	if err := l.Close(); err != nil { // makes the rest durable
		return err
	}

	if l, err = wal.Open(dir, wal.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fmt.Println("next", l.Next())
	for record, err := range l.Records(l.First()) {
		if err != nil {
			return err
		}
		fmt.Println(record.Offset, string(record.Data))
	}
	_, err = l.Read(7, nil)
	fmt.Println("no such record:", errors.Is(err, wal.ErrNotFound))
	return nil
}
