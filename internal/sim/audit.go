package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sort"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// audit reads the log that a life left and checks every promise against it.
func (g *game) audit() {
	w := g.w
	records, rep, err := g.verified(w.disk)
	if err != nil {
		none := kuji.CodeOf(err) == kuji.CodeNotFound || errors.Is(err, fs.ErrNotExist)
		if !none || g.settled > 0 || len(g.acks) > 0 {
			w.fail("the log of %s cannot be verified: %w", g.name, err)
		}
		w.note("audit of %s: no log yet", g.name)
		g.known, g.reads, g.refusals = nil, nil, nil
		return
	}
	records = g.whole(records, rep.From)
	w.note("audit of %s: position %d, %d events, state %s", g.name, rep.Position, len(records), short(rep.StateHash[:]))
	if rep.Position < g.settled {
		w.fail("the log ends at %d, a recovery had found %d", rep.Position, g.settled)
	}
	for i, k := range g.known {
		if k.Position > g.settled {
			break
		}
		if i >= len(records) || !reflect.DeepEqual(k, records[i]) {
			w.fail("what a recovery had found has changed: %+v", k)
		}
	}
	if w.report.Audits%4 == 0 {
		if _, again, err := g.verified(w.disk); err != nil || again.StateHash != rep.StateHash || again.ChainHash != rep.ChainHash {
			w.fail("verified again: state %x and not %x (%w)", again.StateHash, rep.StateHash, err)
		}
	}
	m := g.replay(records, rep.Position)
	if err := g.told(records); err != nil {
		w.fail("%w", err)
	}
	g.applied, g.files = int(m.version), m.files
	g.known, g.archive, g.hash = records, records, rep.StateHash
	if g.closed {
		g.ended, g.settled = rep.Position, rep.Position
	}
	g.position = 0
	if n := len(records); n > 0 {
		g.position = records[n-1].Position
	}
}

// whole returns all records: those that trims removed, then those still in the log.
func (g *game) whole(records []kuji.Record, from uint64) []kuji.Record {
	n := sort.Search(len(g.archive), func(i int) bool { return g.archive[i].Position > from })
	return append(g.archive[:n:n], records...)
}

// observe reads the log before a trim removes a part of it, or before a snapshot is removed.
func (g *game) observe(trim bool) {
	w := g.w
	records, rep, err := g.verified(w.disk.KillClone())
	if err != nil {
		w.fail("the log cannot be verified before it is trimmed: %w", err)
	}
	g.archive = g.whole(records, rep.From)
	if trim {
		w.fired(Trim)
	}
	w.note("trim: %d events read, from %d on", len(g.archive), rep.From)
}

// mustSurvive sometimes cuts the power of a copy of the disk, and checks that it still has what a
// client was just told.
func (s *session) mustSurvive(position uint64) {
	if s.l.rng.IntN(24) > 0 {
		return
	}
	if _, rep, ok := s.afterPowerCut(); ok && rep.Position < position {
		s.w.fail("position %d was told of, and a power cut now would leave the log at %d", position, rep.Position)
	}
}

// mustRemember does the same for a refusal. It rests on another request with the same id.
func (s *session) mustRemember(c *call) {
	if s.l.rng.IntN(3) > 0 {
		return
	}
	records, rep, ok := s.afterPowerCut()
	if ok && !slices.ContainsFunc(s.whole(records, rep.From), func(r kuji.Record) bool { return r.ID == c.id }) {
		s.w.fail("request id %q was refused as reused, and a power cut now would leave nothing under it", c.id)
	}
}

// afterPowerCut reads the log that a power cut would leave now. ok is false if the policy allows a
// power cut to remove what clients were told.
func (s *session) afterPowerCut() (records []kuji.Record, rep verify.Report, ok bool) {
	if s.l.policy != kuji.SyncAlways || s.l.over {
		return nil, rep, false
	}
	records, rep, err := s.verified(s.w.disk.CrashClone(vfs.Crash{}))
	if err != nil {
		s.w.fail("a power cut now would leave a log that cannot be verified: %w", err)
	}
	return records, rep, true
}

