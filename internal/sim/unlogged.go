package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// unlogged goes on with an engine that writes nothing, and so remembers nothing
// of the lives before: there is no log to audit, and the model judges every
// answer as it is given. Every request of every client comes again, in any
// order, more than once, beside catalogs, reads and a clock that jumps.
func (w *world) unlogged() {
	w.report.Unlogged++
	w.note("an engine without a log")
	r := stream(w.cfg.Seed, 4000)
	l := &life{w: w, runner: &runner{w: w}}
	o := l.options(nil)
	o.FS, o.Sync, o.SnapshotEvery, o.TrimLog = nil, kuji.SyncOff, -1, false
	engine, err := kuji.Open(dataDir, o)
	if err != nil {
		w.fail("an engine without a log: %w", err)
	}
	var all []*oracle
	for i, g := range w.games {
		u := &oracle{w: w, name: g.name, catalogs: makeCatalogs(w.cfg.Seed, len(w.games)+i, w.cfg.Faults), rng: r, model: newModel(), first: map[string]kuji.Record{}}
		if u.realm, err = engine.Realm(g.name); err != nil {
			w.fail("a realm without a log: %w", err)
		}
		if st := u.realm.Stats(); st.Recovered != 0 || st.Players != 0 || st.CatalogVersion != 0 {
			w.fail("a realm without a log remembers %+v", st)
		}
		for _, c := range w.clients {
			if c.game == g {
				u.calls = append(u.calls, c.calls...)
			}
		}
		all = append(all, u)
	}
	for range 40 * len(w.clients) * w.cfg.Requests / 10 {
		u := all[r.IntN(len(all))]
		u.step()
	}
	for _, u := range all {
		u.shows()
	}
	if err := engine.Close(); err != nil {
		w.fail("closing an engine without a log: %w", err)
	}
	for len(l.runner.tasks) > 0 { // nothing is left for them to do
		l.runner.Step()
	}
}

// oracle judges a realm by what it answers alone.
type oracle struct {
	w        *world
	name     string
	realm    *kuji.Realm
	rng      *rand.Rand
	catalogs []*catalog.Catalog
	calls    []*call
	model    *model
	first    map[string]kuji.Record // by request id
	events   uint64
}

func (u *oracle) step() {
	switch n := u.rng.IntN(20); {
	case n == 0 && int(u.model.version) < len(u.catalogs), n < 4 && u.model.version == 0:
		u.apply()
	case n == 1:
		u.w.tick()
	case n == 2:
		u.shows()
	case len(u.calls) > 0:
		u.ask(u.calls[u.rng.IntN(len(u.calls))])
	}
}

func (u *oracle) apply() {
	c := u.catalogs[u.model.version]
	res, err := u.realm.Apply(context.Background(), c)
	if err != nil {
		u.w.fail("applying a catalog: %w", err)
	}
	u.events++
	rc := res.Receipt
	if rc.CatalogVersion != u.model.version+1 {
		u.w.fail("catalog version %d after %d", rc.CatalogVersion, u.model.version)
	}
	u.judge(kuji.Record{Position: rc.Position, Index: rc.Index, Time: rc.Time, Kind: "catalog", CatalogVersion: rc.CatalogVersion - 1}, c)
}

// ask sends a request in any of the ways that there are, and judges the answer.
func (u *oracle) ask(c *call) {
	var res kuji.Result
	err := errors.New("no answer at once")
	switch u.rng.IntN(3) {
	case 0:
		res, err = u.realm.Do(context.Background(), c.req)
	case 1:
		told := 0
		u.realm.Submit(c.req, func(r kuji.Result, e error) { res, err, told = r, e, told+1 })
		if told != 1 {
			u.w.fail("%q was answered %d times at once", c.id, told)
		}
	case 2:
		var both []kuji.Result
		both, err = u.realm.DoAll(context.Background(), []kuji.Request{c.req, c.req})
		if err == nil {
			u.answer(c, both[0], both[0].Err)
			res, err = both[1], both[1].Err
		}
	}
	u.answer(c, res, err)
}

