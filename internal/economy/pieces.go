package economy

// pieces holds values in order of addition, in pieces of one size, so that nothing is
// copied when more come.
type pieces[T any] struct {
	all [][]T
	n   int
}

const pieceLen = 1 << 12

func (p *pieces[T]) push(v T) {
	if p.n == len(p.all)*pieceLen {
		p.all = append(p.all, make([]T, pieceLen))
	}
	p.all[p.n/pieceLen][p.n%pieceLen] = v
	p.n++
}

func (p *pieces[T]) at(i int) *T { return &p.all[i/pieceLen][i%pieceLen] }

// count returns how many pieces there are.
func (p *pieces[T]) count() int { return (p.n + pieceLen - 1) / pieceLen }

// piece returns what is in one of them.
func (p *pieces[T]) piece(i int) []T { return p.all[i][:min(pieceLen, p.n-i*pieceLen)] }
