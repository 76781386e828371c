package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/verify"
)

// Several nodes share one log. Any of them takes the realm over at any time, as often as it likes:
// only the log keeps two writers apart. Some follow the log first. Messages to the log and answers
// from it are lost, doubled or late. Nodes are cut off, stand still, and die in the middle of
// everything. At the end one node verifies the log, and the model judges it and what clients were
// told. They also share a board, which all of them update.

// cluster is one such run.
type cluster struct {
	*world
	*game
	rng     *rand.Rand
	fibers  *fibers
	shared  *drivertest.Shared
	nodes   [3]*member
	drivers int
	over    bool      // nothing new begins
	last    []*member // who follows at the end
	board   board
	Cluster ClusterReport
}

// ClusterReport counts what runs did.
type ClusterReport struct {
	Events, Acked, Unknown, Takeovers, Deposed, Kills, Cuts, Closed, Large, Snapshots, Trims, Reads, Follows, Hot, Stale, Compared, Reopened, Posts, Raced int
}

// Add sums up runs.
func (r *ClusterReport) Add(o ClusterReport) {
	r.Events += o.Events
	r.Acked += o.Acked
	r.Unknown += o.Unknown
	r.Takeovers += o.Takeovers
	r.Deposed += o.Deposed
	r.Kills += o.Kills
	r.Cuts += o.Cuts
	r.Closed += o.Closed
	r.Large += o.Large
	r.Snapshots += o.Snapshots
	r.Trims += o.Trims
	r.Reads += o.Reads
	r.Follows += o.Follows
	r.Hot += o.Hot
	r.Stale += o.Stale
	r.Compared += o.Compared
	r.Reopened += o.Reopened
	r.Posts += o.Posts
	r.Raced += o.Raced
}

// member is a node in one of its lives.
type member struct {
	number int
	skew   int64 // of its clock, in milliseconds
	engine *kuji.Engine
	realm  *kuji.Realm // nil while it is being opened
	kept   *mortal
	dead   bool
	busy   bool // it puts a catalog in force, takes over, or closes
	cut    bool
	hot    bool // it follows before it leads
	posts  bool // it updates the board
}

// mortal is a driver in a process that can die.
type mortal struct {
	driver.Shared
	trims  func() // called before each trim
	realms []driver.Realm
}

func (m *mortal) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	r, err := m.Shared.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	m.realms = append(m.realms, r)
	return &watched{r, m}, nil
}

// watched is a realm whose log is read before each trim.
type watched struct {
	driver.Realm
	by *mortal
}

func (w *watched) Trim(ctx context.Context, before driver.Cursor) error {
	w.by.trims()
	return w.Realm.Trim(ctx, before)
}

// die ends everything that the process is doing at its driver.
func (m *mortal) die() {
	for _, r := range m.realms {
		r.Close() // nobody is left to hear of the error
	}
	m.Shared.Close()
}

var clusterKey = [32]byte{1, 2, 3}

// RunTakeover simulates one seed.
func RunTakeover(seed uint64) (rep ClusterReport, failure error) {
	w := newWorld(Config{Seed: seed, Realms: 1, Clients: 3, Requests: 12, Faults: Network | Catalogs})
	c := &cluster{world: w, game: w.games[0], rng: stream(seed, 7)}
	c.game.clock.highest = math.MaxInt64
	c.fibers = &fibers{rng: stream(seed, 8), entropy: w.entropy, now: epoch}
	o := drivertest.SharedOptions{Rand: stream(seed, 9), Unconditional: seed%3 == 0}
	hook.Shared(&o, c.fibers)
	if seed%5 > 0 {
		o.Faults = drivertest.Faults{Lose: 25, Double: 60, Late: 40, Lag: 100}
	}
	c.shared = drivertest.NewShared(o)
	defer func() {
		rep = c.Cluster
		if r := recover(); r != nil {
			err := fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			if b, ok := r.(broken); ok {
				err = b.err
			}
			failure = fmt.Errorf("seed %d: %w\n%s", seed, err, strings.Join(c.tail, "\n"))
		}
	}()
	c.run()
	return c.Cluster, nil
}

