package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Request ids that carry their time can be refused once they may have been forgotten. So a late
// repeat is never carried out again, although memory is bounded:
// docs/internals/decisions/0008-ids-that-carry-their-time.md has the argument.

// IDFault is why a request id is refused.
type IDFault uint8

const (
	IDTaken       IDFault = iota // nothing is wrong with it
	IDWithoutTime                // it carries no time, and must
	IDTooOld                     // it may have been answered and forgotten
	IDTooFarAhead                // the clock that made it is too far ahead
)

// String says what is wrong.
func (f IDFault) String() string {
	switch f {
	case IDWithoutTime:
		return "the request id carries no time; the catalog wants a UUIDv7 or a ULID"
	case IDTooOld:
		return "the request id is so old that it may have been answered and forgotten"
	case IDTooFarAhead:
		return "the request id was made by a clock that is too far ahead"
	}
	return "the request id is taken"
}

// CheckID returns why a request id that is not remembered is refused at a time stamp.
func (r *Rules) CheckID(id string, now int64) IDFault {
	if id == "" || !r.timeOrdered() {
		return IDTaken
	}
	made, ok := store.IDTime(id)
	switch {
	case !ok:
		return IDWithoutTime
	case made < r.state.IDFloor():
		return IDTooOld
	case made > now+r.t.Catalog.Idempotency.Ahead.Milliseconds():
		return IDTooFarAhead
	}
	return IDTaken
}

// IDTime returns the time that a request id carries, if the catalog in force wants such ids.
func (r *Rules) IDTime(id string) (made int64, ok bool) {
	if !r.timeOrdered() {
		return 0, false
	}
	return store.IDTime(id)
}

// IDFloor returns a time before which new request ids are refused as too old, in Unix milliseconds;
// 0 if the catalog in force takes ids without a time.
func (r *Rules) IDFloor() int64 {
	if !r.timeOrdered() {
		return 0
	}
	return r.state.IDFloor()
}

func (r *Rules) timeOrdered() bool {
	return r.t.Version != 0 && r.t.Catalog.Idempotency.IDs == catalog.IDsTimeOrdered
}
