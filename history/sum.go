package history

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Rows carry checksums, CRC-32C of
//
//	an event:    its row, and its rows of changes with the balances after it
//	a name:      its row
//	a holding:   its row
//	the place:   the row of progress
//
// The rows of the other tables lead to events, and an event says whether it belongs there. So whatever
// an answer shows is checked. What is missing from an answer is found by balances that do not follow
// from one another, and by Verify.
//
// A checksum finds damage, not malice: who can write the database can write a checksum too.

// summing is the values of a row, as bytes that no other row has.
type summing []byte

func (s summing) int(v int64) summing {
	return binary.LittleEndian.AppendUint64(append(s, 'i'), uint64(v))
}

func (s summing) text(t string) summing {
	return append(binary.LittleEndian.AppendUint64(append(s, 't'), uint64(len(t))), t...)
}

// value appends an argument of a statement: int64, string or nil.
func (s summing) value(v any) summing {
	switch v := v.(type) {
	case int64:
		return s.int(v)
	case string:
		return s.text(v)
	}
	return append(s, '-')
}

// column appends a column of a row, which is an integer or NULL.
func (s summing) column(r row, i int) summing {
	if r.null(i) {
		return append(s, '-')
	}
	return s.int(r.int(i))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s summing) sum() int64 { return int64(crc32.Checksum(s, castagnoli)) }

// begin begins a row of a table.
func (s summing) begin(table string) summing { return s[:0].text(table) }

// changes appends the changes of an event, in the order of players and items.
func (s summing) changes(all []change) summing {
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.player, b.player), cmp.Compare(a.item, b.item)) })
	for _, c := range all {
		s = s.int(c.player).int(c.item).int(c.delta).value(c.balance)
	}
	return s
}

// row returns the row of progress, with its checksum last.
func (p *progress) row(realm string) []any {
	row := []any{realm, int64(p.at.Position), int64(p.at.Index), flag(p.last), int64(p.completeFrom), int64(p.keptFrom), p.keptTime, int64(p.provenFrom), flag(p.rebuild)}
	var s summing
	s = s.begin("progress")
	for _, v := range row {
		s = s.value(v)
	}
	return append(row, s.sum())
}

// sum returns the checksum of the row of progress.
func (p *progress) sum(realm string) int64 {
	row := p.row(realm)
	return row[len(row)-1].(int64)
}

// checker checks the rows that somebody reads.
type checker struct {
	s summing
	// unproven says that the history has rows from before there were checksums, or from before it was
	// built again.
	unproven bool
}

func newChecker(p *progress) *checker { return &checker{unproven: p.unproven() > 0} }

// agrees reports whether column i of a row is a checksum. None is as good as a right one if the history
// has rows that are not proven.
func (c *checker) agrees(r row, i int, want int64) bool {
	if r.null(i) {
		return c.unproven
	}
	return r.int(i) == want
}

// nameSum returns the checksum of a name's row.
func (c *checker) nameSum(table string, id int64, text string) int64 {
	c.s = c.s.begin(table).int(id).text(text)
	return c.s.sum()
}

// holdingSum returns the checksum of a holding's row.
func (c *checker) holdingSum(h holding, quantity int64) int64 {
	c.s = c.s.begin("holdings").int(h.item).int(h.player).int(quantity)
	return c.s.sum()
}

// name checks the row of a name, whose checksum stands in column i.
func (c *checker) name(r row, i int, table string, id int64, text string) error {
	if c.agrees(r, i, c.nameSum(table, id, text)) {
		return nil
	}
	return damaged("number %d of %s, %.80q: its checksum differs", id, table, text)
}

// holding checks the row of a holding, whose checksum stands in column i.
func (c *checker) holding(r row, i int, h holding, quantity int64) error {
	if c.agrees(r, i, c.holdingSum(h, quantity)) {
		return nil
	}
	return damaged("item %d of player %d, %d: its checksum differs", h.item, h.player, quantity)
}
