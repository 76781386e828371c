package wal

// Stat is what a log holds.
type Stat struct {
	LogID    uint64
	First    uint64 // oldest offset kept
	Next     uint64 // offset that the next record gets
	Durable  uint64 // records below are durable
	Segments int    // files
	Bytes    int64  // of all files
}

// Stat describes the log.
func (l *buffer) Stat() Stat {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := *l.list.Load()
	s := Stat{LogID: l.logID, First: list[0].first, Next: l.next, Durable: l.durable.Load(), Segments: len(list)}
	for _, seg := range list {
		s.Bytes += seg.size.Load()
	}
	return s
}
