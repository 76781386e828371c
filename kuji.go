// Package kuji is a durable reward engine to embed. It draws weighted rewards from pools with
// limited stock and grants them to players. It never gives one prize twice, never loses a prize
// that it acknowledged, and never gives more than there are.
//
//	e, err := kuji.Open("data", kuji.Options{})
//	r, err := e.Realm("default")
//	c, err := catalog.Parse(yaml)
//	_, err = r.Apply(ctx, c)
//	res, err := r.Do(ctx, kuji.Draw{ID: "order-17", Player: "ann", Pool: "standard"})
//
// The Status of a Result says how the request ended: OK, or a refusal that depends on the state,
// such as SoldOut. An error means that there is no answer; [CodeOf] says why. The idempotency window
// remembers request ids: the same id gets the same answer again, refusals included. Within the window
// it is always safe to send a request again under its id.
//
// An [Engine] holds realms. A [Realm] is one game or campaign: one ordered log, one state, one
// writer. Every request takes one way, under the realm's lock and on the caller's goroutine:
// internal/rules decides what happens and writes it as an event into the open batch, and internal/store
// applies the effects in that event to the state. The call returns when the batch is durable (see
// [SyncPolicy]). While one batch is written, the next one fills.
//
// The log is the truth: to open a realm is to replay its log, with the store alone. This package knows
// batches, positions, epochs, request ids and durability. What a reward is may not enter it.
package kuji
