package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// newID returns a request id. Where the window is short, catalogs may want ids that carry their
// time. Then the id is a UUIDv7 made at that time. Its other bits follow from the name.
func (w *world) newID(name string, made int64) string {
	if w.cfg.Faults&Forget == 0 {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	sum := h.Sum64()
	return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", made>>16, made&0xffff, sum>>52, sum>>40&0xfff, sum&(1<<48-1))
}

// madeAt returns when an id of newID was made.
func madeAt(id string) int64 {
	if len(id) != 36 {
		return 0
	}
	made, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil {
		return 0
	}
	return made
}

// timeOrdered reports whether ids must carry their time, by the catalog in force or the one that is
// being put in force.
func (s *session) timeOrdered() bool {
	near := s.catalogs[max(0, s.applied-1):min(s.applied+1, len(s.catalogs))]
	return slices.ContainsFunc(near, func(c *catalog.Catalog) bool { return c.Idempotency.IDs == catalog.IDsTimeOrdered })
}

// answers are the request ids that events answered.
type answers struct {
	ids      []answeredID // oldest first, the newest answer of each id last
	repeated int          // ids answered again after they were forgotten
}

// answeredID is a request id that an event answered.
type answeredID struct {
	id     string
	record kuji.Record
	steady int64 // when
	// forgettable is set when the window no longer covers the id. From then on the engine may have
	// forgotten it.
	forgettable bool
}

// check refuses an event whose id the window still covers, or whose id comes too early.
func (a *answers) check(rec kuji.Record, r rulebook, now int64) error {
	if rec.ID == "" {
		return nil
	}
	if r.timeOrdered() && madeAt(rec.ID) > now+r.catalog.Idempotency.Ahead.Milliseconds() {
		return fmt.Errorf("request id %q was made at %d, and taken at %d", rec.ID, madeAt(rec.ID), now)
	}
	for i, was := range a.ids {
		if was.id != rec.ID {
			continue
		}
		if !was.forgettable {
			return fmt.Errorf("request id %q has a second effect; the first was at position %d", rec.ID, was.record.Position)
		}
		if first := was.record.Time; r.timeOrdered() && madeAt(was.id) <= first+catalog.MaxAhead.Milliseconds() {
			return fmt.Errorf("request id %q carries its time and is carried out again; the first time was at position %d", rec.ID, was.record.Position)
		}
		a.ids = slices.Delete(slices.Clone(a.ids), i, i+1)
		a.repeated++
		return nil
	}
	return nil
}

// forget marks the ids that the idempotency window does not cover.
func (a *answers) forget(r rulebook, now int64) {
	count, age := uint32(catalog.DefaultIdempotencyCount), catalog.DefaultIdempotencyAge
	if r.catalog != nil {
		count, age = r.catalog.Idempotency.Count, r.catalog.Idempotency.Age
	}
	for i := range a.ids {
		newer := len(a.ids) - 1 - i
		if newer >= min(int(count), 1<<20) && now-a.ids[i].steady > age.Milliseconds() {
			a.ids[i].forgettable = true
		}
	}
}
