// Package kuji is a durable reward engine to embed: it draws weighted rewards
// from pools with limited stock, grants them to players, and never gives one
// prize twice, loses one that it acknowledged, or gives more than there are.
//
//	e, err := kuji.Open("data", kuji.Options{})
//	r, err := e.Realm("default")
//	c, err := catalog.Parse(yaml)
//	_, err = r.Apply(ctx, c)
//	res, err := r.Do(ctx, kuji.Draw{ID: "order-17", Player: "ann", Pool: "standard"})
//
// How a request ends is the Status of its Result: OK, or what the state
// refused, such as SoldOut, which is the answer of its request id from then on.
// An error means that there is no answer, and [CodeOf] says why. To send the
// same request again under its id is always safe: what happened once does not
// happen twice.
//
// An [Engine] holds realms; a [Realm] is one game or campaign: one ordered log,
// one state, one writer. A request runs under the realm's lock on the caller's
// goroutine; the event that it produces joins the open batch, and the call
// returns when that batch is durable (see [SyncPolicy]). While one batch is
// being written the next one fills.
//
// The log is the truth: opening a realm applies what its events say they
// changed. The room knows batches, positions, epochs and durability. What may
// happen it leaves to internal/rules, what is to internal/store, and how bytes
// become durable to wal.
package kuji
