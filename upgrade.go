package kuji

import (
	"context"
	"sync"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// A realm's format level says what its log may hold: see package format. Its first catalog sets the newest
// one, and FinishUpgrade raises it. Until then newer words are refused by name, and older builds can open
// the realm.

// FormatLevel returns the newest format level that this build knows.
func FormatLevel() uint8 { return uint8(format.Newest) }

// Upgraded is what FinishUpgrade did.
type Upgraded struct {
	From, To uint8   // format levels; the same: there was nothing to do
	Receipt  Receipt // where the log says so; Position is 0 if there was nothing to do
}

// FinishUpgrade raises the realm's format level to the newest of this build, and returns once that is
// durable. From then on older builds refuse the realm: there is no way back. The log keeps by and reason.
// CodeConflict: Options.FormatLevel says that a build that reads the realm does not know the level. Others
// are those of Do.
func (r *Realm) FinishUpgrade(ctx context.Context, by, reason string) (Upgraded, error) {
	u := upgrader{Upgrade: rules.Upgrade{To: format.Newest, By: by, Reason: reason}}
	if err := checkWho(by, reason, u.Check()); err != nil {
		return Upgraded{}, err
	}
	var err error
	// A catalog that is being prepared may take itself for the realm's first.
	u.did.Receipt, err = r.w.carry(ctx, &u, func() error { return nil })
	return value(u.did, err)
}

type upgrader struct {
	rules.Upgrade
	did Upgraded
}

func (u *upgrader) propose(w *writer, b *ledger.Batch, event *store.Writer) (*earlier, error) {
	u.did.From, u.did.To = uint8(w.state.Level()), uint8(u.To)
	if known := w.newestLevel(); known < u.To {
		return nil, errf(CodeConflict, "level", "a node of an older build is there: it knows format level %d, this one %d; upgrade all nodes first", known, u.To)
	}
	if w.state.Level() >= u.To {
		u.did.To = u.did.From
		return nil, nil
	}
	w.stamp(b)
	u.Write(event)
	return nil, nil
}

func (u *upgrader) entered(w *writer, _ *ledger.Batch) { w.world.levels.note(w.name, w.state) }

// levels are those of an engine's realms, by name. A new realm takes the lowest: all can still go back.
type levels struct{ of sync.Map }

func (l *levels) note(realm string, s *store.State) {
	if !logged.IsNew(s) {
		l.of.Store(realm, s.Level())
	}
}

// lowest returns the lowest level of all realms, the newest of none.
func (l *levels) lowest() format.Level {
	low := format.Newest
	for _, level := range l.of.Range {
		low = min(low, level.(format.Level))
	}
	return low
}

// level returns the level that a new realm begins with, 0 for others. It refuses a catalog beyond that.
func (v *Catalogs) level(c *catalog.Catalog) (begin format.Level, err error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if logged.IsNew(v.w.state) {
		begin = min(v.w.newestLevel(), v.w.world.levels.lowest())
	}
	if err := c.Allow(uint8(max(begin, v.w.state.Level()))); err != nil {
		return 0, &Error{Code: CodeFormat, Field: "catalog", Err: err}
	}
	return begin, nil
}
