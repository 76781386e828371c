package kuji

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
)

// Code classifies an [Error]. The set is closed.
type Code uint8

const (
	CodeInvalid        Code = iota + 1 // malformed request: fix it; nothing was logged
	CodeNotFound                       // no such player, pool, item, track or realm; nothing was logged
	CodeIDReused                       // the request id was used with other arguments
	CodeConflict                       // the state does not allow it: a catalog, or one realm or player too many
	CodeOverloaded                     // a queue or the idempotency window is full: try again later; nothing was logged
	CodeUnknownOutcome                 // the request may or may not have happened: send its id again
	CodeFailed                         // the realm stopped after a failed write or a defect: close the engine and open it again, or restart the server
	CodeClosed                         // the engine or realm is closed
	CodeCorrupt                        // the log or a file next to it is damaged: the message names the place
	CodeLocked                         // another engine has the data directory open
	CodeClock                          // the machine's clock is far ahead of a realm's log: see Options.ClockConfirmed
	CodeNotLeader                      // another node writes the realm now: ask that one
	CodeCanceled                       // the context ended: for a request, before it was accepted, and nothing was logged
	CodeTooOld                         // the request id is so old that it may have been answered and forgotten; nothing was logged
	CodeFormat                         // what is kept was written by a newer Kuji, or the realm's format level is too low for what is asked: see Realm.FinishUpgrade
)

var codeNames = [...]string{
	CodeInvalid: "invalid", CodeNotFound: "not_found", CodeIDReused: "id_reused", CodeConflict: "conflict",
	CodeOverloaded: "overloaded", CodeUnknownOutcome: "unknown_outcome", CodeFailed: "failed",
	CodeClosed: "closed", CodeCorrupt: "corrupt", CodeCanceled: "canceled", CodeLocked: "locked", CodeClock: "clock",
	CodeNotLeader: "not_leader", CodeTooOld: "too_old", CodeFormat: "format",
}

// String returns the code's name in snake_case.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Error is the error type of this package. Match it with [errors.As], or its code with [CodeOf].
type Error struct {
	Code    Code
	Field   string // path of the field at fault, such as "items[2].quantity"; may be empty
	Message string // what was wrong and what was expected
	Err     error  // the cause; may be nil
}

func (e *Error) Error() string {
	parts := []string{"kuji", e.Code.String(), e.Field, e.Message}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain, or 0.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

func errf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// value returns v, or with an error none.
func value[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// ErrorOf makes an *Error of a driver's or a log's error, unless it has one in its chain, or is nil.
func ErrorOf(what string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return &Error{Code: codeOfLedger(err), Message: what, Err: err}
}

func codeOfLedger(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	_, unsound := errors.AsType[*ledger.CorruptError](err)
	_, damaged := errors.AsType[*driver.CorruptError](err)
	_, cut := errors.AsType[*driver.CutError](err)
	_, trimmed := errors.AsType[*driver.TrimmedError](err)
	_, deposed := errors.AsType[*ledger.DeposedError](err)
	_, newer := errors.AsType[*format.NewerError](err)
	switch {
	case newer:
		return CodeFormat
	case unsound, damaged, cut, trimmed:
		return CodeCorrupt
	case deposed:
		return CodeNotLeader
	case errors.Is(err, driver.ErrLocked):
		return CodeLocked
	case errors.Is(err, driver.ErrExist):
		return CodeConflict
	}
	return CodeFailed
}
