package kuji

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/economy"
	"github.com/kuji-dev/kuji/internal/step"
)

// Realm is one game or campaign: one ordered log, one state, one writer. All
// methods may be called concurrently.
type Realm struct {
	name string
	dir  string
	o    Options
	log  entryLog

	// chain is where the writer stands in the log. It belongs to openRealm,
	// then to the flusher, then to close: never to two at once.
	chain  chain
	offset uint64 // of the chain's last entry in the log; as chain
	next   uint64 // offset that the next append must get: another's entry there deposes this writer; as chain
	spare  *batch // for reuse; the flusher's alone

	writer     [16]byte
	epoch      uint64   // the writer's epoch; fixed once open
	commitment [32]byte // of the epoch; fixed once open
	seed       seed     // of the epoch; fixed once open
	batchID    uint64   // of the newest appended entry of this writer; as chain

	// catalogs is held while a catalog is prepared and put in force, or planned,
	// which takes long and is done without mu where it can be. Before mu.
	catalogs sync.Mutex

	// turn is held by who carries out many requests, for as long as mu: between two
	// of them the flusher gets mu, and whoever else waits. Before mu.
	turn sync.Mutex

	mu        sync.Mutex
	state     *economy.State
	source    countedSource
	epochs    []epochInfo   // ascending by first position, the current one last
	open      *batch        // takes events
	queue     queue         // draws of the open batch that are yet to be carried out
	inflight  *batch        // being appended; nil when the flusher is idle
	room      chan struct{} // closed and replaced when open is handed to the flusher
	wake      *sync.Cond    // on mu: the flusher waits for events or for closing
	enough    int           // bytes in the open batch for which the flusher is roused
	gathering gathering
	closing   bool
	err       *Error // why the realm stopped; nil while healthy
	stats     Stats
	outcomes  slab // for results
	snap      snapshots

	fresh    atomic.Bool           // with coarse time stamps: that of the open batch is not a millisecond old
	acked    atomic.Uint64         // position of the newest acknowledged batch
	answered atomic.Uint64         // events acknowledged since opening
	stopped  atomic.Pointer[Error] // why nothing can be asked any more, for readers without mu
	flushed  chan struct{}         // closed when the flusher has ended
	ended    bool                  // under mu: flushed is closed; used when the flusher runs as tasks
}

// epochInfo is what receipts need of an epoch.
type epochInfo struct {
	first      uint64 // position of its epoch-begin
	epoch      uint64
	commitment [32]byte
	revealed   bool // the seed is in the log
}

// Stats are counters of a realm since it was opened, and sizes now.
type Stats struct {
	Position        uint64 // of the newest acknowledged batch
	Batches         uint64 // appended since opening
	Events          uint64 // appended since opening
	Draws           uint64 // single draws that ended OK, since opening
	Failures        uint64 // events with a status other than OK, since opening
	Replays         uint64 // answers given again, since opening
	LogBytes        uint64 // appended since opening
	Players         uint64 // seen so far
	RequestIDs      uint64 // remembered now
	RequestIDLimit  uint64 // how many younger than the idempotency window's age there can be
	RequestIDBytes  uint64 // of memory that they take, about
	OldestRequestID int64  // Unix milliseconds: when the oldest remembered was answered; 0: none
	RefusedIDs      uint64 // requests refused because the limit was reached, since opening
	PendingBytes    uint64 // waiting for the log now
	Recovered       uint64 // position found at opening
	RecoveredEvents uint64 // replayed at opening
	CatalogVersion  uint64 // in force
	Snapshots       uint64 // taken since opening
	Snapshot        uint64 // position of the newest; 0: none
	SnapshotErr     error  // of the last attempt since opening, nil when it succeeded
	Epoch           uint64 // of this writer
}

// Name returns the realm's name.
func (r *Realm) Name() string { return r.name }

// Err returns nil while the realm is healthy, and why it stopped otherwise.
func (r *Realm) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil
	}
	return r.err
}

