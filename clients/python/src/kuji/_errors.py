"""Errors as callers see them."""

from __future__ import annotations

from collections.abc import Sequence

from kuji import v1


class KujiError(Exception):
    """A call failed. Unless it is one of the other two kinds, nothing has happened, or it was a read.

    code is that of the transport, such as "invalid_argument". reason is what the server says, such as
    "REASON_INVALID", "" if no server said anything. detail has all of that.
    """

    def __init__(self, code: str, message: str, detail: v1.ErrorDetail | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.detail = detail

    @property
    def reason(self) -> str:
        """The server's reason, by name; one that this version does not know by number."""
        number = self.detail.reason if self.detail is not None else 0
        if number == 0:
            return ""
        return v1.Reason.Name(number) if number in v1.Reason.values() else str(number)

    @property
    def violations(self) -> Sequence[v1.Violation]:
        """What is wrong with which part of the request."""
        return self.detail.violations if self.detail is not None else ()


class UnknownError(KujiError):
    """Commands may have happened or not. Send them again under their ids, or ask get_result."""

    def __init__(self, error: KujiError, request_ids: Sequence[str]) -> None:
        super().__init__(error.code, error.message, error.detail)
        self.args = (f"unknown outcome of {', '.join(request_ids) or 'a call without an id'}: {error}",)
        self.request_ids = list(request_ids)


class UnreachableError(KujiError):
    """No server was reached: nothing was sent, so nothing has happened."""

    def __init__(self, error: KujiError) -> None:
        super().__init__(error.code, error.message, error.detail)
        self.args = (f"no connection, so nothing was sent: {error.message}",)
