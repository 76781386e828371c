// Package conformance holds every client of Kuji to docs/clients.md. Its tests start a real server, and servers
// that answer as a script says, put faults between them and a client, and play scenarios.
//
// A client takes part by a small program in its language. It reads a line of JSON for each thing to do, and
// writes lines of JSON about it, in any order: several things go on at once. Messages of the contract stand
// in them as Protocol Buffers write JSON. "n" says which thing a line is about.
//
//	{"n": 1, "op": "open", "client": "a", "urls": ["http://…"], "key": "", "timeoutMs": 10000, "attemptMs": 0, "silenceMs": 0}
//	{"n": 2, "op": "call", "client": "a", "service": "RewardService", "method": "Draw", "request": {"player": "ann", "pool": "hats"}}
//	{"n": 3, "op": "draws", "client": "a", "batches": [{"players": ["ann"], "pools": ["hats"]}]}
//	{"n": 4, "op": "events", "client": "a", "request": {"from": "1"}, "events": 100}
//	{"n": 5, "op": "cancel", "of": 4}
//	{"n": 6, "op": "id"}
//
// A call ends with its answer or its error. A stream and a feed have an "item" for each answer and each message
// before they end, the feed when it has brought so many events:
//
//	{"n": 2, "result": {"result": {"status": "STATUS_OK"}}}
//	{"n": 3, "item": {"runs": []}}
//	{"n": 3, "result": {}}
//	{"n": 5, "result": {}}
//	{"n": 6, "result": {"id": "01J851D5RTQ4Z8XKB7N3VYEH6C"}}
//	{"n": 2, "error": {"kind": "unknown", "code": "unavailable", "reason": "REASON_UNKNOWN_OUTCOME", "message": "…", "requestIds": ["…"], "fields": []}}
//
// The kind of an error is "unknown" if what was asked may have happened, "unreachable" if no server was reached,
// and "server" for all others. Fields are those that the server names as wrong.
//
// Only tests enter here. What a client must do is decided in docs/clients.md.
package conformance
