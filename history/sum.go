package history

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Rows of names, holdings and progress carry a CRC-32C of themselves, and events one of their row and their
// changes with the balances after it. The other tables only lead to events, which say whether they belong
// there: so whatever an answer shows is checked. What is missing shows in balances that do not follow from
// one another, and in Verify.
//
// A checksum finds damage, not malice: who can write the database can write a checksum too.

// summing is the values of a row, as bytes that no other row has.
type summing []byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s summing) sum() int64 { return int64(crc32.Checksum(s, castagnoli)) }

func (s summing) int(v int64) summing {
	return binary.LittleEndian.AppendUint64(append(s, 'i'), uint64(v))
}

func (s summing) text(t string) summing {
	return append(binary.LittleEndian.AppendUint64(append(s, 't'), uint64(len(t))), t...)
}

func (s summing) value(v any) summing {
	switch v := v.(type) {
	case int64:
		return s.int(v)
	case string:
		return s.text(v)
	}
	return append(s, '-')
}

// row is the values of a row of a table, in the memory of s.
func (s summing) row(table string, values ...any) summing {
	s = s[:0].text(table)
	for _, v := range values {
		s = s.value(v)
	}
	return s
}

// changes appends the changes of an event, in the order of players and items.
func (s summing) changes(all []change) summing {
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.player, b.player), cmp.Compare(a.item, b.item)) })
	for _, c := range all {
		s = s.int(c.player).int(c.item).int(c.delta).value(c.balance)
	}
	return s
}

// summed appends the checksum of a row of a table, which is the last n of some values.
func (s *summing) summed(table string, n int, values []any) []any {
	*s = s.row(table, values[len(values)-n:]...)
	return append(values, s.sum())
}

// check checks a row whose last value is its checksum. A history with unproven rows may lack it.
func (r *reader) check(table string, row ...any) error {
	last := len(row) - 1
	if r.s = r.s.row(table, row[:last]...); row[last] == any(r.s.sum()) || row[last] == nil && r.p.unproven() > 0 {
		return nil
	}
	return damaged("a row of %s, %.80v: its checksum differs", table, row[:last])
}