func (c *cluster) run() {
	for range 1500 + c.rng.IntN(1500) {
		c.turn()
	}
	c.over = true
	for i, m := range c.nodes {
		c.shared.Partition(i, false)
		switch {
		case m == nil:
		case m.follows() && !m.busy:
			c.last = append(c.last, m)
		default:
			c.kill(m)
		}
	}
	c.finish()
}

// turn does one thing that can be done now.
func (c *cluster) turn() {
	c.fibers.now += c.rng.Int64N(3)
	n := c.rng.IntN(1000)
	m := c.nodes[c.rng.IntN(len(c.nodes))]
	switch {
	case n < 700:
		c.fibers.run()
	case n < 712:
		c.start(c.rng.IntN(len(c.nodes)))
	case m == nil:
	case n < 717:
		c.note("node %d dies", m.number)
		c.Cluster.Kills++
		c.kill(m)
	case n < 725:
		m.cut = !m.cut
		c.note("node %d is cut off: %v", m.number, m.cut)
		c.Cluster.Cuts++
		c.shared.Partition(m.number, m.cut)
	case n >= 988:
		c.post(m)
	case m.realm == nil || m.busy:
	case n < 727:
		c.close(m)
	case n < 730 && m.hot:
		c.reopen(m)
	case n < 750 && m.hot && (n < 729 || m.follows() || m.realm.Err() != nil):
		c.lead(m)
	case n < 735:
		c.snapshot(m)
	case n < 755:
		c.look(m)
	case n < 770:
		c.apply(m)
	case n < 772 && c.Cluster.Large == 0 && c.cfg.Seed%4 == 0:
		c.large(m)
	case n > 970 && c.cfg.Seed%8 == 1:
		c.snapshot(m)
	case m.follows() && c.rng.IntN(20) > 0: // it would refuse a request
		if n < 830 {
			c.look(m)
		}
	default:
		c.ask(m)
	}
}

// drain lets everything under way end.
func (c *cluster) drain() {
	for range 2_000_000 {
		if !c.fibers.run() {
			return
		}
	}
	c.fail("no end: %d tasks are left", len(c.fibers.ready))
}

// start makes a node take the realm over, unless it has it.
func (c *cluster) start(number int) {
	if old := c.nodes[number]; old != nil {
		if old.realm == nil || old.busy {
			return
		}
		err := old.realm.Err()
		if err == nil && c.rng.IntN(4) > 0 {
			return
		}
		if err != nil && !old.realm.Replica().Leads() {
			c.lost(old, err)
		}
		c.kill(old)
	}
	m := &member{number: number, skew: c.rng.Int64N(4000), hot: c.rng.IntN(2) == 0}
	c.drivers++
	m.kept = &mortal{Shared: c.shared.Node(number), trims: func() { c.beforeTrim(m) }}
	c.nodes[number] = m
	c.fibers.Go(func() { c.open(m) })
}

func (c *cluster) options(m *member) kuji.Options {
	o := kuji.Options{
		Driver: m.kept, Key: clusterKey, Follow: m.hot, MaxPending: 1 << 20, SnapshotEvery: -1,
		Now: func() time.Time { return time.UnixMilli(c.fibers.now + m.skew) },
	}
	if c.cfg.Seed%4 == 1 {
		o.SnapshotEvery = 1500
	}
	if c.cfg.Seed%8 < 2 {
		o.SnapshotEvery, o.TrimLog = 250, true
	}
	return o
}

// follows reports whether a node follows.
func (m *member) follows() bool {
	return m.realm != nil && !m.realm.Replica().Leads() && m.realm.Err() == nil
}

// lost judges why a node stopped following.
func (c *cluster) lost(m *member, err error) {
	_, trimmed := errors.AsType[*driver.TrimmedError](err)
	switch {
	case (trimmed || errors.Is(err, driver.ErrNotExist)) && c.Cluster.Trims > 0: // it was too slow
	case kuji.CodeOf(err) == kuji.CodeNotLeader, errors.Is(err, driver.ErrUnavailable): // when it was to lead
	default:
		c.fail("node %d follows no more: %w", m.number, err)
	}
}

