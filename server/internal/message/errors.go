package message

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// This file is the only place where errors become answers. docs/reference/api.md has the same
// tables for clients; a test compares them. The codes suit a standard retry policy: unavailable
// means that it is safe to send the same request again, and no other code makes it do so.

// Answer is what an engine code becomes.
type Answer struct {
	Code   connect.Code
	Reason kujiv1.Reason
}

// Answers are what the engine's codes become.
var Answers = map[kuji.Code]Answer{
	kuji.CodeInvalid:        {connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID},
	kuji.CodeNotFound:       {connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND},
	kuji.CodeIDReused:       {connect.CodeAlreadyExists, kujiv1.Reason_REASON_ID_REUSED},
	kuji.CodeConflict:       {connect.CodeFailedPrecondition, kujiv1.Reason_REASON_CONFLICT},
	kuji.CodeOverloaded:     {connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED},
	kuji.CodeUnknownOutcome: {connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME}, // or unknown: see Error
	kuji.CodeFailed:         {connect.CodeUnavailable, kujiv1.Reason_REASON_FAILED},
	kuji.CodeClosed:         {connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED},
	kuji.CodeCorrupt:        {connect.CodeDataLoss, kujiv1.Reason_REASON_CORRUPT},
	kuji.CodeLocked:         {connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED},          // only while opening
	kuji.CodeClock:          {connect.CodeFailedPrecondition, kujiv1.Reason_REASON_CONFLICT}, // only while opening
	kuji.CodeNotLeader:      {connect.CodeUnavailable, kujiv1.Reason_REASON_CLOSED},
	kuji.CodeTooOld:         {connect.CodeOutOfRange, kujiv1.Reason_REASON_TOO_OLD},
	kuji.CodeFormat:         {connect.CodeFailedPrecondition, kujiv1.Reason_REASON_FORMAT},
	kuji.CodeCanceled:       {connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED}, // or deadline_exceeded
}

// ErrPanic is all that a client learns about a panic.
var ErrPanic = errors.New("internal error")

// Error translates an error from a handler that is none of Connect's. request is nil for a stream.
// In a cluster, another server takes over what a failed realm does.
func Error(err error, request any, cluster bool) *connect.Error {
	if s, ok := errors.AsType[interface {
		error
		Repeatable() bool
	}](err); ok {
		request = s
	}
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		a, ok := Answers[ke.Code]
		switch {
		case !ok:
			a = Answer{connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL}
		case ke.Code == kuji.CodeUnknownOutcome && !repeatable(request):
			// Sent again, it could happen twice: no retry policy may decide that.
			a.Code = connect.CodeUnknown
		case ke.Code == kuji.CodeFailed && cluster:
			a = Answers[kuji.CodeClosed]
		case ke.Code == kuji.CodeCanceled && errors.Is(err, context.DeadlineExceeded):
			a.Code = connect.CodeDeadlineExceeded
		}
		return contract.WithDetail(connect.NewError(a.Code, errors.New(Text(ke))), detail(ke, a.Reason))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return contract.Refused(connect.CodeDeadlineExceeded, kujiv1.Reason_REASON_CANCELED, err)
	case errors.Is(err, context.Canceled):
		return contract.Refused(connect.CodeCanceled, kujiv1.Reason_REASON_CANCELED, err)
	}
	return contract.Refused(connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL, ErrPanic)
}

// repeatable reports whether a request can be sent again safely: each command has a request id.
func repeatable(request any) bool {
	switch r := request.(type) {
	case interface{ Repeatable() bool }: // an error of a stream
		return r.Repeatable()
	case *kujiv1.BatchRequest:
		return !slices.ContainsFunc(r.GetCommands(), func(c *kujiv1.Command) bool { return c.GetRequestId() == "" })
	case interface{ GetRequestId() string }:
		return r.GetRequestId() != ""
	}
	return true
}

// fieldOf returns the contract's name for the field of an engine error.
func fieldOf(e *kuji.Error) string {
	switch e.Field {
	case "id":
		return "request_id"
	case "version":
		return "expected_version"
	case "time":
		return "time_unix_ms"
	}
	return e.Field
}

// Machine reports whether the cause of an engine error lies in the machine. Such a cause may name
// files of the server: it is only for the log. Clients get the text before it.
func Machine(e *kuji.Error) bool {
	switch e.Code {
	case kuji.CodeFailed, kuji.CodeCorrupt, kuji.CodeLocked:
		return true
	case kuji.CodeUnknownOutcome:
		return !errors.Is(e.Err, context.Canceled) && !errors.Is(e.Err, context.DeadlineExceeded)
	}
	return false
}

// Text returns the text of an engine error for clients, without a code's prefix.
func Text(e *kuji.Error) string {
	var parts []string
	if e.Field != "" {
		parts = append(parts, fieldOf(e))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil && !Machine(e) {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// detail returns the detail of an engine error, with what is wrong field by field.
func detail(e *kuji.Error, reason kujiv1.Reason) *kujiv1.ErrorDetail {
	d := &kujiv1.ErrorDetail{Reason: reason}
	if t, ok := errors.AsType[*kuji.TrimmedError](e); ok {
		d.FirstPosition = t.First
	}
	if list, ok := errors.AsType[*catalog.Errors](e); ok {
		for _, one := range list.List {
			d.Violations = append(d.Violations, &kujiv1.Violation{
				Field: one.Path, Description: one.Message, Line: uint32(one.Line), Column: uint32(one.Column),
			})
		}
		return d
	}
	if e.Code == kuji.CodeInvalid || e.Field != "" {
		d.Violations = []*kujiv1.Violation{{Field: fieldOf(e), Description: e.Message}}
	}
	return d
}
