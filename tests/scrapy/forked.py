"""Commands in forks of a process that has imported what they need, which saves most of the time that a start takes.

A fork has the arguments, folder, environment and files of a command, is a process with an id that signals reach, and
ends as Python does. It does not show that a command imports what it needs: ``test_forked.py`` does, and tests of
terminals start commands as a user does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

_LARGEST = 1 << 17  # bytes of a request, which goes out at once


class Forked:
    """A running command ``python -m module ...`` or ``python -c code ...``, with a part of :class:`subprocess.Popen`.

    ``file_size`` is the limit in bytes of its files, as if the disk were full then.
    """

    def __init__(
        self,
        args: Sequence[object],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = False,
        file_size: int | None = None,
    ) -> None:
        python, *self.args = map(str, args)
        assert python == sys.executable, f"{args} is no command of this Python"
        assert self.args[0] in ("-m", "-c"), f"{args} is neither a module nor code"
        self.returncode: int | None = None
        opened: list[int] = []
        self.stdout, out = _output(stdout, 1, text, opened)
        self.stderr, err = (self.stdout, out) if stderr == subprocess.STDOUT else _output(stderr, 2, text, opened)
        self._told, tells = socket.socketpair()
        given = {
            "args": self.args,
            "cwd": os.fspath(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "file_size": file_size,
        }
        data = json.dumps(given).encode("utf-8", "surrogateescape")
        assert len(data) < _LARGEST
        source = os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.DEVNULL else _number(stdin, 0)
        socket.send_fds(_server(), [data], [source, out, err, tells.fileno()])
        tells.close()
        for number in [*opened, *([source] if stdin == subprocess.DEVNULL else [])]:
            os.close(number)
        self._lines = self._told.makefile()
        self.pid = int(self._lines.readline())
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        self._status = int(self._lines.readline())
        self._ended.set()

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()
        self.close()

    def close(self) -> None:
        """Close what was opened to read from it."""
        for file in {self.stdout, self.stderr} - {None}:
            file.close()

    def poll(self) -> int | None:
        """Return how it ended, as Popen does; None while it runs."""
        if self.returncode is None and self._ended.is_set():
            self.returncode = os.waitstatus_to_exitcode(self._status)
            self._lines.close()
            self._told.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its status."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        ended = self.poll()
        assert ended is not None
        return ended

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Return what it writes, when it has ended."""
        read: dict[Any, Any] = {}

        def keep(file: IO[Any]) -> None:
            read[file] = file.read()

        files = [file for file in (self.stdout, self.stderr) if file is not None]
        readers = [threading.Thread(target=keep, args=(file,), daemon=True) for file in {*files}]
        for reader in readers:
            reader.start()
        until = None if timeout is None else time.monotonic() + timeout
        self.wait(timeout)
        for reader in readers:
            reader.join(None if until is None else max(1.0, until - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.close()
        return read.get(self.stdout), read.get(self.stderr) if self.stderr is not self.stdout else None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end, with SIGTERM."""
        self.send_signal(signal.SIGTERM)


def run(
    args: Sequence[object],
    *,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end, like :func:`subprocess.run`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = Forked(args, **options)
    try:
        said, logged = process.communicate(timeout)
    except BaseException:
        process.kill()
        raise
    done = subprocess.CompletedProcess(args, process.wait(), said, logged)
    if check:
        done.check_returncode()
    return done


def _number(file: Any, default: int) -> int:
    return default if file is None else file if isinstance(file, int) else file.fileno()


def _output(file: Any, default: int, text: bool, opened: list[int]) -> tuple[IO[Any] | None, int]:
    """Return a file to read from, if the given one is a pipe, and the number to write to."""
    if file == subprocess.DEVNULL:
        opened.append(os.open(os.devnull, os.O_WRONLY))
        return None, opened[-1]
    if file != subprocess.PIPE:
        return None, _number(file, default)
    reads, writes = os.pipe()
    opened.append(writes)
    return os.fdopen(reads, "r" if text else "rb"), writes


@cache
def _server() -> socket.socket:
    """Start the process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair()
    code = f"import forked; forked.serve({theirs.fileno()})"
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code], env=env, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(number: int) -> None:
    """Fork for each request from a socket, and report the ids of the forks and their statuses, until it is closed."""
    _import_what_commands_need()
    gc.collect()
    gc.freeze()
    told: dict[int, int] = {}  # where to say how a fork ended, by its id
    ended, ends = socket.socketpair()
    for end in (ended, ends):
        end.setblocking(False)
    signal.set_wakeup_fd(ends.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(fileno=number) as asks:
        while True:
            ready, _, _ = select.select([asks, ended], [], [])
            if ended in ready:
                ended.recv(_LARGEST)
                _say_who_ended(told)
            if asks not in ready:
                continue
            data, files, _, _ = socket.recv_fds(asks, _LARGEST, 4)
            if not data:
                break
            *standard, tells = files
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (asks, ended, ends):
                    other.close()
                for other in (tells, *told.values()):
                    os.close(other)
                _become(standard, **json.loads(data.decode("utf-8", "surrogateescape")))
                return
            for file in standard:
                os.close(file)
            told[pid] = tells
            os.write(tells, f"{pid}\n".encode())


def _say_who_ended(told: dict[int, int]) -> None:
    while told:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            break
        tells = told.pop(pid)
        with suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(tells, f"{status}\n".encode())
        os.close(tells)


def _become(standard: list[int], args: list[str], cwd: str, env: dict[str, str], file_size: int | None) -> None:
    """Run a module or code as Python does, and raise whatever it raises."""
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    before = _folders(os.environ)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False, buffering=1 if os.isatty(1) else -1)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", closefd=False, buffering=1, errors="backslashreplace")
    for action in filter(None, env.get("PYTHONWARNINGS", "").split(",")):
        warnings.simplefilter(action)
    how, what, *rest = args
    sys.path[:] = [
        cwd if how == "-m" else "", *_folders(env), *(path for path in sys.path if path and path not in before)
    ]  # fmt: skip
    try:
        if how == "-m":
            sys.argv[:] = [what, *rest]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = [how, *rest]
            sys.modules["__main__"] = main = ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(main))
    except SystemExit as ended:
        if ended.code is not None and not isinstance(ended.code, int):
            raise
        _end(ended.code or 0)
    _end(0)