// lead makes a follower lead. One that was deposed must refuse.
func (c *cluster) lead(m *member) {
	leads, stopped := m.realm.Replica().Leads(), m.realm.Err()
	m.busy = true
	c.note("node %d is to lead: it leads %v, %v", m.number, leads, stopped)
	c.fibers.Go(func() {
		err := m.realm.Replica().Lead(context.Background())
		m.busy = false
		switch {
		case m.dead:
		case err == nil && stopped != nil:
			c.fail("node %d leads with a state that had stopped: %w", m.number, stopped)
		case err == nil && !leads:
			c.Cluster.Hot++
			c.note("node %d has epoch %d at %d", m.number, m.realm.Stats().Epoch, m.realm.Stats().Position)
		case err != nil && !m.realm.Replica().Leads():
			c.lost(m, err)
		}
	})
}

// open takes the realm over, or begins to follow.
func (c *cluster) open(m *member) {
	c.note("node %d opens the realm, to follow: %v", m.number, m.hot)
	opened, err := hook.OpenDriver(c.fibers, c.options(m))
	if err != nil {
		c.fail("opening failed: %w", err)
	}
	m.engine = opened.(*kuji.Engine)
	for !m.dead {
		realm, err := m.engine.Realm(c.name)
		if m.dead {
			return
		}
		if err == nil {
			m.realm = realm
			if m.hot {
				c.Cluster.Follows++
				return
			}
			c.Cluster.Takeovers++
			c.note("node %d has epoch %d at %d", m.number, realm.Stats().Epoch, realm.Stats().Position)
			return
		}
		c.note("node %d: %v", m.number, err)
		if code := kuji.CodeOf(err); code != kuji.CodeNotLeader && !errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrUnknown) {
			c.fail("node %d cannot open the realm: %w", m.number, err)
		}
		c.fibers.Step()
	}
}

// kill makes a node die. What it was doing ends at some time, and nobody hears of it.
func (c *cluster) kill(m *member) {
	m.dead = true
	m.kept.die()
	c.nodes[m.number] = nil
}

// close closes a node properly, if it can.
func (c *cluster) close(m *member) {
	m.busy = true
	c.fibers.Go(func() {
		err := m.engine.Close()
		c.note("node %d closed: %v", m.number, err)
		c.Cluster.Closed++
		if !m.dead {
			c.kill(m)
		}
	})
}

// reopen closes the realm alone, properly if it can, and opens it again in the same engine, to follow.
// That is what a leader does that steps down or has stopped.
func (c *cluster) reopen(m *member) {
	if err := m.realm.Err(); err != nil && !m.realm.Replica().Leads() {
		c.lost(m, err)
	}
	m.busy = true
	c.note("node %d reopens the realm: it leads %v, %v", m.number, m.realm.Replica().Leads(), m.realm.Err())
	c.fibers.Go(func() {
		old := m.realm
		err := m.engine.CloseRealm(context.Background(), c.name)
		c.note("node %d closed the realm: %v", m.number, err)
		for !m.dead {
			realm, err := m.engine.Lookup(c.name)
			switch {
			case m.dead:
			case err == nil:
				if realm == old || realm.Replica().Leads() {
					c.fail("node %d has a realm that was closed, or leads", m.number)
				}
				if _, err := old.Player(kuji.Stale(context.Background()), "ann"); err == nil {
					c.fail("node %d answers from a realm that was closed", m.number)
				}
				m.realm, m.busy = realm, false
				c.Cluster.Reopened++
				return
			case !errors.Is(err, driver.ErrUnavailable):
				c.fail("node %d cannot open the realm again: %w", m.number, err)
			}
			c.fibers.Step()
		}
	})
}

// version returns the version of the catalog in force at a node, 0 for none.
func (m *member) version() int { return int(m.realm.Stats().CatalogVersion) }

// fair judges a node's error.
func (c *cluster) fair(m *member, err error) {
	switch kuji.CodeOf(err) {
	case kuji.CodeUnknownOutcome:
		c.Cluster.Unknown++
	case kuji.CodeNotLeader:
		c.Cluster.Deposed++
	case kuji.CodeFormat: // before the first catalog, which raises the level
	case kuji.CodeInvalid, kuji.CodeIDReused, kuji.CodeOverloaded, kuji.CodeConflict, kuji.CodeCanceled:
	case kuji.CodeClosed:
		if !m.dead && !m.busy {
			c.fail("node %d says that it is closed: %w", m.number, err)
		}
	case kuji.CodeFailed:
		if !m.dead && !m.busy && !errors.Is(err, driver.ErrUnavailable) {
			c.fail("node %d has failed: %w", m.number, err)
		}
	default:
		c.fail("an error that nothing explains: %w", err)
	}
}

