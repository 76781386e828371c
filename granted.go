package kuji

import (
	"context"
	"math"
	"time"

	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Granted returns how much of each item grants have given since a time, by who asked for them
// (Note.By). Grants in groups count, start grants and what draws gave do not. Grants without Note.By
// are left out. It reads the log up to the newest acknowledged batch, from the last place that is
// known to be older than the time. So it says the same after a restart and on another node. What was
// trimmed from the log does not count. An engine in memory keeps no log: there, nothing was granted.
//
// It takes a place among the readers of the feed: see [MaxReaders]. Errors are those of Events.
func (f *Feed) Granted(ctx context.Context, since time.Time) (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	if !f.w.keepsLog() {
		return all, nil
	}
	if _, err := f.mayFollow(1); err != nil {
		return nil, err
	}
	through := f.w.gate.acked.Load()
	if err := f.log.Sync(ctx); err != nil { // the walk sees nothing else
		return nil, f.w.failed("making the log durable", err)
	}
	reader, err := f.join(1)
	if err != nil {
		return nil, err
	}
	defer f.leave(reader)
	from := since.UnixMilli()
	start, _, err := f.places.before(ctx, func(p *place) bool { return p.time < from })
	if err != nil {
		return nil, f.ends(ctx, err)
	}
	if start.at.Position() >= through {
		return all, nil
	}
	for e, err := range ledger.Walk(f.log, f.w.name, start.seal(f.w)).Follow(ctx) {
		if err != nil {
			return nil, f.ends(ctx, err)
		}
		reader.at.Store(e.Position)
		if e.Kind() == ledger.KindBatch {
			if err := f.addGranted(&e, from, all); err != nil {
				return nil, f.w.failed("reading the feed", err)
			}
		}
		if e.Position >= through {
			break
		}
	}
	return all, nil
}

// addGranted adds what the grants of a batch gave, if it is not from before a time.
func (f *Feed) addGranted(e *ledger.Entry, from int64, all map[string]map[string]uint64) error {
	at, _, _, err := ledger.OpenBatch(e.Payload())
	if err != nil || at < from {
		return e.Corrupt(err)
	}
	names := f.w.state.Numbers()
	for le, err := range logged.Events(e, nil) {
		if err != nil {
			return err
		}
		kind := rules.Kind(le.Event.Kind)
		if kind != rules.KindGrant && kind != rules.KindAtomic || le.Event.Status != 0 {
			continue
		}
		cmd, _, err := rules.CommandOf(names, le.Event)
		if err != nil {
			return e.Corrupt(err)
		}
		if cmd.Note == nil || cmd.Note.By == "" {
			continue
		}
		of := all[cmd.Note.By]
		if of == nil {
			of = map[string]uint64{}
			all[cmd.Note.By] = of
		}
		addGrants(of, &cmd)
	}
	return nil
}

func addGrants(to map[string]uint64, cmd *rules.Command) {
	for i := range cmd.Members {
		addGrants(to, &cmd.Members[i])
	}
	if cmd.Kind != rules.KindGrant {
		return
	}
	for _, s := range cmd.Items {
		if to[s.Item] += s.Quantity; to[s.Item] < s.Quantity {
			to[s.Item] = math.MaxUint64
		}
	}
}
