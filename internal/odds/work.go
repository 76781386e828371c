package odds

import (
	"fmt"
	"math/big"
)

// work is how much work is left.
type work struct {
	budget    int
	going     Going
	asked     int      // the budget when going was last asked
	one, zero *big.Rat // no chance is ever changed in place, nor are these
}

// smallWork is what a result takes in addition to its words: memory, and keeping it.
const smallWork = 24

func (w *work) err() error {
	if w.budget > 0 {
		return nil
	}
	return &OddsError{fmt.Sprintf("a draw from the pool can go in too many different ways: "+
		"its odds take more than %d multiplications and are not computed", MaxWork)}
}

func (w *work) not(x *big.Rat) *big.Rat { return w.add(big.NewRat(1, 1), new(big.Rat).Neg(x)) }

// power returns the mean of x to the powers from low to high.
func (w *work) power(x *big.Rat, low, high uint64) *big.Rat {
	if x.IsInt() && x.Num().IsInt64() && x.Num().Int64() <= 1 { // 0 or 1; no range begins at 0
		return x
	}
	sum, p := new(big.Rat), big.NewRat(1, 1)
	for n := uint64(1); n <= high && w.budget > 0; n++ {
		if p = w.mul(p, x); n >= low {
			sum = w.add(sum, p)
		}
	}
	return w.mul(sum, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).SetUint64(high-low+1)))
}

// add, mul and fraction pay for their work, most of which is to bring the result to lowest terms.
func (w *work) add(x, y *big.Rat) *big.Rat {
	switch {
	case x.Sign() == 0:
		return y
	case y.Sign() == 0:
		return x
	case !w.pay(x.Denom(), y.Denom()):
		return x
	}
	return new(big.Rat).Add(x, y)
}

func (w *work) mul(x, y *big.Rat) *big.Rat {
	if !w.pay(x.Denom(), y.Denom()) {
		return x
	}
	return new(big.Rat).Mul(x, y)
}

func (w *work) fraction(x, y *big.Int) *big.Rat {
	if !w.pay(x, y) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFrac(x, y)
}

func (w *work) pay(x, y *big.Int) bool {
	if w.budget <= 0 {
		return false
	}
	words := (x.BitLen()+y.BitLen())/64 + 2
	w.budget -= words*words + smallWork
	if w.asked-w.budget >= askEvery {
		if w.asked = w.budget; !w.going() {
			w.budget = 0
		}
	}
	return w.budget > 0
}
