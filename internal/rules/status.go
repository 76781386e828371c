package rules

import "fmt"

// Status says how a command ended. Every status but OK is a refusal that depends on the state and
// changes nothing, except that UnknownCode counts the guess. The numbers are part of the event format:
// never reuse one. 6, 7 and 13 once were unknown pools, items and tracks.
type Status uint8

const (
	OK                Status = 0
	SoldOut           Status = 1
	LimitReached      Status = 2
	InsufficientItems Status = 3
	NotStarted        Status = 4
	Ended             Status = 5
	CountTooLarge     Status = 8
	BalanceOverflow   Status = 9
	Aborted           Status = 10
	NotEligible       Status = 11
	PriceNotOffered   Status = 12
	UnknownCode       Status = 14
	CodeExpired       Status = 15
	CodeUsedUp        Status = 16
	CodeRedeemed      Status = 17
	TooManyGuesses    Status = 18
	CodeRequired      Status = 19

	statusEnd Status = 20 // one more than the last status in a log

	// Refused is never in a log: the command is not carried out. Odds say it of a pool that only
	// other pools draw from.
	Refused Status = 255
)

var statusNames = [statusEnd]string{
	OK: "ok", SoldOut: "sold_out", LimitReached: "limit_reached", InsufficientItems: "insufficient_items",
	NotStarted: "not_started", Ended: "ended",
	CountTooLarge: "count_too_large", BalanceOverflow: "balance_overflow", Aborted: "aborted",
	NotEligible: "not_eligible", PriceNotOffered: "price_not_offered",
	UnknownCode: "unknown_code", CodeExpired: "code_expired", CodeUsedUp: "code_used_up", CodeRedeemed: "code_redeemed",
	TooManyGuesses: "too_many_guesses", CodeRequired: "code_required",
}

// String returns the status in snake_case.
func (s Status) String() string {
	if s < statusEnd && statusNames[s] != "" {
		return statusNames[s]
	}
	if s == Refused {
		return "refused"
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}
