//go:build unix

package postgres_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

// BenchmarkAppend appends entries one after another, as a ledger does.
func BenchmarkAppend(b *testing.B) {
	s := pgtest.Start(b, pgtest.Options{TCP: true, Fsync: true})
	for _, size := range []int{60, 4 << 10, 60 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := connect(b, s.URL(), newSchema())
			r, err := d.Open(b.Context(), "main", driver.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
			at := driver.Cursor(0)
			b.SetBytes(int64(size))
			for b.Loop() {
				if at, err = r.Append(b.Context(), at, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads a log of small entries.
func BenchmarkRead(b *testing.B) {
	const entries = 100_000
	s := pgtest.Start(b, pgtest.Options{TCP: true})
	schema := newSchema()
	d := connect(b, s.URL(), schema)
	r, err := d.Open(b.Context(), "main", driver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	at, err := r.Append(b.Context(), 0, bytes.Repeat([]byte("x"), 60))
	if err != nil {
		b.Fatal(err)
	}
	exec(b, s, fmt.Sprintf(`INSERT INTO %s.entries SELECT realm, cursor + n, sum, data FROM %s.entries, generate_series(1, %d) n WHERE cursor = %d`, schema, schema, entries-1, at))
	for b.Loop() {
		n := 0
		for _, err := range r.Read(b.Context(), 0, entries) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != entries {
			b.Fatalf("read %d entries, want %d", n, entries)
		}
	}
	b.ReportMetric(entries*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
