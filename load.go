package kuji

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/kuji-dev/kuji/internal/economy"
)

// Loading a snapshot, in short:
//
//	the opener:    read a frame; check it; hand a block of players on
//	               when as many as go round are on their way: join the oldest
//	the decoders:  decode a block, which touches nothing of the state
//
// Blocks other than of players are loaded by the opener, when no other is on its way:
// so is everything of a small file. An error of a block comes before those of the
// opener, which has read on: what is reported is the first error in the order of the
// file, but for an id that is there twice, which is found at its end.

const (
	// blocksPerDecoder is how many blocks go round for each decoder: one is decoded,
	// and others wait for it or to be joined.
	blocksPerDecoder = 4
	// maxDecoders is how many keep the opener busy.
	maxDecoders = 8
	// largeBlock is how many bytes a block may have that is decoded beside others: each is
	// copied.
	largeBlock = 4 << 20
	// smallSnapshot is how many bytes a file may have that the opener loads alone.
	smallSnapshot = 1 << 20
)

// pendingBlock is a block of players on its way from a file into the state.
type pendingBlock struct {
	players  *economy.PlayerBlock
	data     []byte
	at       int64         // of its frame in the file
	decoded  chan struct{} // receives when it is
	panicked any
}

// blockIntake takes the blocks of a snapshot, and of those that build on it, into a state.
type blockIntake struct {
	loader   *economy.Loader
	decoders int   // 0: no goroutine is started
	small    int64 // up to how many bytes a file is loaded by the opener

	work    chan *pendingBlock // to the decoders; nil while there are none
	running sync.WaitGroup     // the decoders
	free    []*pendingBlock
	next    []*pendingBlock // those on their way, in the order of the file
	err     error           // of the first that could not be joined
}

// newBlockIntake returns an intake that starts no goroutine if it is single.
func newBlockIntake(single bool) *blockIntake {
	in := &blockIntake{loader: economy.NewLoader(), small: smallSnapshot}
	if n := runtime.GOMAXPROCS(0); n > 1 && !single {
		in.decoders = min(n, maxDecoders)
	}
	return in
}

// block takes a block of a file of so many bytes in.
func (in *blockIntake) block(fr *frame, bytes int64) error {
	if economy.BlockKind(fr.kind) != economy.BlockPlayers || in.decoders == 0 || bytes <= in.small || len(fr.data) > largeBlock {
		if err := in.join(0); err != nil {
			return err
		}
		return atByte(fr.at, in.loader.Block(economy.BlockKind(fr.kind), fr.data))
	}
	most := in.decoders * blocksPerDecoder
	if err := in.join(most - 1); err != nil {
		return err
	}
	if in.work == nil {
		in.work = make(chan *pendingBlock, most)
		for range in.decoders {
			in.running.Go(func() { decode(in.work) })
		}
	}
	b := in.take()
	b.at, b.data = fr.at, append(b.data[:0], fr.data...)
	in.next = append(in.next, b)
	in.work <- b // never waits: there is room for all that there are
	return nil
}

// atByte says where in a file an error is, if it is one.
func atByte(at int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("byte %d: %w", at, err)
}

// take returns a block that is not on its way.
func (in *blockIntake) take() *pendingBlock {
	if n := len(in.free); n > 0 {
		b := in.free[n-1]
		in.free = in.free[:n-1]
		return b
	}
	return &pendingBlock{players: in.loader.NewPlayerBlock(), decoded: make(chan struct{}, 1)}
}

func decode(work <-chan *pendingBlock) {
	for b := range work {
		b.decode()
	}
}

func (b *pendingBlock) decode() {
	defer func() {
		b.panicked = recover() // for the opener to go on with
		b.decoded <- struct{}{}
	}()
	b.players.Decode(b.data)
}

// join joins the oldest blocks until at most so many are left on their way. After an
// error it does no more than return it.
func (in *blockIntake) join(left int) error {
	for len(in.next) > left && in.err == nil {
		b := in.next[0]
		<-b.decoded
		in.next = slices.Delete(in.next, 0, 1)
		if b.panicked != nil {
			panic(b.panicked)
		}
		in.err = atByte(b.at, in.loader.Join(b.players))
		in.free = append(in.free, b)
	}
	return in.err
}

// end ends the decoders, when they have decoded what is still on its way.
func (in *blockIntake) end() {
	if in.work != nil {
		close(in.work)
		in.running.Wait() // decoded has room for what nobody receives
		in.work = nil
	}
}