// Stats returns counters and sizes.
func (r *Realm) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	if s.Position = r.acked.Load(); r.o.Sync == SyncOff {
		s.Position = r.state.Position()
	}
	s.Players = uint64(r.state.Players())
	ids := r.state.Window()
	s.RequestIDs, s.RequestIDLimit, s.RequestIDBytes, s.OldestRequestID = ids.Remembered, ids.Limit, ids.Bytes, ids.Oldest
	s.CatalogVersion = r.state.Version()
	s.Epoch = r.epoch
	s.SnapshotErr = r.snap.err
	if n := len(r.snap.files); n > 0 {
		s.Snapshot = r.snap.files[n-1].position
	}
	for _, b := range []*batch{r.open, r.inflight} {
		if b != nil && b.events > 0 {
			s.PendingBytes += uint64(len(b.buf))
		}
	}
	return s
}

// Apply puts a catalog in force, durably. The catalog in force already is not
// applied again: the result is then the one of the call that applied it. A catalog
// that the realm's state refuses gives CodeConflict.
func (r *Realm) Apply(ctx context.Context, c *catalog.Catalog) (Result, error) {
	return r.apply(ctx, c, nil)
}

// ApplyOver is Apply over the version of the catalog in force that the caller
// has seen, 0 for none. When another one is in force, CodeConflict: somebody
// else has applied a catalog meanwhile, and Plan says what this one would do
// now. The catalog in force already gives the result of the call that applied
// it, whatever version was expected, so that a lost answer can be asked for again.
func (r *Realm) ApplyOver(ctx context.Context, c *catalog.Catalog, version uint64) (Result, error) {
	return r.apply(ctx, c, &version)
}

func (r *Realm) apply(ctx context.Context, c *catalog.Catalog, over *uint64) (Result, error) {
	if err := checkCatalog(c); err != nil {
		return Result{}, err
	}
	var res Result
	b, err := r.putInForce(ctx, c, over, &res)
	if err != nil {
		return Result{}, err
	}
	if err := r.await(ctx, b); err != nil {
		return Result{}, err
	}
	return res, nil
}

// putInForce decides and applies a catalog and fills in res. Without an error
// the caller holds mu, and the batch is the one that makes the result durable.
func (r *Realm) putInForce(ctx context.Context, c *catalog.Catalog, over *uint64, res *Result) (*batch, error) {
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	prepared, refused := r.state.Prepare(c)
	laid, err := r.makeReady(ctx, prepared)
	if err != nil {
		return nil, err
	}
	b, conflict, err := r.decideCatalog(prepared, laid, refused, over, res)
	switch {
	case conflict != nil:
		return nil, r.conflict(ctx, conflict)
	case err != nil:
		r.mu.Unlock()
		return nil, err
	case r.o.Sync == SyncOff:
		return nil, nil
	}
	return b, nil
}

// makeReady takes mu for a prepared catalog to be put in force, when that does not take long any more, and
// returns what layOut does. It does the same without one. Without an error the caller holds mu.
func (r *Realm) makeReady(ctx context.Context, p *economy.Prepared) (laid []byte, err error) {
	ready := false
	defer func() {
		if !ready { // or draws would be put down for nobody
			r.mu.Lock()
			r.state.Unwatch()
			r.mu.Unlock()
		}
	}()
	if p != nil {
		r.stage(p)
		laid = layOut(p)
	}
	err = r.lockCaughtUp(ctx, p)
	ready = err == nil
	return laid, err
}

// stage computes beside requests what a prepared catalog makes of the pools that it changes.
func (r *Realm) stage(p *economy.Prepared) {
	r.mu.Lock()
	changes := r.state.Watch(p)
	r.mu.Unlock()
	if changes {
		r.state.Stage(p)
	}
}

// mostCatchUps is how often a catalog catches up with what was drawn meanwhile before it is
// put in force all the same. Each time there is less, as catching up with a draw takes less time than a draw.
const mostCatchUps = 16

// lockCaughtUp is lockForRoom for a catalog that is to be put in force, which does not take long then.
func (r *Realm) lockCaughtUp(ctx context.Context, p *economy.Prepared) error {
	for n := 0; ; n++ {
		if err := r.lockForRoom(ctx); err != nil {
			return err
		}
		if n == mostCatchUps || !r.state.Lags(p) {
			return nil
		}
		r.mu.Unlock()
		p.CatchUp()
	}
}

