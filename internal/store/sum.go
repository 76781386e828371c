package store

import (
	"fmt"
	"math/big"
	"math/bits"
)

// sum is a 128-bit number. The sum of an item's balances, up to players × MaxQuantity, does not fit
// 64 bits.
type sum struct{ hi, lo uint64 }

func (s *sum) add(v uint64) {
	lo, carry := bits.Add64(s.lo, v, 0)
	s.lo, s.hi = lo, s.hi+carry
}

func (s *sum) sub(v uint64) {
	lo, borrow := bits.Sub64(s.lo, v, 0)
	s.lo, s.hi = lo, s.hi-borrow
}

// String returns the sum in decimal.
func (s sum) String() string {
	if s.hi == 0 {
		return fmt.Sprint(s.lo)
	}
	v := new(big.Int).SetUint64(s.hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(s.lo)).String()
}
