// Package kuji is a durable reward engine to embed. It draws weighted rewards from pools with limited
// stock and grants them to players. It never gives one prize twice, never loses a prize that it
// acknowledged, and never gives more than there are.
//
//	e, err := kuji.Open("data", kuji.Options{})
//	r, err := e.Realm("default")
//	c, err := catalog.Parse(yaml)
//	_, err = r.Apply(ctx, c)
//	res, err := r.Do(ctx, kuji.Draw{ID: "order-17", Player: "ann", Pool: "standard"})
//
// A Result's Status says how the request ended: OK, or a refusal that depends on the state, such as
// SoldOut. An error means that there is no answer; [CodeOf] says why. Within the idempotency window it
// is safe to send a request again under its id: it gets the first answer again, a refusal included.
//
// An [Engine] holds realms. A [Realm] is one game or campaign: one ordered log, one state, one writer. A
// request runs under its lock, on the caller's goroutine: internal/rules decides and writes an event
// into the open batch, internal/store applies the event's effects. The call returns when the batch is
// durable, see [SyncPolicy]. Meanwhile the next batch fills.
//
// To open a realm is to replay its log, with the store alone. This package knows batches, positions,
// epochs, request ids and durability. What a reward is may not enter it.
package kuji