// layRoom is how much of an open batch there is room for before a catalog that is laid out.
const layRoom = 1 << 20

// layOut encodes a prepared catalog behind room for the open batch, so that it is not copied under mu, unless there is
// more in the batch. To get memory for a large one can take milliseconds, and many while garbage is collected. It
// returns nil for a small one, and for the one that is in force.
func layOut(p *economy.Prepared) []byte {
	const small = 64 << 10
	n := p.Size()
	if n < small || p.Unchanged() {
		return nil
	}
	return p.AppendEvent(make([]byte, layRoom, layRoom+n))
}

// behind returns what the open batch has and a catalog's event, which may have been laid out.
func behind(open, laid []byte, ev *economy.Event) []byte {
	if laid == nil || len(open) > layRoom {
		return economy.AppendEvent(open, ev)
	}
	laid = laid[layRoom-len(open):]
	copy(laid, open)
	return laid
}

// decideCatalog is decide for a prepared catalog. A conflict rests on the state.
// The caller holds mu.
func (r *Realm) decideCatalog(p *economy.Prepared, laid []byte, refused error, over *uint64, res *Result) (b *batch, conflict *Error, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, conflict, err = nil, nil, r.broken(p)
		}
		r.state.Unwatch()
	}()
	var ev *economy.Event
	if refused == nil {
		ev, refused = r.state.DecideCatalog(p)
	}
	switch version := r.state.Version(); {
	case over != nil && *over != version && (ev != nil || refused != nil):
		return nil, errf(CodeConflict, "version", "version %d is in force, not %d", version, *over), nil
	case refused != nil:
		return nil, &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: refused}, nil
	}
	if ev == nil {
		v := r.state.Catalog()
		r.receipt(&res.Receipt, v.Position, int(v.Index), v.Time, v.Version)
		return r.batchAt(v.Position), nil, nil
	}
	if n := len(ev.Catalog); n > maxCatalogEvent {
		return nil, nil, errf(CodeInvalid, "catalog", "%d bytes when compiled; at most %d are allowed", n, maxCatalogEvent)
	}
	b = r.open
	r.stamp(b)
	before := b.buf
	if err := r.commitEncoded(b, ev, behind(before, laid, ev), res); err != nil {
		return nil, nil, err
	}
	if r.o.Sync == SyncOff {
		b.buf = before
	} else {
		b.laid = b.laid || laid != nil
	}
	res.Receipt.CatalogVersion = r.state.Version()
	return b, nil, nil
}

// checkCatalog refuses a catalog that did not come from Parse and is malformed.
func checkCatalog(c *catalog.Catalog) error {
	if c == nil {
		return errf(CodeInvalid, "catalog", "nil; a catalog is needed")
	}
	if err := c.Check(); err != nil {
		return &Error{Code: CodeInvalid, Field: "catalog", Message: "malformed", Err: err}
	}
	return nil
}