// ask sends a client's request to a node.
func (c *cluster) ask(m *member) {
	cl := c.clients[c.rng.IntN(len(c.clients))]
	var k *call
	if n := len(cl.calls); n > 0 && c.rng.IntN(3) == 0 {
		k = cl.calls[c.rng.IntN(n)] // again, perhaps at another node
	} else {
		k = cl.next(c.world)
	}
	if k.id == "" && k.sent > 0 {
		return
	}
	k.sent++
	before := m.version()
	m.realm.Submit(k.req, func(res kuji.Result, err error) {
		c.note("node %d answers %q: %v %v", m.number, k.id, res, kuji.CodeOf(err))
		for v := before; v <= m.version() && kuji.CodeOf(err) == kuji.CodeNotFound; v++ {
			if v == 0 || namesUnknown(c.catalogs[v-1], k.req) {
				return
			}
		}
		if err != nil {
			c.fair(m, err)
			return
		}
		c.Cluster.Acked++
		c.acks = append(c.acks, ack{call: k, res: res})
	})
}

// large sends more requests at once than fit into an entry of the log.
func (c *cluster) large(m *member) {
	reqs, calls := make([]kuji.Request, 900), make([]*call, 900)
	for i := range reqs {
		k := &call{client: c.clients[0], id: fmt.Sprintf("%050d-%d-%d", c.rng.IntN(1<<30), c.drivers, i)}
		k.req = kuji.Draw{ID: k.id, Player: "ann", Pool: "nosuch"}
		reqs[i], calls[i] = k.req, k
	}
	m.busy = true
	c.fibers.Go(func() {
		results, err := m.realm.DoAll(context.Background(), reqs)
		m.busy = false
		if err != nil {
			c.fair(m, err)
			return
		}
		c.Cluster.Large++
		for i, res := range results {
			if res.Status != kuji.Refused {
				c.acks = append(c.acks, ack{call: calls[i], res: res})
			}
		}
	})
}

// apply puts the next catalog in force.
func (c *cluster) apply(m *member) {
	version := m.version()
	if version >= len(c.catalogs) || version > 0 && c.rng.IntN(8) > 0 {
		return
	}
	m.busy = true
	c.fibers.Go(func() {
		res, err := m.realm.Catalogs().Apply(context.Background(), c.catalogs[version], kuji.ApplyOptions{Over: new(uint64(version))})
		m.busy = false
		if err != nil {
			c.fair(m, err)
			return
		}
		c.acks = append(c.acks, ack{kind: "catalog", res: res})
	})
}

// snapshot makes a node take a snapshot.
func (c *cluster) snapshot(m *member) {
	c.fibers.Go(func() {
		_, err := m.realm.Snapshot(context.Background())
		if err == nil {
			c.Cluster.Snapshots++
		} else if code := kuji.CodeOf(err); code != kuji.CodeFailed {
			c.fair(m, err)
		}
	})
}

// look reads a player at a node, which may have been deposed without knowing.
func (c *cluster) look(m *member) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	rd := read{position: m.realm.Stats().Position, player: players[c.rng.IntN(len(players))]}
	if !m.realm.Replica().Leads() { // it shows nothing that may be lost, without waiting
		if _, err := m.realm.Player(ctx, rd.player); err == nil {
			c.fail("node %d follows, and answers what must be new", m.number)
		}
		ctx = kuji.Stale(ctx)
		c.Cluster.Stale++
	}
	for _, other := range c.nodes { // one may be deposed and not know it
		if other == nil || other.realm == nil {
			continue
		}
		if st := other.realm.Stats(); st.Position <= rd.position {
			if err := m.realm.Replica().Compare(fmt.Sprint(other.number), st.Position, st.Chain); err != nil {
				c.fair(m, err)
			}
			c.Cluster.Compared++
		}
	}
	var err error
	rd.holds, err = m.realm.Player(ctx, rd.player)
	rd.seen = err == nil
	if code := kuji.CodeOf(err); code != 0 && code != kuji.CodeNotFound {
		c.fair(m, err)
		return
	}
	if rd.holds.Position > rd.position {
		c.fail("a read shows position %d, only %d is durable", rd.holds.Position, rd.position)
	}
	c.Cluster.Reads++
	c.reads = append(c.reads, rd)
}

