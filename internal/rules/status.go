package rules

import "github.com/kuji-dev/kuji/view"

// Status says how a command ended.
type Status = view.Status

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
	NotReached        Status = 20
	AlreadyClaimed    Status = 21
	RewardUnavailable Status = 22
	TooManyLots       Status = 23
	MostReached       Status = 24
	MailboxFull       Status = 25
	NothingToCollect  Status = 26
	UnknownRound      Status = 27
	RoundClosed       Status = 28
	AlreadyJoined     Status = 29
	RoundFull         Status = 30
	WrongStake        Status = 31
	AlreadyOpen       Status = 32
	TooManyRounds     Status = 33
	NobodyLeft        Status = 34
	UnknownHold       Status = 35
	HoldEnded         Status = 36
	TooManyHolds      Status = 37
	UnknownRequest    Status = 38
	NotReversible     Status = 39
	AlreadyReversed   Status = 40

	Blocked         Status = 42
	UnknownPlayer   Status = 43
	AlreadyLinked   Status = 44
	UnknownLinkCode Status = 45
	NotLinked       Status = 46
	MergeNeeded     Status = 47
	TooManyAliases  Status = 48
	LinkCodeTaken   Status = 49
	Forgotten       Status = 50

	// Refused is never in a log: the command is not carried out. Odds say it of a pool that only
	// other pools draw from.
	Refused Status = 255
)
