package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// embedded is an engine within the test, with its own goroutines, on a disk in
// memory whose power is cut again and again.
type embedded struct {
	catalog *catalog.Catalog

	mu     sync.Mutex
	rng    *rand.Rand
	disk   *vfs.Mem
	engine *kuji.Engine
	realm  *kuji.Realm
	life   int
	cuts   int // still to come
	err    error
}

func newEmbedded(t *testing.T, seed uint64, cuts int) *embedded {
	t.Helper()
	c, err := catalog.Parse([]byte(historyCatalog))
	if err != nil {
		t.Fatal(err)
	}
	s := &embedded{catalog: c, rng: rand.New(rand.NewPCG(seed, 1)), disk: vfs.NewMem(), cuts: cuts}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens the engine, as often as the power is cut meanwhile. The caller
// holds mu, or nobody else knows s.
func (s *embedded) open() error {
	for {
		if s.cuts > 0 {
			s.cuts--
			s.disk.CutPowerAfter(10 + s.rng.Int64N(200))
		}
		engine, err := hook.Open(s.disk, nil, "data", kuji.Options{SegmentSize: 16 << 10})
		if err == nil {
			s.engine = engine.(*kuji.Engine)
			s.realm, err = s.engine.Realm("r")
		}
		if err == nil {
			_, err = s.realm.Apply(context.Background(), s.catalog)
		}
		if err == nil {
			s.life++
			return nil
		}
		if !errors.Is(err, vfs.ErrCrashed) {
			return err
		}
		s.crash()
	}
}

func (s *embedded) crash() {
	if s.engine != nil {
		_ = s.engine.Close() // the power is off
	}
	s.disk = s.disk.Crash(vfs.Crash{Choose: vfs.Seeded(s.rng.Uint64()), Unordered: s.rng.IntN(2) == 0})
}

// now returns the realm and which life it is in.
func (s *embedded) now() (*kuji.Realm, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.realm, s.life, s.err
}

// failed starts the engine again if nobody has since.
func (s *embedded) failed(life int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if life == s.life && s.err == nil {
		if !errors.Is(err, vfs.ErrCrashed) {
			s.err = fmt.Errorf("%w: it failed without a power cut: %w", errDead, err)
			return err
		}
		s.crash()
		if err := s.open(); err != nil {
			s.err = fmt.Errorf("%w: %w", errDead, err)
		}
	}
	return err
}

func (s *embedded) draw(ctx context.Context, id, player string, q question) (reply, error) {
	realm, life, err := s.now()
	if err != nil {
		return reply{}, err
	}
	res, err := realm.Do(ctx, kuji.Draw{ID: id, Player: player, Pool: fmt.Sprint("p", q.pool), Count: q.count})
	if err != nil {
		return reply{}, s.failed(life, err)
	}
	out := reply{soldOut: res.Status == kuji.SoldOut}
	for _, o := range res.Outcomes {
		out.stock[o.Entry[0]-'a']++
	}
	return out, nil
}

func (s *embedded) left(ctx context.Context, q question) (reply, error) {
	realm, life, err := s.now()
	if err != nil {
		return reply{}, err
	}
	v, err := realm.Pool(ctx, fmt.Sprint("p", q.pool))
	if err != nil {
		return reply{}, s.failed(life, err)
	}
	var out reply
	for i, e := range v.Entries {
		out.stock[i] = int(e.Left)
	}
	return out, nil
}

// TestLinearizable: to concurrent clients, through power cuts, a pool is one
// box from which one draw at a time is made.
func TestLinearizable(t *testing.T) {
	lives := 0
	for n := range *histories {
		s := newEmbedded(t, uint64(n), n%6)
		history := takeHistory(t, s, uint64(n))
		if s.err != nil {
			t.Fatalf("history %d: %v", n, s.err)
		}
		checkHistory(t, history)
		if err := s.engine.Close(); err != nil && !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("history %d: %v", n, err)
		}
		lives += s.life
		if t.Failed() {
			t.Fatalf("history %d", n)
		}
	}
	t.Logf("%d histories of %d operations, %d power cuts", *histories, historyClients*historyOps, lives-*histories)
}
