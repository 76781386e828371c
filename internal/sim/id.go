package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/kuji-dev/kuji/catalog"
)

// newID returns a request id. Where the window is short, catalogs may want ids that carry their
// time: then it is a UUIDv7 made at that time, whose other bits follow from the name.
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

func (m *model) timeOrdered() bool {
	return m.catalog != nil && m.catalog.Idempotency.IDs == catalog.IDsTimeOrdered
}

// timeOrdered reports whether the catalog in force, or the one that is being put in force, wants ids
// that carry their time.
func (s *session) timeOrdered() bool {
	near := s.catalogs[max(0, s.applied-1):min(s.applied+1, len(s.catalogs))]
	return slices.ContainsFunc(near, func(c *catalog.Catalog) bool { return c.Idempotency.IDs == catalog.IDsTimeOrdered })
}
