package kuji

// Receipt proves a result: it finds the batch and the catalog in the log, and once the epoch's seed is
// revealed, anybody can compute the draw again.
type Receipt struct {
	Realm          string
	Position       uint64   // of the batch in the realm's log, from 1
	Index          int      // of the event in its batch, from 0
	Time           int64    // the batch's time stamp, Unix milliseconds
	CatalogVersion uint64   // in force when the outcome was chosen; 0: none yet
	Epoch          uint64   // the writer epoch whose seed chose the outcome
	Commitment     [32]byte // to that seed, by SHA-256; logged before the epoch's first draw
}