def _end(status: int) -> None:
    """End like Python, but skip the cleanup, which takes longer than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def _folders(env: Mapping[str, str]) -> list[str]:
    """Return what an environment adds to the path of modules."""
    return [str(Path(path).absolute()) for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]


def _import_what_commands_need() -> None:
    """Import once what commands import when they start; that starts no thread and no reactor."""
    import killer
    from scrapy.settings.default_settings import DOWNLOAD_HANDLERS_BASE
    from scrapy.utils.misc import load_object, walk_modules_iter

    from scrapy_focus.finders.kit.page.frame import made_environment

    for name in (
        "scrapy.cmdline", "scrapy.logformatter", "scrapy.statscollectors", "sklearn.linear_model", "rich.live", "jinja2",
        "tldextract", "scrapy_focus.addon", "scrapy_focus.scheduler", "scrapy_focus.extensions", "scrapy_focus.pipelines",
        "scrapy_focus.spidermiddlewares", "scrapy_focus.downloadermiddlewares", "scrapy_focus.engine.seen",
    ):  # fmt: skip
        import_module(name)
    for handler in DOWNLOAD_HANDLERS_BASE.values():
        load_object(handler)
    killer.import_what_crawls_need()
    ours = ("commands", "finders", "lab.commands", "lab.spiders", "policies")
    for package in ("scrapy.commands", *(f"scrapy_focus.{name}" for name in ours)):
        for _ in walk_modules_iter(package):
            pass
    templates = made_environment()
    for name in templates.list_templates(extensions=["jinja", "css", "js"]):
        templates.get_template(name)
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1
