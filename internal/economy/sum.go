package economy

import (
	"fmt"
	"math/big"
	"math/bits"
)

// sum is a number of 128 bits: that of all balances of an item, up to players ×
// MaxQuantity, does not fit 64.
type sum struct{ hi, lo uint64 }

func (s *sum) add(v uint64) {
	lo, carry := bits.Add64(s.lo, v, 0)
	s.lo, s.hi = lo, s.hi+carry
}

func (s *sum) sub(v uint64) {
	lo, borrow := bits.Sub64(s.lo, v, 0)
	s.lo, s.hi = lo, s.hi-borrow
}

func (s *sum) addSum(o sum) {
	s.add(o.lo)
	s.hi += o.hi
}

// String returns the sum in decimal.
func (s sum) String() string {
	if s.hi == 0 {
		return fmt.Sprint(s.lo)
	}
	v := new(big.Int).SetUint64(s.hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(s.lo)).String()
}

// tally adds up by item what players hold.
type tally struct {
	small []uint64 // of the first items: quantities below 128
	large []sum    // of the first items: everything else
	rest  []stack  // of other items, one by one
}

// tallied is how many items are the first ones.
const tallied = 1 << 10

// ready makes room for the quantities of so many items.
func (t *tally) ready(items int) {
	if n := min(items, tallied); n > len(t.small) {
		t.small, t.large = make([]uint64, n), make([]sum, n)
	}
}

func (t *tally) add(item uint32, q uint64) {
	if item < uint32(len(t.large)) {
		t.large[item].add(q)
	} else {
		t.rest = append(t.rest, stack{item: item, quantity: q})
	}
}

// count adds everything to the supply of items and begins anew. There are no fewer
// items than ready was told.
func (t *tally) count(items []itemState) {
	t.countRest(items)
	for i := range t.small {
		items[i].supply.add(t.small[i])
		items[i].supply.addSum(t.large[i])
	}
	t.small, t.large = nil, nil
}

// countRest is count for what is there one by one, of which there may be much.
func (t *tally) countRest(items []itemState) {
	for _, st := range t.rest {
		items[st.item].supply.add(st.quantity)
	}
	t.rest = t.rest[:0]
}
