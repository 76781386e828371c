package drivertest

import (
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// held checks who holds the lease.
func (e *env) holds(what string, r driver.Realm, want string) {
	e.Helper()
	holder, left, err := r.Holder(e.ctx)
	e.ok("holder", err)
	if holder != want || (left > 0) != (want != "") {
		e.Fatalf("%s: %q holds the lease for %v, want %q", what, holder, left, want)
	}
}

// hold asks for the lease and checks who gets it.
func (e *env) hold(r driver.Realm, node string, ttl time.Duration, want string) {
	e.Helper()
	holder, left, err := r.Hold(e.ctx, node, ttl)
	e.ok("hold", err)
	if holder != want || left <= 0 || (want == node && left > ttl) {
		e.Fatalf("%s asked for the lease for %v: %q holds it for %v, want %q", node, ttl, holder, left, want)
	}
}

// leaseOfTwo: the first candidate holds the lease until it gives it up.
func leaseOfTwo(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	const long = time.Hour
	e.holds("at first", a, "")
	e.hold(a, "n1", long, "n1")
	e.hold(b, "n2", long, "n1")
	e.holds("asked by the other", b, "n1")
	e.hold(a, "n1", long, "n1")
	e.ok("release by another", b.Release(e.ctx, "n2"))
	e.holds("after another gave up", a, "n1")
	e.ok("release", a.Release(e.ctx, "n1"))
	e.holds("after it was given up", b, "")
	e.hold(b, "n2", long, "n2")
	e.hold(a, "n1", long, "n2")
}

// leaseExpires: a lease that nobody renews ends, and one that is renewed does not.
func leaseExpires(e *env) {
	a := e.open(0, realmName)
	b := e.second(a)
	e.hold(a, "n1", e.Lease, "n1")
	if e.Advance != nil {
		e.Advance(e.Lease / 2)
		e.hold(a, "n1", e.Lease, "n1")
		e.Advance(e.Lease * 3 / 4)
		e.holds("after it was renewed", b, "n1")
		e.hold(b, "n2", e.Lease, "n1")
		e.Advance(e.Lease)
	}
	for { // until it has ended
		holder, _, err := b.Holder(e.ctx)
		e.ok("holder", err)
		if holder == "" {
			break
		}
		if e.Advance != nil {
			e.Fatalf("%q still holds a lease that has ended", holder)
		}
		b.Last(e.ctx) // takes a while, and the driver's time
	}
	e.hold(b, "n2", e.Lease, "n2")
	if holder, _, err := a.Holder(e.ctx); err != nil || holder == "n1" {
		e.Fatalf("%q holds the lease, error %v, want n2 or, if that ended too, nobody", holder, err)
	}
}
