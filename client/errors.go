package client

import (
	"crypto/tls"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// UnknownError says that commands may have happened or not. Send them again under their ids, or ask GetResult.
type UnknownError struct {
	RequestID  string   // of a single command
	RequestIDs []string // of all commands in doubt, of a batch or a stream too; empty: the call has none
	Err        error    // of the last attempt
}

func newUnknown(err error, ids ...string) *UnknownError {
	e := &UnknownError{RequestIDs: ids, Err: err}
	if len(ids) == 1 {
		e.RequestID = ids[0]
	}
	return e
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no answer: it may or may not have happened: %v", e.Err)
}
func (e *UnknownError) Unwrap() error { return e.Err }

// UnreachableError says that no server was reached: nothing was sent, so nothing has happened.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string {
	return "no connection, so nothing was sent: " + plainError{e.Err}.Error()
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// plainError is an error in the words of the server or of the network, without a code.
type plainError struct{ err error }

func (e plainError) Unwrap() error { return e.err }
func (e plainError) Error() string {
	if rpc, ok := errors.AsType[*connect.Error](e.err); ok {
		return rpc.Message()
	}
	return e.err.Error()
}

// Detail returns what the server says about an error. nil: no server said anything.
func Detail(err error) *kujiv1.ErrorDetail {
	rpc, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil
	}
	for _, d := range rpc.Details() {
		value, err := d.Value()
		if err != nil {
			continue // a detail of a newer server: the code still says enough
		}
		if detail, ok := value.(*kujiv1.ErrorDetail); ok {
			return detail
		}
	}
	return nil
}

// Reason returns the reason that the server gave for an error. REASON_UNSPECIFIED: it gave none.
func Reason(err error) kujiv1.Reason { return Detail(err).GetReason() }

// verdict is what follows from a failed attempt.
type verdict struct {
	again     bool // the same message may be sent again
	maybe     bool // if it was sent, it may have happened
	elsewhere bool // at another server, if there are several
}

// judge is the rule: the table of docs/reference/api.md on errors, and docs/clients.md for what no server of
// Kuji has said.
func (c *Client) judge(err error) verdict {
	rpc, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return verdict{maybe: true}
	}
	if _, distrusted := errors.AsType[*tls.CertificateVerificationError](err); distrusted {
		return verdict{} // nothing was sent, and trying again does not help
	}
	detail := Detail(err)
	switch reason := detail.GetReason(); reason {
	case kujiv1.Reason_REASON_UNSPECIFIED: // by its code
	case kujiv1.Reason_REASON_OVERLOADED, kujiv1.Reason_REASON_HISTORY:
		return verdict{again: true}
	case kujiv1.Reason_REASON_CLOSED, kujiv1.Reason_REASON_CANCELED: // the latter: an attempt was too long
		return verdict{again: true, elsewhere: true}
	case kujiv1.Reason_REASON_UNKNOWN_OUTCOME:
		return verdict{again: true, maybe: true, elsewhere: true}
	case kujiv1.Reason_REASON_FAILED: // until somebody restarts it; another node may lead already
		return verdict{again: len(c.servers.all) > 1, elsewhere: true}
	case kujiv1.Reason_REASON_INTERNAL:
		return verdict{maybe: true}
	default:
		if kujiv1.Reason_name[int32(reason)] != "" {
			return verdict{}
		}
	}
	switch rpc.Code() {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return verdict{again: true, maybe: true, elsewhere: true}
	case connect.CodeCanceled, connect.CodeUnknown, connect.CodeInternal, connect.CodeAborted, connect.CodeDataLoss:
		// Without a detail, something between broke off or answered in the server's place.
		return verdict{again: detail == nil, maybe: true, elsewhere: true}
	}
	if !connect.IsWireError(rpc) { // the client's own words about an answer
		garbled := rpc.Code() == connect.CodeInvalidArgument
		return verdict{again: garbled, maybe: garbled || rpc.Code() == connect.CodeResourceExhausted} // the latter: too large
	}
	return verdict{}
}
