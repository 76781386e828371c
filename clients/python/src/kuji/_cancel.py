"""Ending a call of the blocking client from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Cancel:
    """Ends the calls, feeds and streams that it was given to. It can be used once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._happened = threading.Event()
        self._then: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Ends them, from any thread."""
        with self._lock:
            self._happened.set()
            then, self._then = self._then, []
        for f in then:
            f()

    @property
    def cancelled(self) -> bool:
        """Whether cancel was called."""
        return self._happened.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits so long, or until cancel is called. Returns whether it was."""
        return self._happened.wait(seconds)

    def on(self, f: Callable[[], object]) -> None:
        """Has f called by cancel, at once if that was called before."""
        with self._lock:
            if not self._happened.is_set():
                self._then.append(f)
                return
        f()

    def off(self, f: Callable[[], object]) -> None:
        """Has f not called any more."""
        with self._lock:
            if f in self._then:
                self._then.remove(f)
