package view

import "fmt"

// Status says how a command ended. Every status but 0, OK, is a failure that depends on the state and
// changes nothing, except that UnknownCode counts the guess. The numbers are part of the event format:
// never reuse one. 6, 7 and 13 were unknown pools, items and tracks. Package kuji has the constants.
type Status uint8

var statusNames = [...]string{
	0: "ok", 1: "sold_out", 2: "limit_reached", 3: "insufficient_items", 4: "not_started", 5: "ended",
	8: "count_too_large", 9: "balance_overflow", 10: "aborted", 11: "not_eligible", 12: "price_not_offered",
	14: "unknown_code", 15: "code_expired", 16: "code_used_up", 17: "code_redeemed", 18: "too_many_guesses",
	19: "code_required", 20: "not_reached", 21: "already_claimed", 22: "reward_unavailable", 23: "too_many_lots",
	24: "most_reached", 25: "mailbox_full", 26: "nothing_to_collect", 27: "unknown_round",
	28: "round_closed", 29: "already_joined", 30: "round_full", 31: "wrong_stake", 32: "already_open", 33: "too_many_rounds",
	34: "nobody_left", 35: "unknown_hold", 36: "hold_ended", 37: "too_many_holds", 38: "unknown_request", 39: "not_reversible",
	40: "already_reversed", 42: "blocked", 43: "unknown_player", 44: "already_linked", 45: "unknown_link_code", 46: "not_linked",
	47: "merge_needed", 48: "too_many_aliases", 49: "link_code_taken", 50: "forgotten", 255: "refused",
}

// String returns the status in snake_case.
func (s Status) String() string {
	if name := statusNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}
