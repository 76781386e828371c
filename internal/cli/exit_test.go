package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func rpcError(t *testing.T, code connect.Code, reason kujiv1.Reason, violations ...*kujiv1.Violation) *connect.Error {
	t.Helper()
	err := connect.NewWireError(code, errors.New("said by the server"))
	if reason != kujiv1.Reason_REASON_UNSPECIFIED {
		d, derr := connect.NewErrorDetail(&kujiv1.ErrorDetail{Reason: reason, Violations: violations})
		if derr != nil {
			t.Fatal(derr)
		}
		err.AddDetail(d)
	}
	return err
}

func TestClassify(t *testing.T) {
	none := kujiv1.Reason_REASON_UNSPECIFIED
	for _, tt := range []struct {
		name string
		err  error
		want exitCode
	}{
		{"unknown", errors.New("x"), exitUnexpected},
		{"usage", usageError{errors.New("x")}, exitUsage},
		{"usage, wrapped", fmt.Errorf("y: %w", usageError{errors.New("x")}), exitUsage},
		{"refused", refusedError{"sold_out"}, exitRefused},
		{"damage", damageError{errors.New("x")}, exitDamage},
		{"canceled though nobody interrupted", context.Canceled, exitUnexpected},
		{"invalid argument", rpcError(t, connect.CodeInvalidArgument, none), exitUsage},
		{"not found", rpcError(t, connect.CodeNotFound, kujiv1.Reason_REASON_NOT_FOUND), exitRefused},
		{"reason before code", rpcError(t, connect.CodeUnavailable, kujiv1.Reason_REASON_CORRUPT), exitDamage},
		{"no key", rpcError(t, connect.CodeUnauthenticated, kujiv1.Reason_REASON_UNAUTHENTICATED), exitDenied},
		{"wrong role", rpcError(t, connect.CodePermissionDenied, none), exitDenied},
		{"busy", rpcError(t, connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED), exitUnreachable},
		{"unknown outcome", &client.UnknownError{RequestID: "id", Err: rpcError(t, connect.CodeUnavailable, kujiv1.Reason_REASON_FAILED)}, exitUnreachable},
		{"defect of the server", rpcError(t, connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL), exitUnexpected},
		{"nobody there", connect.NewError(connect.CodeUnavailable, errors.New("connection refused")), exitUnreachable},
		{"transport's own words", connect.NewError(connect.CodeUnknown, errors.New("EOF")), exitUnreachable},
		{"locked directory", &kuji.Error{Code: kuji.CodeLocked}, exitRefused},
		{"damaged log", fmt.Errorf("open: %w", &kuji.Error{Code: kuji.CodeCorrupt}), exitDamage},
		{"full disk", &kuji.Error{Code: kuji.CodeFailed}, exitUnexpected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := classify(t.Context(), tt.err)
			if f.Exit != tt.want {
				t.Errorf("exit code %d (%s), want %d", f.Exit, f.Message, tt.want)
			}
			if f.Kind == "" {
				t.Errorf("exit code %d has no kind", f.Exit)
			}
		})
	}
	doubt := fmt.Errorf("draw: %w", &client.UnknownError{RequestID: "the-id", Err: context.Canceled})
	if f := classify(t.Context(), doubt); f.Exit != exitUnreachable || f.RequestID != "the-id" || !strings.Contains(f.Message, "--id the-id") {
		t.Errorf("in doubt: %+v, want how to find out", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := classify(ctx, doubt); f.Exit != exitInterrupted || f.RequestID != "the-id" || !strings.Contains(f.Message, "--id the-id") {
		t.Errorf("in doubt and interrupted: %+v, want how to find out", f)
	}
	if f := classify(ctx, fmt.Errorf("draw: %w", context.Canceled)); f.Exit != exitInterrupted {
		t.Errorf("exit code %d after a signal, want %d", f.Exit, exitInterrupted)
	}
}

// TestEveryReason: a reason that somebody adds to the contract needs an exit code.
func TestEveryReason(t *testing.T) {
	for n, name := range kujiv1.Reason_name {
		reason := kujiv1.Reason(n)
		if reason == kujiv1.Reason_REASON_UNSPECIFIED || reason == kujiv1.Reason_REASON_INTERNAL {
			continue
		}
		if exitOfReason[reason] == 0 {
			t.Errorf("%s has no exit code", name)
		}
	}
}

// TestHelpNamesEveryExitCode: the help page, the docs and the code say the same.
func TestHelpNamesEveryExitCode(t *testing.T) {
	page := helpTexts()["kuji exit-codes"]
	docs, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []exitCode{exitOK, exitUnexpected, exitUsage, exitRefused, exitDenied, exitUnreachable, exitDamage, exitInterrupted} {
		if !strings.Contains(page, fmt.Sprintf("\n%5s  ", strconv.Itoa(int(code)))) {
			t.Errorf("the help page lacks exit code %d", code)
		}
		if !strings.Contains(string(docs), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/reference/cli.md lacks exit code %d", code)
		}
	}
}

func TestViolationsAreShown(t *testing.T) {
	err := rpcError(t, connect.CodeInvalidArgument, kujiv1.Reason_REASON_INVALID,
		&kujiv1.Violation{Field: "items[2].quantity", Description: "is 0, want at least 1"},
		&kujiv1.Violation{Line: 3, Column: 7, Description: "unknown key"})
	f := classify(t.Context(), err)
	for _, want := range []string{"items[2].quantity: is 0, want at least 1", "3:7: unknown key"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("message %q lacks %q", f.Message, want)
		}
	}
	if len(f.Violations) != 2 || f.Reason != "invalid" || f.Code != "invalid_argument" {
		t.Errorf("got %+v", f)
	}
}
