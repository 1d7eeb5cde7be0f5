"""A site of pages with many links, a third of them on every page, for benchmarks: answers are ready before anyone asks.

python benchmarks/linked_site.py --pages 500 --links 100
"""

from __future__ import annotations

import argparse
import asyncio
import random


def page(number: int, *, pages: int, links: int) -> bytes:
    """Return a page: its navigation, which all pages share, and links to others; each eleventh is a dataset."""
    draw = random.Random(number)
    shared = links // 3
    menu = [each * pages // max(shared, 1) for each in range(shared)]
    near = [(number + each) % pages for each in (1, 2)]
    others = [*near, *(draw.randrange(pages) for _ in range(links - shared - len(near)))]
    kind = "dataset" if number % 11 == 0 else "page"
    top = "".join(f'<li class="item"><a href="/topics/{n}.html">Topic {n}</a></li>' for n in menu)
    rows = "".join(
        f'<div class="row"><h3 class="title"><a href="/topics/{n}.html">Report {n}</a></h3><p>About it, in a line.</p></div>'
        for n in others
    )
    return (
        f'<!DOCTYPE html><html><head><title>Page {number}</title></head><body class="{kind}"><nav><ul class="menu">{top}'
        f'</ul></nav><main id="content"><h1>Page {number}</h1><p>Some words.</p>{rows}</main></body></html>'
    ).encode()


class Answering(asyncio.Protocol):
    """Sends what is ready for each path that is asked for."""

    answers: dict[bytes, bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._got = b""

    def data_received(self, data: bytes) -> None:
        self._got += data
        *requests, self._got = self._got.split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            self._transport.write(answer)  # type: ignore[attr-defined]


async def serve(pages: int, links: int) -> None:
    """Serve the site on a port of 127.0.0.1 that is printed."""
    answers = {}
    for number in range(pages):
        body = page(number, pages=pages, links=links)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
        answers[f"/topics/{number}.html".encode()] = head.encode() + body
    Answering.answers = answers
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/topics/0.html", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--links", type=int, default=100)
    options = parser.parse_args()
    asyncio.run(serve(options.pages, options.links))


if __name__ == "__main__":
    main()