// verifyAt verifies the log, at least as far as a node knows it.
func (c *cluster) verifyAt(m *member) (records []kuji.Record, rep verify.Report) {
	for range 2000 {
		var err error
		records = records[:0]
		rep, err = verify.Driver(c.shared.Node(len(c.nodes)), c.name, verify.Options{Seen: func(r kuji.Record) { records = append(records, r) }, Keys: [][32]byte{clusterKey}})
		switch {
		case err == nil && (m.dead || rep.Position >= m.realm.Stats().Position):
			return records, rep
		case err != nil && !c.passes(err):
			c.fail("the log cannot be verified: %w", err)
		}
		c.fibers.Step() // messages were lost, or it saw an old end
	}
	c.fail("the log cannot be verified as far as node %d knows it", m.number)
	return nil, rep
}

// passes reports whether lost messages, or what the nodes removed meanwhile, can explain an error of
// Verify.
func (c *cluster) passes(err error) bool {
	_, trimmed := errors.AsType[*driver.TrimmedError](err)
	return errors.Is(err, driver.ErrUnavailable) || !c.over && (trimmed || errors.Is(err, driver.ErrNotExist))
}

// beforeTrim reads the log before a node trims it.
func (c *cluster) beforeTrim(m *member) {
	records, rep := c.verifyAt(m)
	c.archive = c.whole(records, rep.From)
	c.Cluster.Trims++
	c.note("node %d trims the log, %d events were read", m.number, len(c.archive))
}

// same checks that a follower comes to the same state, and closes it.
func (c *cluster) same(m *member, position uint64, want [32]byte) {
	err := m.realm.Replica().Await(context.Background(), position)
	if err == nil {
		var got [32]byte
		if got, _, err = m.realm.StateHash(kuji.Stale(context.Background())); err == nil && got != want {
			c.fail("node %d follows with state %x at %d, recovered %x", m.number, got, position, want)
		}
	}
	if err != nil {
		c.lost(m, err)
	}
	c.kill(m)
}

// finish verifies what the nodes have left, and lets the model judge it.
func (c *cluster) finish() {
	last := &member{number: len(c.nodes) + 1}
	last.kept = &mortal{Shared: c.shared.Node(last.number), trims: func() {}}
	var position uint64
	var hash [32]byte
	c.fibers.Go(func() {
		c.open(last)
		err := last.realm.Settle(context.Background()) // what is due would come any time
		if err != nil {
			c.fail("settle: %w", err)
		}
		if hash, position, err = last.realm.StateHash(context.Background()); err != nil {
			c.fail("state hash: %w", err)
		}
		for _, m := range c.last {
			c.same(m, last.realm.Stats().Position, hash)
		}
	})
	c.drain()
	// The seeds of all epochs but the last, which is still open, are in the log.
	var records []kuji.Record
	var rep verify.Report
	c.fibers.Go(func() {
		records, rep = c.verifyAt(last)
		c.judgeBoard(last)
	})
	c.drain()
	last.dead = true
	last.kept.die()
	c.drain()
	if rep.StateHash != hash || rep.Position < position {
		c.fail("verified state %x at %d, recovered %x at %d", rep.StateHash, rep.Position, hash, position)
	}
	records = c.whole(records, rep.From)
	for i, e := range rep.Epochs {
		if e.Revealed != (i < len(rep.Epochs)-1) || e.Lost {
			c.fail("epoch %d of %d: revealed %v, lost %v", e.Epoch, rep.Epochs[len(rep.Epochs)-1].Epoch, e.Revealed, e.Lost)
		}
	}
	c.replay(records, rep.Position)
	if err := c.told(records); err != nil {
		c.fail("%w", err)
	}
	c.Cluster.Events = len(records)
}
