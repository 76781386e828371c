package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// This file is the only place where errors become answers. docs/reference/api.md has the same tables for
// clients; a test compares them.
//
// The codes follow one rule, so that a client's standard retry policy does the right thing:
// unavailable means that it is safe to send the same request again. No other code that retry
// policies react to is used.

// answer is what an engine code becomes.
type answer struct {
	code   connect.Code
	reason kujiv1.Reason
}

var codeAnswers = map[kuji.Code]answer{
	kuji.CodeInvalid:        {connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID},
	kuji.CodeNotFound:       {connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND},
	kuji.CodeIDReused:       {connect.CodeAlreadyExists, kujiv1.Reason_REASON_ID_REUSED},
	kuji.CodeConflict:       {connect.CodeFailedPrecondition, kujiv1.Reason_REASON_CONFLICT},
	kuji.CodeOverloaded:     {connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED},
	kuji.CodeUnknownOutcome: {connect.CodeUnavailable, kujiv1.Reason_REASON_UNKNOWN_OUTCOME}, // or unknown: see connectError
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

// errPanic is all that a client learns about a panic.
var errPanic = errors.New("internal error")

// connectError translates any error from a handler. request is the decoded request, nil for a
// stream.
func (s *Server) connectError(err error, request any) *connect.Error {
	if ce, ok := errors.AsType[*connect.Error](err); ok {
		return ce
	}
	if se, ok := errors.AsType[*streamError](err); ok {
		request = se
	}
	if ke, ok := errors.AsType[*kuji.Error](err); ok {
		a, ok := codeAnswers[ke.Code]
		switch {
		case !ok:
			a = answer{connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL}
		case ke.Code == kuji.CodeUnknownOutcome && !repeatable(request):
			// Sent again, it could happen twice: no retry policy may decide that.
			a.code = connect.CodeUnknown
		case ke.Code == kuji.CodeFailed && s.o.Cluster != nil: // another server takes over
			a = codeAnswers[kuji.CodeClosed]
		case ke.Code == kuji.CodeCanceled && errors.Is(err, context.DeadlineExceeded):
			a.code = connect.CodeDeadlineExceeded
		}
		if machine(ke) {
			s.logFailure(ke)
		}
		return withDetail(connect.NewError(a.code, errors.New(messageOf(ke))), detailOf(ke, a.reason))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return withDetail(connect.NewError(connect.CodeDeadlineExceeded, err), &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_CANCELED})
	case errors.Is(err, context.Canceled):
		return withDetail(connect.NewError(connect.CodeCanceled, err), &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_CANCELED})
	case !errors.Is(err, errPanic):
		s.log.Error("unexpected error", "error", err)
	}
	return withDetail(connect.NewError(connect.CodeInternal, errPanic), &kujiv1.ErrorDetail{Reason: kujiv1.Reason_REASON_INTERNAL})
}

// repeatable reports whether a request can be sent again safely: all its commands have request
// ids, or it has no commands.
func repeatable(request any) bool {
	switch r := request.(type) {
	case *streamError:
		return r.named
	case *kujiv1.BatchRequest:
		for _, c := range r.GetCommands() {
			if c.GetRequestId() == "" {
				return false
			}
		}
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

// machine reports whether the cause of an engine error is one of the machine. It may name files of
// the server, or hold a stack: it is for the log, and clients get what is in front of it, which
// names the realm.
func machine(e *kuji.Error) bool {
	switch e.Code {
	case kuji.CodeFailed, kuji.CodeCorrupt, kuji.CodeLocked:
		return true
	case kuji.CodeUnknownOutcome:
		return !errors.Is(e.Err, context.Canceled) && !errors.Is(e.Err, context.DeadlineExceeded)
	}
	return false
}

// messageOf returns the text of an engine error for clients, without the prefix that Connect's code
// already gives.
func messageOf(e *kuji.Error) string {
	var parts []string
	if e.Field != "" {
		parts = append(parts, fieldOf(e))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil && !machine(e) {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// detailOf returns the detail of an engine error, with what is wrong field by field.
func detailOf(e *kuji.Error, reason kujiv1.Reason) *kujiv1.ErrorDetail {
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

// withDetail attaches a detail to an error.
func withDetail(ce *connect.Error, d *kujiv1.ErrorDetail) *connect.Error {
	if detail, err := connect.NewErrorDetail(d); err == nil { // fails only for invalid UTF-8: then the client gets code and text
		ce.AddDetail(detail)
	}
	return ce
}

// logEvery is the least time between two log lines about failed realms. Every call to such a realm
// gets the error; one line is enough.
const logEvery = 10 * time.Second

func (s *Server) logFailure(err error) {
	now := time.Now().UnixNano()
	last := s.lastLog.Load()
	if now-last < int64(logEvery) || !s.lastLog.CompareAndSwap(last, now) {
		return
	}
	s.log.Error("a realm has stopped", "error", err)
}
