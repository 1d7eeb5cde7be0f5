"""A cluster of processes on one machine, without Ray: a leader with a socket, and an engine that connects to it.

``python -m tests.cluster.sockets PATH`` is a leader that waits for workers. The first of them sends the
plan of the leader. It ends when the crawl is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from multiprocessing.connection import Client, Listener
from typing import Any

KEY = b"tests"


class SocketEngine:
    """Connects to a leader by its socket, whose path is the address."""

    def __init__(self, address: str, name: str, plan: Any) -> None:
        self.address = address
        self.plan = plan
        self._connection: Any = None

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the leader."""
        kind, value = await asyncio.wait_for(asyncio.to_thread(self._ask, method, args), 60)
        if kind == "error":
            raise RuntimeError(value)
        return value

    async def reset(self) -> None:
        """Connect again at the next call."""
        self._forget()

    async def close(self) -> None:
        """Hang up."""
        self._forget()

    def _ask(self, method: str, args: tuple[Any, ...]) -> Any:
        try:
            if self._connection is None:
                self._connection = Client(self.address, "AF_UNIX", authkey=KEY)
                self._connection.send(("plan", (self.plan,)))
                self._connection.recv()
            self._connection.send((method, args))
            return self._connection.recv()
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def serve(path: str) -> None:
    """Lead a crawl until it is closed."""
    from scrapy_focus.making import make_leader

    leaders: list[Any] = []
    one_at_a_time = threading.Lock()

    def answer(method: str, args: Any) -> Any:
        with one_at_a_time:
            if method == "plan":
                if not leaders:
                    leaders.append(make_leader(args[0]))
                return None
            return getattr(leaders[0], method)(*args)

    def talk(connection: Any) -> None:
        try:
            while True:
                method, args = connection.recv()
                try:
                    reply = ("ok", answer(method, args))
                except Exception as error:
                    logging.exception("the leader failed in %s", method)
                    reply = ("error", f"{type(error).__name__}: {error}")
                connection.send(reply)
                if leaders and leaders[0].is_closed:
                    os._exit(0)
        except (EOFError, OSError):
            return

    with Listener(path, "AF_UNIX", backlog=32, authkey=KEY) as listener:
        while True:
            try:
                connection = listener.accept()
            except Exception:  # of one that went at once
                continue
            threading.Thread(target=talk, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="leader: %(levelname)s %(message)s")
    serve(sys.argv[1])
