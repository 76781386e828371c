package catalog_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// manyEntries writes a catalog with one pool of n entries.
func manyEntries(n int, entry string) []byte {
	var b bytes.Buffer
	b.WriteString("kuji: 1\nitems:\n  gem: {kind: currency}\npools:\n  p:\n    entries:\n")
	for i := range n {
		fmt.Fprintf(&b, entry, i)
	}
	return b.Bytes()
}

// lean is as small as an entry gets: a million of them fit in MaxBytes.
const lean = "    - {id: e%d, weight: 1}\n"

// BenchmarkParse reads catalogs of one pool. A million entries take seconds and
// about 1.3 GB for as long: that is the YAML tree.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		source := manyEntries(n, lean)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				c, err := catalog.Parse(source)
				if err != nil || len(c.Pools[0].Entries) != n {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		c, err := catalog.Parse(manyEntries(n, lean))
		if err != nil {
			b.Fatal(err)
		}
		form := c.AppendCanonical(nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(form)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := catalog.Decode(form); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	c, err := catalog.Parse(manyEntries(1_000_000, lean))
	if err != nil {
		b.Fatal(err)
	}
	form := c.AppendCanonical(nil)
	b.SetBytes(int64(len(form)))
	b.ReportAllocs()
	for b.Loop() {
		form = c.AppendCanonical(form[:0])
	}
}

// BenchmarkRefuse is the time to refuse what is beyond the limits.
func BenchmarkRefuse(b *testing.B) {
	for name, source := range map[string][]byte{
		"bytes":   make([]byte, catalog.MaxBytes+1),
		"values":  append([]byte("a: ["), bytes.Repeat([]byte("a,"), 8<<20)...),
		"entries": manyEntries(catalog.MaxEntries+1, "    - {id: e%d, weight: 1}\n"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := catalog.Parse(source); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}
