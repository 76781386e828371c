"""A client of Kuji. It keeps one rule: a command goes out under one request id, and again under the same id, until
there is an answer. So a lost connection, a busy server or a node that dies never makes a draw happen twice.

    client = kuji.Client("http://127.0.0.1:7700")
    answer = client.draw(kuji.v1.DrawRequest(player="ann", pool="splash"))

Messages and enums stand in kuji.v1. How the client behaves is said in docs/clients.md of the project.
"""

from kuji import v1 as v1
from kuji._async import AsyncClient as AsyncClient
from kuji._cancel import Cancel as Cancel
from kuji._errors import KujiError as KujiError
from kuji._errors import UnknownError as UnknownError
from kuji._errors import UnreachableError as UnreachableError
from kuji._ids import new_id as new_id
from kuji._sync import Client as Client

__all__ = ["AsyncClient", "Cancel", "Client", "KujiError", "UnknownError", "UnreachableError", "new_id", "v1"]
