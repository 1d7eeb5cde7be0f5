"""Extracts the texts of pages in a process of its own.

Some pages take trafilatura minutes or gigabytes, and nothing can stop a thread. A process that takes too long for a
page ends itself, and the next page starts another one. It also runs on another processor than the crawl.

Each line of its standard input is JSON with a page, each line of its standard output JSON with the answer.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

from scrapy_focus.web.page_texts import PageTexts, beginning_of, read_page

if TYPE_CHECKING:
    from typing import IO

_SECONDS = 5.0  # of CPU for a page; most take some hundredths
_MEMORY = 2 << 30  # bytes of address space


class TextProcess:
    """Extracts texts in another process, which starts with the first page.

    Parameters
    ----------
    seconds
        The limit for a page, of CPU.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, html: str, url: str) -> PageTexts | None:
        """Return the contents of a page, ``None`` if that failed or took too long. It waits, so call it in a thread."""
        asked = json.dumps({"html": beginning_of(html), "url": url}).encode()
        try:
            pipe_in, pipe_out = self._pipes()
            pipe_in.write(asked + b"\n")
            pipe_in.flush()
            answer = json.loads(pipe_out.readline() or b"null")
        except (OSError, ValueError):
            answer = None
        if answer is None:
            self.close()
            return None
        return PageTexts(**answer) if answer else None

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            # The same modules as here, and none that happens to lie in the current folder.
            command = [sys.executable, "-P", "-m", __name__, str(self._seconds)]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(  # noqa: S603 (no shell)
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
            )
        return cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)


def answer_all(pages: IO[bytes], answers: IO[bytes], seconds: float) -> None:
    """Answer pages until there are no more; end the process at once if one takes too long."""
    for line in pages:
        _limit_seconds(seconds)
        answers.write(json.dumps(_answer(line)).encode() + b"\n")
        answers.flush()
        _limit_seconds(0)


def _answer(line: bytes) -> dict[str, Any]:
    """Return the contents of a page, ``{}`` if that failed."""
    try:
        return read_page(**json.loads(line))._asdict()
    except Exception:  # whatever the library raises
        return {}


def _limit_seconds(seconds: float) -> None:
    """End this process after so many seconds of CPU; 0: no more. On Windows, which has no such clock, of time."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # on Windows
        return
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (OSError, ValueError):
        return


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawl, which closes the pipe when it ends
    _limit_memory()
    import trafilatura  # noqa: F401  (its time counts for no page)

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    answer_all(sys.stdin.buffer, answers, float(sys.argv[1]))