// verified returns the content of the log on a disk.
func (g *game) verified(disk *vfs.Mem) (records []kuji.Record, rep verify.Report, err error) {
	report, err := hook.Verify(disk, dataDir, g.name, func(r kuji.Record) { records = append(records, r) })
	return records, report.(verify.Report), err
}

// replay lets the model judge the log, and compares every read with the state at its position.
func (g *game) replay(records []kuji.Record, end uint64) *model {
	w, m := g.w, newModel()
	reads := g.reads // after a failed fsync under a relaxed policy, less is shown than before
	slices.SortStableFunc(reads, func(a, b read) int { return cmp.Compare(a.position, b.position) })
	shown := func(before uint64) {
		for len(reads) > 0 && reads[0].position < before {
			if err := m.shows(&reads[0]); err != nil {
				w.fail("a read at position %d: %w", reads[0].position, err)
			}
			reads = reads[1:]
		}
	}
	for _, rec := range records {
		shown(rec.Position)
		if rec.Time > g.clock.highest {
			w.fail("position %d is stamped %d; no clock led past %d", rec.Position, rec.Time, g.clock.highest)
		}
		var c *catalog.Catalog
		if rec.Kind == "catalog" && int(m.version) < len(g.catalogs) {
			c = g.catalogs[m.version]
		}
		if err := m.apply(rec, c); err != nil {
			w.fail("position %d, event %d, %s %q: %w", rec.Position, rec.Index, rec.Kind, rec.ID, err)
		}
	}
	shown(end + 1)
	if len(reads) > 0 {
		w.fail("a read showed the state at position %d, and the log ends at %d", reads[0].position, end)
	}
	g.reads = g.reads[:0]
	if m.repeated > g.repeated {
		g.repeated = m.repeated
		w.fired(Forget)
	}
	return m
}

// shows compares a read with the model.
func (m *model) shows(rd *read) error {
	switch {
	case rd.codes != nil:
		return m.exports(rd.codes)
	case rd.ranks != nil:
		return rankings{m}.stand(rd.ranks)
	case rd.open:
		return hosts{m}.shown(rd.rounds)
	case rd.player != "" && rd.seen:
		return m.holds(rd.holds)
	case rd.player != "" && m.players[rd.player] != nil:
		return fmt.Errorf("player %q was not found", rd.player)
	case rd.pool != "" && rd.seen:
		return m.stocks(rd.stocks)
	case rd.pool != "" && m.pool(rd.pool) != nil:
		return fmt.Errorf("pool %q was not found", rd.pool)
	}
	return nil
}

// told looks in the log for everything that clients were told.
func (g *game) told(records []kuji.Record) error {
	type place struct {
		position uint64
		index    int
	}
	at := make(map[place]*kuji.Record, len(records))
	for i := range records {
		at[place{records[i].Position, records[i].Index}] = &records[i]
	}
	for _, a := range g.acks {
		rc := a.res.Receipt
		rec := at[place{rc.Position, rc.Index}]
		if rec == nil {
			return fmt.Errorf("an acknowledged result is lost: position %d, event %d, %v", rc.Position, rc.Index, a.res)
		}
		if err := matches(a, rec); err != nil {
			return fmt.Errorf("position %d, event %d: %w", rc.Position, rc.Index, err)
		}
	}
	for _, r := range g.refusals {
		found := false
		for i := range records {
			found = found || records[i].ID == r.call.id && !asked(r.call.req, records[i])
		}
		if !found {
			return fmt.Errorf("request id %q was refused as reused, and the log has no other request under it", r.call.id)
		}
	}
	g.acks, g.refusals = g.acks[:0], g.refusals[:0]
	return nil
}