func (u *oracle) answer(c *call, res kuji.Result, err error) {
	u.w.note("%s: %q: %v %v %v", u.name, c.id, res, res.Outcomes, kuji.CodeOf(err))
	first, known := u.first[c.id]
	switch code := kuji.CodeOf(err); {
	case err == nil && c.malformed:
		u.w.fail("a malformed request was carried out: %v", res)
	case err == nil:
	case code == kuji.CodeInvalid && c.malformed, code == kuji.CodeOverloaded && c.id != "" && u.w.cfg.Faults&Forget != 0:
		return
	case code == kuji.CodeIDReused && known && !asked(c.req, first):
		return
	default:
		u.w.fail("an error that nothing explains: %w", err)
	}
	if res.Receipt.Realm != u.name {
		u.w.fail("%s answered for %s", res.Receipt.Realm, u.name)
	}
	if res.Replayed {
		u.w.report.Replayed++
		if c.id == "" || !known {
			u.w.fail("%q was answered before by nobody: %v", c.id, res)
		}
		if err := matches(ack{call: c, res: res}, &first); err != nil {
			u.w.fail("%q again: %w", c.id, err)
		}
		return
	}
	u.w.report.Acked++
	u.events++
	rec := recordOf(c.req, res)
	u.judge(rec, nil)
	if c.id != "" {
		u.first[c.id] = rec
	}
}

func (u *oracle) judge(rec kuji.Record, c *catalog.Catalog) {
	if rec.Time > u.w.latest {
		u.w.fail("stamped %d, the clock never passed %d", rec.Time, u.w.latest)
	}
	if rec.Position != u.events+1 || rec.Index != 0 { // position 1 begins the epoch
		u.w.fail("event %d is at position %d, index %d", u.events, rec.Position, rec.Index)
	}
	if err := u.model.apply(rec, c); err != nil {
		u.w.fail("without a log, %s %q: %w", rec.Kind, rec.ID, err)
	}
}

// shows compares every player and every pool with the model.
func (u *oracle) shows() {
	for _, id := range players {
		v, err := u.realm.Player(context.Background(), id)
		rd := read{player: id, holds: v, seen: err == nil}
		u.check(&rd, err)
	}
	for _, id := range []string{"open", "box", "paid", "chain"} {
		v, err := u.realm.Pool(context.Background(), id)
		rd := read{pool: id, stocks: v, seen: err == nil}
		u.check(&rd, err)
	}
	if st := u.realm.Stats(); st.Events != u.events || st.Position != u.events+1 || st.LogBytes != 0 {
		u.w.fail("%+v, want %d events", st, u.events)
	}
}

func (u *oracle) check(rd *read, err error) {
	if err != nil && kuji.CodeOf(err) != kuji.CodeNotFound {
		u.w.fail("a read failed without a cause: %w", err)
	}
	u.w.report.Reads++
	if err := u.model.shows(rd); err != nil {
		u.w.fail("a read without a log: %w", err)
	}
}

// recordOf is what the log would hold of a request and its answer.
func recordOf(req kuji.Request, res kuji.Result) kuji.Record {
	rc := res.Receipt
	rec := kuji.Record{
		Position: rc.Position, Index: rc.Index, Time: rc.Time, CatalogVersion: rc.CatalogVersion,
		Status: res.Status.String(), Subject: res.Subject, Outcomes: res.Outcomes,
	}
	switch q := req.(type) {
	case kuji.Draw:
		rec.Kind, rec.ID, rec.Player, rec.Pool, rec.Count = "draw", q.ID, q.Player, q.Pool, max(1, q.Count)
	case kuji.Grant:
		rec.Kind, rec.ID, rec.Player, rec.Items = "grant", q.ID, q.Player, q.Items
	case kuji.Consume:
		rec.Kind, rec.ID, rec.Player, rec.Items = "consume", q.ID, q.Player, q.Items
	case kuji.Transfer:
		rec.Kind, rec.ID, rec.Player, rec.To, rec.Items = "transfer", q.ID, q.From, q.To, q.Items
	case kuji.Atomic:
		rec.Kind, rec.ID = "atomic", q.ID
		for i, m := range q.Members {
			rec.Members = append(rec.Members, recordOf(m, res.Members[i]))
		}
	default:
		panic(fmt.Sprintf("sim: a request of type %T", req))
	}
	return rec
}
