"""A web server that does what no server should: each requested host name is a separate site.

It is a proxy, so that one port serves any number of hosts, and no crawl needs a name server or reaches a network. A
site answers with *steps*: bytes to send unchanged, seconds to wait, or :data:`RESET`, which resets the connection. So
every fault of a server, of a network and of a page is a generator of a few lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Step = bytes | float | object
    Answer = Iterable[Step]

#: As a step: end the connection with a TCP reset.
RESET = object()
_LONGEST_HEAD = 4 << 20  # bytes of a request line with its headers
_SUFFIXES = ("publicsuffix.org", "raw.githubusercontent.com")  # Scrapy's cookies ask them once on a fresh machine
_PIECE = 1 << 18  # bytes that are written at once


@dataclass(frozen=True)
class Asked:
    """A request as received."""

    method: str
    host: str
    path: str  # with the query
    count: int  # how often this host was asked for this path, this time included
    referer: str = ""


def response(
    body: bytes | str = b"",
    *,
    status: str = "200 OK",
    mime: str | None = "text/html; charset=utf-8",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return a whole response, well-formed as long as its arguments are."""
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(content)}"]
    if mime is not None:
        lines.append(f"Content-Type: {mime}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + content


@dataclass
class FaultServer:
    """Serves ``sites``, by host name, in a thread while it is entered; ``log`` has all requests.

    A site is a function from :class:`Asked` to its answer, and serves sub-domains, too. Other hosts answer
    404, and are in the log as well.
    """

    sites: dict[str, Callable[[Asked], Answer]]
    log: list[Asked] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)  # of the sites' own
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __enter__(self) -> FaultServer:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._end = asyncio.Event()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    def forget(self) -> None:
        """Clear the log."""
        self.log, self._counts = [], Counter()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_LONGEST_HEAD)
        await self._end.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            for step in self._answer(head):
                await _take(step, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.errors.append(error)
        with contextlib.suppress(OSError):
            writer.close()

    def _answer(self, head: str) -> Iterator[Step]:
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2) if first.count(" ") >= 2 else (first, "", "")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if method == "CONNECT":
            host, path = target.rpartition(":")[0], ""
        else:
            url = urlsplit(target)
            host = url.hostname or headers.get("host", "").partition(":")[0]
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        if host in _SUFFIXES:
            return iter([response("none", status="404 Not Found")])
        self._counts[host, path] += 1
        asked = Asked(method, host, path, self._counts[host, path], headers.get("referer", ""))
        self.log.append(asked)
        while host and host not in self.sites:
            host = host.partition(".")[2]
        return iter(self.sites[host](asked) if host else [response("none", status="404 Not Found")])


async def _take(step: Step, writer: asyncio.StreamWriter) -> None:
    if isinstance(step, bytes):
        for start in range(0, len(step), _PIECE):
            writer.write(step[start : start + _PIECE])
            await writer.drain()
    elif isinstance(step, float):
        await asyncio.sleep(step)
    else:
        endpoint = writer.get_extra_info("socket")
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        raise ConnectionResetError
