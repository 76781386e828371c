package access

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A key's line can limit what the key grants: which items, how many in a request, and how many in a
// day of UTC, in each realm. Permit checks a single request. Granted counts the day. It starts from
// the realm's log, which has the key's name with each grant, so a restart or a new leader changes
// nothing.
//
//	Take:    first in an epoch, read today's grants from the log;
//	         add the grants of the request, if they fit. A request id with an answer takes nothing
//	Settle:  subtract the grants that did not happen

// grantCap is how many of an item a key may grant.
type grantCap struct {
	request uint64 // with one request id
	day     uint64 // in a day of UTC; 0: no limit
}

// otherItems is the name, of no item, under which grants limit each item that they do not name.
const otherItems = "*"

// parseGrants reads item:request or item:request/day, with commas between them.
func parseGrants(text string) (map[string]grantCap, error) {
	all := map[string]grantCap{}
	for one := range strings.SplitSeq(text, ",") {
		item, most, ok := strings.Cut(one, ":")
		request, day, both := strings.Cut(most, "/")
		var c grantCap
		var err error
		if c.request, err = strconv.ParseUint(request, 10, 64); err == nil && both {
			c.day, err = strconv.ParseUint(day, 10, 64)
		}
		_, twice := all[item]
		if !ok || err != nil || twice || item == "" || len(item) > catalog.MaxID || c.request == 0 || both && c.day < c.request {
			return nil, fmt.Errorf("grants=%.80s: want item:N or item:N/M, each item once, with commas between them: N in a request, M in a day, M no less than N", one)
		}
		all[item] = c
	}
	return all, nil
}

// mayGrant returns the cap on an item.
func (a *Access) mayGrant(item string) (grantCap, bool) {
	c, ok := a.grants[item]
	if !ok {
		c, ok = a.grants[otherItems]
	}
	return c, ok
}

// itemsMessage is a grant in a request, a command or a member.
type itemsMessage interface{ GetItems() []*kujiv1.Stack }

// checkGrants checks what a request grants: that it has a request id, and that no item is too many.
func (a *Access) checkGrants(field, id string, grants ...itemsMessage) error {
	if len(grants) == 0 || a.Name == "" {
		return nil // a server without keys has no caps
	}
	if id == "" && !a.anyID {
		return &kuji.Error{Code: kuji.CodeInvalid, Field: field + "request_id",
			Message: fmt.Sprintf("is empty, and the request grants items: sent again without one, it would grant them twice. Give it an id, or the key %q ids=optional", a.Name)}
	}
	if a.grants == nil {
		return nil
	}
	sum := map[string]uint64{}
	for _, g := range grants {
		for _, s := range g.GetItems() {
			addQuantity(sum, s.GetItem(), s.GetQuantity())
		}
	}
	for _, item := range slices.Sorted(maps.Keys(sum)) {
		switch c, ok := a.mayGrant(item); {
		case !ok:
			return fmt.Errorf("%sit may not grant %.80q", field, item)
		case sum[item] > c.request:
			return fmt.Errorf("%sit may grant %d of %.80q in a request, and this one grants %d", field, c.request, item, sum[item])
		}
	}
	return nil
}

func addQuantity(to map[string]uint64, item string, n uint64) {
	if to[item] += n; to[item] < n {
		to[item] = math.MaxUint64
	}
}

// grantsOf returns the items that a request grants, nil if it grants nothing.
func grantsOf(all ...kuji.Request) (sum map[string]uint64) {
	for _, req := range all {
		var items []kuji.Stack
		switch req := req.(type) {
		case *kuji.Grant:
			items = req.Items
		case *kuji.Atomic:
			for item, n := range grantsOf(req.Members...) {
				items = append(items, kuji.Stack{Item: item, Quantity: n})
			}
		}
		for _, s := range items {
			if sum == nil {
				sum = map[string]uint64{}
			}
			addQuantity(sum, s.Item, s.Quantity)
		}
	}
	return sum
}

const dayMillis = int64(24 * time.Hour / time.Millisecond)

// dayOf returns the day of UTC that a time stamp is in, from 1970 on.
func dayOf(stamp int64) int64 { return stamp / dayMillis }

// Granted counts what keys grant, by realm.
type Granted struct {
	Keys     *Keys           // nil: nothing is limited
	Stopping context.Context // ends reads of the log

	mu     sync.Mutex
	realms map[string]*grantedIn
}

// grantedIn is what keys granted in a realm today. No grant counts less than once. One that is
// under way while the log is read may count twice until the next day or restart.
type grantedIn struct {
	mu      sync.Mutex
	keys    *keySet // under which it was read; nil: nothing is known
	epoch   uint64  // of the writer
	day     int64
	used    quantities
	pending quantities    // of grants under way
	reading chan struct{} // closed when the log was read; nil: it is not being read
	err     error         // of reading it
}

// quantities are by key and item.
type quantities map[string]map[string]uint64

func (q quantities) add(key string, sum map[string]uint64) {
	if q[key] == nil {
		q[key] = map[string]uint64{}
	}
	for item, n := range sum {
		addQuantity(q[key], item, n)
	}
}

func (q quantities) take(key string, sum map[string]uint64) {
	for item, n := range sum {
		if q[key][item] -= n; q[key][item] == 0 {
			delete(q[key], item)
		}
	}
}

func (g *Granted) in(realm string) *grantedIn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.realms == nil {
		g.realms = map[string]*grantedIn{}
	}
	in := g.realms[realm]
	if in == nil {
		in = &grantedIn{pending: quantities{}}
		g.realms[realm] = in
	}
	return in
}

