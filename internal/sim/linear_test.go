package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// embedded is an engine in the test's process, with goroutines of its own. Its disk is in memory. Again
// and again the power is cut, or the disk is left as the kill of a process leaves it.
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

func newEmbedded(t *testing.T, yaml string, seed uint64, cuts int) *embedded {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	s := &embedded{catalog: c, rng: rand.New(rand.NewPCG(seed, 1)), disk: vfs.NewMem(), cuts: cuts}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens the engine, again if the power is cut meanwhile. The caller holds mu, or nobody else knows
// s.
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
	if s.rng.IntN(3) == 0 { // only the process was killed
		s.disk.PowerOff()
		s.disk = s.disk.KillClone()
		return
	}
	s.disk = s.disk.Crash(vfs.Crash{Choose: vfs.Seeded(s.rng.Uint64()), Unordered: s.rng.IntN(2) == 0})
}

// now returns the realm and the number of its life.
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

func (s *embedded) ask(ctx context.Context, id string, q question) (reply, error) {
	realm, life, err := s.now()
	if err != nil {
		return reply{}, err
	}
	var out reply
	switch {
	case len(q.acts) > 0:
		var res kuji.Result
		if res, err = realm.Do(ctx, q.request(id)); err == nil {
			out = q.replyOf(res)
		}
	case q.holds:
		var v kuji.PlayerView
		if v, err = realm.Player(ctx, playerNames[q.player]); kuji.CodeOf(err) == kuji.CodeNotFound {
			return reply{}, nil
		}
		out.known = true
		for _, it := range v.Items {
			out.holds[slices.Index(itemNames[:], it.Item)] = int(it.Quantity)
		}
	default:
		var v kuji.PoolView
		v, err = realm.Pool(ctx, fmt.Sprint("p", q.pool))
		for i, e := range v.Entries {
			out.left[i] = int(e.Left)
		}
	}
	if err != nil {
		return reply{}, s.failed(life, err)
	}
	return out, nil
}

// request returns an act as the engine's request.
func (q question) request(id string) kuji.Request {
	if len(q.acts) == 1 {
		return q.acts[0].request(id)
	}
	group := kuji.Atomic{ID: id}
	for _, a := range q.acts {
		group.Members = append(group.Members, a.request(""))
	}
	return group
}

func (a act) request(id string) kuji.Request {
	var stacks []kuji.Stack
	for i, n := range a.items {
		if n > 0 {
			stacks = append(stacks, kuji.Stack{Item: itemNames[i], Quantity: uint64(n)})
		}
	}
	switch {
	case a.count > 0:
		return kuji.Draw{ID: id, Player: playerNames[a.from], Pool: fmt.Sprint("p", a.pool), Count: a.count}
	case a.from == nobody:
		return kuji.Grant{ID: id, Player: playerNames[a.to], Items: stacks}
	case a.to == nobody:
		return kuji.Consume{ID: id, Player: playerNames[a.from], Items: stacks}
	}
	return kuji.Transfer{ID: id, From: playerNames[a.from], To: playerNames[a.to], Items: stacks}
}

// replyOf returns an engine's result as a reply.
func (q question) replyOf(res kuji.Result) reply {
	out := reply{status: res.Status, replayed: res.Replayed}
	members := res.Members
	if len(q.acts) == 1 {
		members = []kuji.Result{res}
	}
	for i, m := range members {
		if m.Status != kuji.OK && m.Status != kuji.Aborted {
			out.failed = i
		}
		for _, o := range m.Outcomes {
			out.drawn[i][o.Entry[0]-'a']++
		}
	}
	return out
}

// TestLinearizable: to concurrent clients, pools and players look as if requests were carried out one at
// a time, through power cuts too.
func TestLinearizable(t *testing.T) {
	lives := 0
	var found checks
	for n := range *histories {
		s := newEmbedded(t, historyCatalog, uint64(n), n%6)
		history := takeHistory(t, s, uint64(n))
		if s.err != nil {
			t.Fatalf("history %d: %v", n, s.err)
		}
		found.check(t, history)
		if err := s.engine.Close(); err != nil && !errors.Is(err, vfs.ErrCrashed) {
			t.Errorf("history %d: %v", n, err)
		}
		lives += s.life
		if t.Failed() {
			t.Fatalf("history %d", n)
		}
	}
	found.report(t, lives)
}
