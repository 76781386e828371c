package contract

import (
	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Refused returns the error of a request that is refused for a reason of the contract.
func Refused(code connect.Code, reason kujiv1.Reason, cause error) *connect.Error {
	return WithDetail(connect.NewError(code, cause), &kujiv1.ErrorDetail{Reason: reason})
}

// WithDetail attaches a detail to an error, and returns the error.
func WithDetail(ce *connect.Error, d *kujiv1.ErrorDetail) *connect.Error {
	if detail, err := connect.NewErrorDetail(d); err == nil { // fails only for invalid UTF-8: then the client gets code and text
		ce.AddDetail(detail)
	}
	return ce
}
