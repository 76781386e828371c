package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/contract"
	"github.com/kuji-dev/kuji/internal/demo"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
	"github.com/kuji-dev/kuji/wal"
)

// exitCode is how the process ends. The numbers are part of the interface: scripts rely on them.
type exitCode int

const (
	exitOK          exitCode = 0
	exitUnexpected  exitCode = 1   // anything not listed below
	exitUsage       exitCode = 2   // bad flags, arguments, catalog or request: fix them
	exitRefused     exitCode = 3   // understood and refused by the state: sold out, too poor, not found, in use …
	exitDenied      exitCode = 4   // no API key, an unknown one, or one that may not do this
	exitUnreachable exitCode = 5   // no answer: it may have happened; send the same id again
	exitDamage      exitCode = 6   // a log is damaged, or a check found a promise broken
	exitInterrupted exitCode = 130 // stopped by a signal before it was done
)

// exitCodesTopic is the help page on exit codes: "kuji help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean"}
}

// usageError marks what the person at the keyboard can fix.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// refusedError marks what the state refused.
type refusedError struct{ msg string }

func (e refusedError) Error() string { return e.msg }

// damageError marks damage, or a check that failed.
type damageError struct{ err error }

func (e damageError) Error() string { return e.err.Error() }
func (e damageError) Unwrap() error { return e.err }

// failure is a failed command on standard error and, with --json, standard output: part of the interface.
type failure struct {
	Exit       exitCode `json:"exit"`
	Kind       string   `json:"kind"`                 // the exit code as a word
	Message    string   `json:"message"`              // for a person
	Code       string   `json:"code,omitempty"`       // the API's code, when a server answered
	Reason     string   `json:"reason,omitempty"`     // the API's reason, when a server gave one
	RequestID  string   `json:"request_id,omitempty"` // of a command that may have happened: send it again
	Violations []plain  `json:"violations,omitempty"`
}

var exitKinds = map[exitCode]string{
	exitUnexpected: "unexpected", exitUsage: "usage", exitRefused: "refused", exitDenied: "denied",
	exitUnreachable: "unreachable", exitDamage: "damage", exitInterrupted: "interrupted",
}

// classify is the one place where errors become exit codes.
func classify(ctx context.Context, err error) failure {
	f := failure{Exit: exitUnexpected, Message: strings.TrimPrefix(err.Error(), "kuji: ")} // the program's name stands before it anyway
	var (
		rpc     *connect.Error
		usage   usageError
		refused refusedError
		of      *cluster.RefusedError
		damage  damageError
		wrong   *verify.Error
		broken  *demo.BrokenError
		unknown *client.UnknownError
	)
	inDoubt := errors.As(err, &unknown)
	bad, isCatalog := errors.AsType[catalogError](err)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		f.Exit, f.Message = exitInterrupted, "interrupted"
	case errors.As(err, &damage), errors.As(err, &wrong), errors.As(err, &broken), errors.Is(err, wal.ErrCorrupt):
		f.Exit = exitDamage
	case errors.As(err, &usage):
		f.Exit = exitUsage
		f.Message += "\nRun the command with --help to see how to use it."
	case errors.As(err, &refused), errors.As(err, &of):
		f.Exit = exitRefused
	case errors.As(err, &rpc):
		f.fromRPC(rpc)
	case isCatalog:
		f.Exit = exitUsage
	case inDoubt:
		f.Exit = exitUnreachable
	case kuji.CodeOf(err) != 0:
		f.Exit = exitOfEngine(kuji.CodeOf(err))
	}
	if isCatalog {
		f.Message = bad.Error()
	}
	if inDoubt {
		f.RequestID, f.Message = unknown.RequestID, err.Error()
		if f.RequestID != "" {
			f.Message = fmt.Sprintf("no answer: it may or may not have happened. Send the same command with --id %s to find out: %v", f.RequestID, unknown.Err)
		}
	}
	f.Kind = exitKinds[f.Exit]
	return f
}

// fromRPC fills in what an answer, or the lack of one, says.
func (f *failure) fromRPC(rpc *connect.Error) {
	f.Code = rpc.Code().String()
	f.Exit = exitOfCode(rpc.Code())
	detail := client.Detail(rpc)
	if detail == nil {
		if f.Exit == exitUnexpected && !connect.IsWireError(rpc) {
			f.Exit = exitUnreachable // the transport's own words: no server said them
		}
		return
	}
	if detail.GetReason() != kujiv1.Reason_REASON_UNSPECIFIED {
		f.Reason = contract.Word(detail.GetReason())
		f.Exit = cmp.Or(exitOfReason[detail.GetReason()], exitUnexpected)
	}
	f.Message = rpc.Message()
	for _, v := range detail.GetViolations() {
		f.Violations = append(f.Violations, plain{Message: v})
		where := when(v.GetField() != "", v.GetField()+": ")
		if v.GetLine() > 0 {
			where = fmt.Sprintf("%d:%d: ", v.GetLine(), v.GetColumn())
		}
		if !strings.Contains(f.Message, v.GetDescription()) {
			f.Message += "\n  " + where + v.GetDescription()
		}
	}
}

// exitOfReason says how the process ends after an answer with a reason.
var exitOfReason = map[kujiv1.Reason]exitCode{
	kujiv1.Reason_REASON_INVALID:         exitUsage,
	kujiv1.Reason_REASON_NOT_FOUND:       exitRefused,
	kujiv1.Reason_REASON_ID_REUSED:       exitRefused,
	kujiv1.Reason_REASON_CONFLICT:        exitRefused,
	kujiv1.Reason_REASON_TOO_OLD:         exitRefused,
	kujiv1.Reason_REASON_FORMAT:          exitRefused,
	kujiv1.Reason_REASON_UNAUTHENTICATED: exitDenied,
	kujiv1.Reason_REASON_FORBIDDEN:       exitDenied,
	kujiv1.Reason_REASON_OVERLOADED:      exitUnreachable,
	kujiv1.Reason_REASON_UNKNOWN_OUTCOME: exitUnreachable,
	kujiv1.Reason_REASON_FAILED:          exitUnreachable,
	kujiv1.Reason_REASON_CLOSED:          exitUnreachable,
	kujiv1.Reason_REASON_CANCELED:        exitUnreachable,
	kujiv1.Reason_REASON_HISTORY:         exitUnreachable,
	kujiv1.Reason_REASON_CORRUPT:         exitDamage,
}

func exitOfCode(c connect.Code) exitCode {
	switch c {
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return exitUsage
	case connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodeFailedPrecondition:
		return exitRefused
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		return exitDenied
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted, connect.CodeCanceled, connect.CodeAborted:
		return exitUnreachable
	case connect.CodeDataLoss:
		return exitDamage
	}
	return exitUnexpected
}

func exitOfEngine(c kuji.Code) exitCode {
	switch c {
	case kuji.CodeInvalid:
		return exitUsage
	case kuji.CodeNotFound, kuji.CodeIDReused, kuji.CodeConflict, kuji.CodeLocked, kuji.CodeClock, kuji.CodeTooOld, kuji.CodeNotLeader, kuji.CodeFormat:
		return exitRefused
	case kuji.CodeCorrupt:
		return exitDamage
	}
	return exitUnexpected
}