// Plan says what Apply would do, without doing it. What it says of draws is as of some moment meanwhile,
// and durable when it returns. CodeConflict as for Apply.
func (r *Realm) Plan(ctx context.Context, c *catalog.Catalog) (Plan, error) {
	if err := checkCatalog(c); err != nil {
		return Plan{}, err
	}
	r.catalogs.Lock()
	defer r.catalogs.Unlock()
	r.mu.Lock()
	r.carryOut()
	if err := r.usable(); err != nil {
		r.mu.Unlock()
		return Plan{}, err
	}
	planner := r.state.Planner()
	r.mu.Unlock()
	p, err := planner.Plan(c)
	r.mu.Lock()
	if err != nil {
		return Plan{}, r.conflict(ctx, &Error{Code: CodeConflict, Field: "catalog", Message: "the realm's state refuses it", Err: err})
	}
	pos := r.state.Position() // no less than that of anything that the plan has seen
	r.mu.Unlock()
	if err := r.settle(ctx, pos); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// conflict unlocks mu, which the caller holds, and returns why the state refuses
// a catalog, once that state is durable.
func (r *Realm) conflict(ctx context.Context, refused *Error) error {
	pos := r.state.Position()
	r.mu.Unlock()
	if failed := r.settle(ctx, pos); failed != nil {
		return failed
	}
	return refused
}

// Reads run beside the writer: they take a lock for as long as it takes to copy
// one player or a part of a pool, never the realm's, unless what they read is
// not durable yet.

// Catalog returns the catalog in force, once it is durable.
func (r *Realm) Catalog(ctx context.Context) (CatalogView, error) {
	if err := r.halted(); err != nil {
		return CatalogView{}, err
	}
	v := r.state.Catalog()
	if err := r.settle(ctx, v.Position); err != nil {
		return CatalogView{}, err
	}
	return CatalogView(v), nil
}

// Player returns what a player holds. It waits until that is durable, and for
// nothing else; CodeNotFound when the player was never seen.
func (r *Realm) Player(ctx context.Context, id string) (PlayerView, error) {
	v, err := r.StalePlayer(id)
	if err == nil {
		err = r.settle(ctx, v.Position)
	}
	if err != nil {
		return PlayerView{}, err
	}
	return v, nil
}

// StalePlayer is Player without the wait: what it returns can still be lost
// in a crash.
func (r *Realm) StalePlayer(id string) (PlayerView, error) {
	if err := r.halted(); err != nil {
		return PlayerView{}, err
	}
	h, ok := r.state.Player(id)
	if !ok {
		return PlayerView{}, r.unseen(id)
	}
	return PlayerView{ID: id, Items: h.Items, Position: h.Last}, nil
}

func (r *Realm) unseen(player string) error {
	return errf(CodeNotFound, "player", "player %q was never seen in realm %q", player, r.name)
}

// Balance returns how many of one item a player holds, as Player does, without
// an allocation. CodeNotFound when the player was never seen, or the catalog in
// force has no such item.
func (r *Realm) Balance(ctx context.Context, player, item string) (uint64, error) {
	b, err := r.balance(player, item)
	if failed := r.settle(ctx, b.Last); failed != nil {
		return 0, failed
	}
	return b.Quantity, err
}

// StaleBalance is Balance without the wait: what it returns can still be lost
// in a crash.
func (r *Realm) StaleBalance(player, item string) (uint64, error) {
	b, err := r.balance(player, item)
	return b.Quantity, err
}

func (r *Realm) balance(player, item string) (economy.Balance, error) {
	if err := r.halted(); err != nil {
		return economy.Balance{}, err
	}
	b := r.state.Balance(player, item)
	switch {
	case !b.Named:
		return b, errf(CodeNotFound, "item", "there is no item %q in the catalog of realm %q", item, r.name)
	case !b.Seen:
		return b, r.unseen(player)
	}
	return b, nil
}

// Pool returns a pool's stock and odds. It waits until that is durable, and
// for nothing else; CodeNotFound when the catalog in force has no such pool. A
// pool of more than 4096 entries is read in parts, between which draws may
// happen.
func (r *Realm) Pool(ctx context.Context, id string) (PoolView, error) {
	return r.PoolPage(ctx, id, 0, math.MaxInt)
}

// PoolPage is Pool with at most count of the entries, from an index in the
// catalog's order on: none, when there are not so many. Everything else is the
// whole pool's. It takes time in proportion to count, not to the pool's size.
// CodeInvalid when from or count is negative.
func (r *Realm) PoolPage(ctx context.Context, id string, from, count int) (PoolView, error) {
	v, err := r.StalePoolPage(id, from, count)
	if err != nil && CodeOf(err) != CodeNotFound {
		return PoolView{}, err
	}
	if failed := r.settle(ctx, v.Position); failed != nil { // that there is none rests on the catalog
		return PoolView{}, failed
	}
	return v, err
}

// StalePool is Pool without the wait: what it returns can still be lost in a
// crash.
func (r *Realm) StalePool(id string) (PoolView, error) { return r.StalePoolPage(id, 0, math.MaxInt) }

// StalePoolPage is PoolPage without the wait: what it returns can still be lost in a
// crash.
func (r *Realm) StalePoolPage(id string, from, count int) (PoolView, error) {
	if from < 0 || count < 0 {
		return PoolView{}, errf(CodeInvalid, "page", "%d entries from %d on; neither can be negative", count, from)
	}
	if err := r.halted(); err != nil {
		return PoolView{}, err
	}
	p, ok := r.state.PoolPage(id, from, count)
	if !ok {
		return PoolView{Position: p.Last}, errf(CodeNotFound, "pool", "there is no pool %q in catalog version %d of realm %q", id, p.Version, r.name)
	}
	v := PoolView{
		ID: id, CatalogVersion: p.Version, Config: *p.Config,
		Entries: make([]EntryView, len(p.Entries)), TotalWeight: p.Total, Position: p.Last,
	}
	for i, e := range p.Entries {
		v.Entries[i] = EntryView(e)
	}
	return v, nil
}

// StateHash returns the hash of the realm's state and the position that it is
// of, once that is durable. Verify reports the same hash for the same position,
// on every machine and in every build. It holds up the realm for a time in
// proportion to the state.
func (r *Realm) StateHash(ctx context.Context) (hash [32]byte, position uint64, err error) {
	r.mu.Lock()
	if err := r.usable(); err != nil {
		r.mu.Unlock()
		return hash, 0, err
	}
	b := r.open
	if b.events == 0 { // the state is as of the batch before it
		position, hash = r.state.Position(), r.state.Hash()
		r.mu.Unlock()
		return hash, position, r.settle(ctx, position)
	}
	if b.hash == nil {
		b.hash = new([32]byte)
	}
	done := r.waitFor(b)
	r.mu.Unlock()
	if err := r.settled(ctx, b, done); err != nil {
		return hash, 0, err
	}
	return *b.hash, b.position, nil
}

// halted reports why nothing can be asked of the realm now.
func (r *Realm) halted() error {
	if err := r.stopped.Load(); err != nil {
		return err
	}
	return nil
}

// settle waits until the batch of a position is durable.
func (r *Realm) settle(ctx context.Context, pos uint64) error {
	if pos <= r.acked.Load() {
		return nil
	}
	r.mu.Lock()
	if pos <= r.acked.Load() {
		r.mu.Unlock()
		return nil
	}
	if err := r.usable(); err != nil { // it never will be
		r.mu.Unlock()
		return err
	}
	b := r.batchAt(pos)
	done := r.waitFor(b)
	r.mu.Unlock()
	return r.settled(ctx, b, done)
}

// settled waits until a batch, for which done is what waitFor returned, is durable.
func (r *Realm) settled(ctx context.Context, b *batch, done <-chan struct{}) error {
	if err := step.Wait(ctx, r.o.Steps, done); err != nil {
		return &Error{Code: CodeCanceled, Message: "while waiting for what was read to become durable", Err: err}
	}
	if b.err != nil {
		return r.Err()
	}
	return nil
}

// usable reports why nothing can be asked of the realm now. The caller holds mu.
func (r *Realm) usable() error {
	return r.halted()
}

// receipt fills in what proves a result at a position. The caller holds mu.
func (r *Realm) receipt(rc *Receipt, pos uint64, index int, time int64, version uint64) {
	rc.Realm, rc.Position, rc.Index, rc.Time, rc.CatalogVersion = r.name, pos, index, time, version
	for i := len(r.epochs) - 1; i >= 0; i-- { // nearly always the last
		if e := &r.epochs[i]; e.first <= pos {
			rc.Epoch, rc.Commitment = e.epoch, e.commitment
			return
		}
	}
}

// close ends the realm: what was accepted is answered, the epoch's seed is
// revealed, the log is closed.
func (r *Realm) close() error {
	r.mu.Lock()
	r.closing = true
	if r.err == nil {
		r.stopped.Store(errf(CodeClosed, "", "realm %q is closed", r.name))
	}
	r.rouse()
	r.mu.Unlock()
	err := step.Wait(context.Background(), r.o.Steps, r.flushed)
	err = errors.Join(err, r.endSnapshots())
	if stopped := r.Err(); stopped != nil {
		err = errors.Join(err, stopped)
	} else if err == nil {
		err = r.endEpoch()
	}
	return errors.Join(err, r.log.Close())
}