// matches compares what a client was told with what the log says.
func matches(a ack, rec *kuji.Record) error {
	if a.call == nil {
		if rec.Kind != a.kind {
			return fmt.Errorf("a %s was acknowledged, the log has a %s", a.kind, rec.Kind)
		}
		return nil
	}
	res, err := sealed(a.res)
	if err != nil {
		return err
	}
	if rec.ID != a.call.id || !asked(a.call.req, *rec) {
		return fmt.Errorf("%+v was acknowledged, the log has %+v", a.call.req, *rec)
	}
	same := rec.Status == res.Status.String() && rec.Subject == res.Subject &&
		rec.Time == res.Receipt.Time && rec.CatalogVersion == res.Receipt.CatalogVersion &&
		sameOutcomes(rec.Outcomes, res.Outcomes) && sameClaims(rec.Claims, res.Claims()) && (res.Round() == nil || reflect.DeepEqual(rec.Round, res.Round())) && slices.Equal(rec.Paid, res.Paid) && len(rec.Members) == len(res.Members)
	for i := 0; same && i < len(rec.Members); i++ {
		is, was := &rec.Members[i], &res.Members[i]
		same = is.Status == was.Status.String() && was.Receipt == res.Receipt && sameOutcomes(is.Outcomes, was.Outcomes) && sameClaims(is.Claims, was.Claims()) && slices.Equal(is.Paid, was.Paid)
	}
	if !same {
		return fmt.Errorf("%+v was acknowledged, the log has %+v", res, *rec)
	}
	return nil
}

func sameOutcomes(a, b []kuji.Outcome) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func sameClaims(a, b []kuji.Claimed) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// echo asks again, at the very end, for everything that is remembered. It must get the first answers.
func (s *session) echo() {
	w := s.w
	records := map[string]*kuji.Record{}
	m := newModel()
	for i := range s.known {
		rec := &s.known[i]
		var c *catalog.Catalog
		if rec.Kind == "catalog" {
			c = s.catalogs[m.version]
		}
		if err := m.apply(*rec, c); err != nil {
			w.fail("position %d: %w", rec.Position, err)
		}
	}
	for i := range m.ids {
		if !m.ids[i].forgettable {
			records[m.ids[i].id] = &m.ids[i].record
		}
	}
	before := s.realm.Stats().Events
	for _, c := range w.clients {
		if c.game != s.game {
			continue
		}
		for _, k := range c.calls {
			rec := records[k.id]
			if rec == nil || !asked(k.req, *rec) {
				continue
			}
			var got kuji.Result
			err := errors.New("no answer at once")
			s.realm.Submit(k.req, func(res kuji.Result, e error) { got, err = res, e })
			if err != nil || !got.Replayed {
				w.fail("%q was answered at position %d and is not remembered: %v, %w", k.id, rec.Position, got, err)
			}
			if err := matches(ack{call: k, res: got}, rec); err != nil {
				w.fail("%q again: %w", k.id, err)
			}
		}
	}
	if after := s.realm.Stats().Events; after != before {
		w.fail("%d remembered ids were carried out again", after-before)
	}
}

// checkpoint audits the logs while the engine is open and idle.
func (w *world) checkpoint() {
	disk := w.disk
	w.disk = disk.KillClone()
	w.audit()
	w.disk = disk
}

// atTheEnd checks what must hold after the last life, which ends with Close.
func (w *world) atTheEnd() {
	for _, g := range w.games {
		_, rep, err := g.verified(w.disk)
		if err != nil {
			w.fail("the closed log of %s: %w", g.name, err)
		}
		for _, e := range rep.Epochs {
			if !e.Revealed {
				w.fail("epoch %d of %s cannot be proven: its seed is lost", e.Epoch, g.name)
			}
		}
		if g.applied != len(g.catalogs) {
			w.fail("%d of %d catalogs of %s were applied", g.applied, len(g.catalogs), g.name)
		}
	}
	for _, c := range w.clients {
		for _, k := range c.calls {
			if !k.answered && k.id != "" {
				w.fail("%q of client %d was never answered", k.id, c.number)
			}
		}
	}
}
