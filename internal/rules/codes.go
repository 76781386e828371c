package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/internal/store"
)

// A reward can give the next code of a list. Lists grow by imports at any time, even before the
// catalog that gives their codes. So an entry that gives a code is like one with a condition: it is
// weighed at each pick, weighs nothing once one of its lists is used up, and no draw counts on its
// stock: see inStock.

// Bounds of one import.
const (
	MaxCode        = store.MaxCode // bytes
	MaxImport      = 10_000        // codes
	MaxImportBytes = 1 << 20       // with a byte for each code's length
)

// Codes is what an import sees of a realm. It changes only by imports and catalogs.
type Codes interface {
	CodeLists() int
	CodeListNum(name string) (num uint32, ok bool)
	HasCode(list uint32, code string) bool
	CodesAlike(list uint32, sum CodeSum) int
	RoomForCodes(list string) uint64
}

// Import writes the event that adds codes to a list: those that the list does not have yet, each
// once, in their order; nothing if there are none. It names the list if it is new. At most
// [store.MaxAlike] codes of a list may have the same sum. Import may run concurrently with commands,
// but not with another import or a catalog.
func Import(state Codes, list string, codes []string) (event []byte, added int, err error) {
	num, known := state.CodeListNum(list)
	fresh := make([]string, 0, len(codes))
	seen := make(map[string]bool, len(codes))
	alike := make(map[CodeSum]int, len(codes))
	size := 0
	for i, code := range codes {
		if seen[code] || known && state.HasCode(num, code) {
			continue
		}
		seen[code] = true
		sum := SumCode(code)
		n, ok := alike[sum]
		if !ok && known {
			n = state.CodesAlike(num, sum)
		}
		if n == store.MaxAlike {
			return nil, 0, &ConflictError{Subject: "list of codes " + list, Message: fmt.Sprintf(
				"it would have more than %d codes that differ only in spaces, hyphens and case: codes[%d] and those like it", n, i)}
		}
		alike[sum] = n + 1
		fresh = append(fresh, code)
		size += 1 + len(code)
	}
	if len(fresh) == 0 {
		return nil, 0, nil
	}
	if room := state.RoomForCodes(list); uint64(len(fresh)) > room {
		return nil, 0, &ConflictError{Subject: "list of codes " + list, Message: "there is no room for so many more codes or lists"}
	}
	var w store.Writer
	w.Begin(uint8(KindCodes), "")
	w.BeginAsked()
	w.EndAsked()
	if !known {
		num = uint32(state.CodeLists())
		w.Name(store.NewList, list)
	}
	w.More(store.AddCodes, uint64(num), uint64(size))
	for _, code := range fresh {
		w.Text(code)
	}
	return w.End(), len(fresh), nil
}

// ImportOf returns what an event of [Import] added. name is empty unless the list was new.
func ImportOf(ev *store.Event) (list uint32, name string, codes []string, err error) {
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.NewList:
			name = string(e.Bytes)
		case store.AddCodes:
			list = e.N
			for r := store.NewReader(e.Bytes); r.More(); {
				codes = append(codes, string(r.Bytes("a code", uint64(r.Byte("a code")))))
				if err := r.Err(); err != nil {
					return 0, "", nil, err
				}
			}
		}
	}
	return list, name, codes, effects.Err()
}

// giveCodes gives the player the next code of each list of a reward.
func (r *effects) giveCodes(w *Reward) {
	for _, list := range w.Codes {
		taken, _ := r.coded.get(uint64(list))
		r.coded.put(uint64(list), taken+1)
		r.w.More(store.GiveCode, uint64(list), r.state.CodesGiven(list)+taken)
	}
}