// Forget forgets what keys granted in a realm that was deleted: a later one of its name begins anew.
func (g *Granted) Forget(realm string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.realms, realm)
}

// Taken is what requests took from the day's cap of a key.
type Taken struct {
	in   *grantedIn
	key  string
	day  int64
	sums []map[string]uint64 // by request; nil: nothing
	errs []error             // by request: why it is refused
}

// Take subtracts the grants of requests from the day's cap of their key; nil: no cap is by day.
// Requests that grant too much become nil, which the engine refuses. The caller must call Settle.
// The error is that of reading the log.
func (g *Granted) Take(ctx context.Context, a *Access, r *kuji.Realm, reqs []kuji.Request) (*Taken, error) {
	if !a.daily {
		return nil, nil
	}
	t := &Taken{in: g.in(r.Name()), key: a.Name, sums: make([]map[string]uint64, len(reqs)), errs: make([]error, len(reqs))}
	for i, req := range reqs {
		t.sums[i] = grantsOf(req)
	}
	if !slices.ContainsFunc(t.sums, func(sum map[string]uint64) bool { return sum != nil }) {
		return nil, nil
	}
	if err := t.in.lock(ctx, g, r); err != nil {
		return nil, err
	}
	defer t.in.mu.Unlock()
	t.day = t.in.day
	for i, sum := range t.sums {
		if sum == nil {
			continue
		}
		err := t.in.fits(a, sum)
		if err == nil {
			t.in.pending.add(a.Name, sum)
			continue
		}
		if !answered(ctx, r, reqs[i]) {
			t.errs[i], reqs[i] = err, nil
		}
		t.sums[i] = nil // it grants nothing: refused, or a repeat
	}
	return t, nil
}

// lock locks mu when today's grants are known. One goroutine reads the log for all who wait.
func (in *grantedIn) lock(ctx context.Context, g *Granted, r *kuji.Realm) error {
	for {
		in.mu.Lock()
		st := r.Stats()
		day := dayOf(st.Clock.Time)
		if in.keys == g.Keys.set.Load() && in.epoch == st.Epoch && in.day <= day {
			if in.day < day { // nothing was granted since midnight
				in.day, in.used = day, quantities{}
			}
			return nil
		}
		if err := in.err; err != nil {
			in.err = nil
			in.mu.Unlock()
			return err
		}
		if in.reading == nil {
			in.reading = make(chan struct{})
			go in.read(g, r, g.Keys.set.Load(), st.Epoch, day)
		}
		reading := in.reading
		in.mu.Unlock()
		select {
		case <-reading:
		case <-ctx.Done():
			return &kuji.Error{Code: kuji.CodeCanceled, Message: "while the log was read for what the key has granted today: send the same again", Err: ctx.Err()}
		}
	}
}

// read reads today's grants from the log.
func (in *grantedIn) read(g *Granted, r *kuji.Realm, keys *keySet, epoch uint64, day int64) {
	used, err := r.Feed().Granted(g.Stopping, time.UnixMilli(day*dayMillis))
	in.mu.Lock()
	defer in.mu.Unlock()
	close(in.reading)
	in.reading, in.err = nil, err
	if err == nil {
		in.keys, in.epoch, in.day, in.used = keys, epoch, day, used
	}
}

// fits returns why a key may not grant this much today, or nil.
func (in *grantedIn) fits(a *Access, sum map[string]uint64) error {
	for _, item := range slices.Sorted(maps.Keys(sum)) {
		c, _ := a.mayGrant(item)
		used, pending := in.used[a.Name][item], in.pending[a.Name][item]
		beyond := func(all uint64) bool { return c.day > 0 && (all >= c.day || sum[item] > c.day-all) }
		switch {
		case !beyond(used + pending):
			continue
		case !beyond(used): // this can be a retry of one of those
			return &kuji.Error{Code: kuji.CodeOverloaded, Field: "items", Message: fmt.Sprintf(
				"grants of %d of %.80q by key %q are under way, and all together are more than it may grant in a day: send the same again", pending, item, a.Name)}
		default:
			return a.Forbidden(fmt.Errorf("it may grant %d of %.80q in a day, and has granted %d; the next day begins at %s",
				c.day, item, used, time.UnixMilli((in.day+1)*dayMillis).UTC().Format(time.RFC3339)))
		}
	}
	return nil
}

// answered reports whether a request that grants was answered before.
func answered(ctx context.Context, r *kuji.Realm, req kuji.Request) bool {
	id := ""
	switch req := req.(type) {
	case *kuji.Grant:
		id = req.ID
	case *kuji.Atomic:
		id = req.ID
	}
	if id == "" {
		return false
	}
	l, err := r.Result(ctx, id)
	return err == nil && l.Seen == kuji.Answered
}

// Settle keeps what was granted, and writes into results why the rest was refused. err is that of all.
func (t *Taken) Settle(results []kuji.Result, err error) {
	if t == nil {
		return
	}
	t.in.mu.Lock()
	defer t.in.mu.Unlock()
	for i, sum := range t.sums {
		if t.errs[i] != nil && err == nil {
			results[i] = kuji.Result{Status: kuji.Refused, Err: t.errs[i]}
		}
		if sum == nil {
			continue
		}
		t.in.pending.take(t.key, sum)
		day := t.day
		switch {
		case kuji.CodeOf(err) == kuji.CodeUnknownOutcome: // it may have been granted
		case err != nil || results[i].Status != kuji.OK || results[i].Replayed:
			continue
		default:
			day = dayOf(results[i].Receipt.Time)
		}
		if day == t.in.day {
			t.in.used.add(t.key, sum)
		}
	}
}
