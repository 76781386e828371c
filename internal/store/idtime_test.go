package store_test

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/store"
)

// TestIDTime: UUIDv7 and ULID carry their time, in either case; nothing else carries any.
func TestIDTime(t *testing.T) {
	for id, want := range map[string]int64{
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f": 0x017f22e279b0, // the example of RFC 9562
		"017F22E2-79B0-7CC3-B8C4-DC0C0C07398F": 0x017f22e279b0,
		"00000000-0000-7000-8000-000000000000": 0,
		"ffffffff-ffff-7fff-bfff-ffffffffffff": 1<<48 - 1,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":           1469922850259, // the example of the ULID specification
		"01arz3ndektsv4rrffq69g5fav":           1469922850259,
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":           1<<48 - 1,
		"00000000000000000000000000":           0,
	} {
		if got, ok := store.IDTime(id); !ok || got != want {
			t.Errorf("%s carries %d, %v; want %d", id, got, ok, want)
		}
		if got, ok := store.IDTime([]byte(id)); !ok || got != want {
			t.Errorf("%s as bytes carries %d, %v; want %d", id, got, ok, want)
		}
		for i := range id { // any other character takes the time away
			if id[i] == '-' {
				continue
			}
			if _, ok := store.IDTime(id[:i] + "u" + id[i+1:]); ok {
				t.Errorf("%s with a u at %d carries a time", id, i)
			}
		}
	}
	for _, id := range []string{
		"", "order-1", strings.Repeat("x", 64),
		"017f22e2-79b0-4cc3-98c4-dc0c0c07398f",   // version 4
		"017f22e2-79b0-7cc3-c8c4-dc0c0c07398f",   // another variant
		"017f22e2-79b0-7cc3-78c4-dc0c0c07398f",   // another variant
		"017f22e279b07cc398c4dc0c0c07398f",       // without hyphens
		"017f22e2-79b0-7cc3-98c40-dc0c0c07398",   // a hyphen elsewhere
		"{17f22e2-79b0-7cc3-98c4-dc0c0c07398f",   // a brace
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398fff", // too long
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ",             // more than 128 bits
		"01ARZ3NDEKTSV4RRFFQ69G5FA",              // too short
		"01ARZ3NDEKTSV4RRFFQ69G5FAI", "01ARZ3NDEKTSV4RRFFQ69G5FAL", "01ARZ3NDEKTSV4RRFFQ69G5FAO",
	} {
		if got, ok := store.IDTime(id); ok {
			t.Errorf("%q carries %d; want no time", id, got)
		}
	}
}
