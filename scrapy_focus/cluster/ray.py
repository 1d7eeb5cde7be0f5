"""The default engine: Ray. The leader is a named actor, which Ray restarts when it dies.

Ray provides the election (one actor of a name), the supervision (restarts) and the calls. The leader and its journal
provide exactness, even if calls are executed twice, late, or not at all.

Ray is imported when an engine is created, as most crawls do not need it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import pkgutil
import signal
import socket
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus.cluster.messages import LeaderClosed
from scrapy_focus.core.errors import ConfigError, FocusError, FolderInUseError, ResumeError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import REASON, brief, printable, printable_elsewhere, printable_logger, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy_focus.cluster.leader import Leader

logger = printable_logger(__name__)

#: The namespace of the actors of all crawls.
NAMESPACE = "scrapy_focus"
AUTO = "auto"

_PORT = 6379
_CALL = 20.0  # seconds for an answer: less than a lease, as some get lost while a network is down
_REACH = 5.0  # seconds for a connection to the head
_FIRST = 60.0  # seconds to wait for a cluster that was never reached
_ALONE = 60.0  # seconds that a restarted leader waits for a call
_PARTING = 0.3  # seconds for the last answer of a leader to leave its process
_LARGEST = 90_000  # bytes
_HEAD = "node:__internal_head__"  # a resource of that node only
_START = "ray start --head --num-cpus 0"
#: Variables that Ray reads on import; user-set ones stay.
_QUIET = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under "uv run" it would copy the current folder, including the JOBDIR
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": str(10 * 365 * 86400),  # after that, it ends the process
}


class LeaderActor:
    """The process of a leader. Ray creates it, calls it, and restarts it when it dies; calls never overlap.

    Creating it never fails: the first call makes the leader, and raises any error to the caller. When the leader is
    closed, the process ends, and its name is free.

    Parameters
    ----------
    name
        The name of the crawl.
    packed
        The plan of the leader, pickled and compressed: less than 100 kB, as Ray loses larger ones with their sender.
    """

    def __init__(self, name: str, packed: bytes) -> None:
        self.name = name
        plan = zlib.decompress(packed)
        self.plan: Mapping[str, Any] = pickle.loads(plan)  # noqa: S301 (of whoever may run code here)
        self.leader: Leader | None = None
        self._ending = False
        self._called = time.monotonic()
        _log_to(self.plan["log"])
        if _was_restarted():
            threading.Thread(target=self._end_if_alone, daemon=True).start()

    def call(self, method: str, args: tuple[Any, ...], known: str = "") -> Any:
        """Call a method of the leader, and return its result.

        Parameters
        ----------
        method, args
            The method and its arguments.
        known
            The id of the actor that led the crawl when the caller joined; ``""`` if it never did.

        Raises
        ------
        ConfigError, ResumeError
            If no leader can be made from the plan. The process ends, so that one with another plan can be created. Also
            if the caller joined another crawl of this name.
        FolderInUseError
            If another process uses the folder of the crawl, perhaps an earlier leader that is about to end.
        StorageError
            If that folder cannot be used, or its crawl is missing.
        """
        self._called = time.monotonic()
        if self.leader is None:
            self.leader = self._make(stops=method == "stop", may_begin=not (known or _was_restarted()))
        if method == "join" and known not in ("", _actor_id()) and _began(self.leader):
            raise ConfigError(
                f"the crawl {brief(self.name)} started again on {socket.gethostname()}, without the folder of the one "
                "that this worker joined; end it with focus stop, and start first where that folder is"
            )
        try:
            return getattr(self.leader, method)(*args)
        except Exception as error:
            if not isinstance(error, LeaderClosed):
                logger.exception("the leader of %s failed in %s", brief(self.name), method)
            raise
        finally:
            if self.leader.is_closed:
                self._end("the crawl is closed")

    def where(self) -> tuple[str, int, str]:
        """Return the id of its node, the id of its process, and the path of its log."""
        return _node_id(), os.getpid(), str(self.plan["log"]["path"])

    def _make(self, *, stops: bool, may_begin: bool) -> Leader:
        make: Callable[[Mapping[str, Any], bool], Leader] = pkgutil.resolve_name(self.plan["maker"])
        try:
            leader = make(self.plan, may_begin)
        except FocusError as error:
            if stops or (isinstance(error, (ConfigError, ResumeError)) and not isinstance(error, FolderInUseError)):
                self._end(f"the crawl {brief(self.name)} cannot be led: {error}")
            raise
        logger.info("process %d now leads the crawl %s", os.getpid(), brief(self.name))
        threading.Thread(target=_call_now_and_then, args=("reap", leader.lease / 3), daemon=True).start()
        return leader

    def _end_if_alone(self) -> None:
        """End if nobody calls: all workers are gone, and the leader was killed after them, or while it ended."""
        while self.leader is None:
            if time.monotonic() - self._called > _ALONE:
                self._end(f"it was restarted, and no worker called it for {_ALONE:.0f} s")
                return
            time.sleep(1)

    def _end(self, why: str) -> None:
        """End this process for good, after the current answer was sent."""
        if not self._ending:
            self._ending = True
            logger.info("this leader process ends: %s", why)
            threading.Thread(target=_end_actor, daemon=True).start()


class RayEngine:
    """Connects to the leader of a crawl through Ray, and creates it if there is none.

    The leader is created on the head of the cluster, as that is the same machine for all workers. It stays on that
    machine, as the folder of the crawl is there.

    Parameters
    ----------
    address
        ``"auto"``: the cluster that this machine belongs to; else ``"host:port"`` of its head. This machine has to
        belong to the cluster in either case.
    name
        The name of the crawl, unique in a cluster.
    plan
        The plan of a leader, see :class:`LeaderActor`; ``None``: none is created.

    Raises
    ------
    ConfigError
        If Ray is not installed, the address is invalid, or the plan is too large.
    """

    _life: ClassVar[int] = 0  # how often this process left its cluster
    _users: ClassVar[int] = 0  # engines connected in this life
    _is_guest: ClassVar[bool] = False  # whether other code of this process connected it
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, address: str, name: str, plan: Mapping[str, Any] | None = None) -> None:
        check_address(address)
        require_extra("a crawl on several machines", "cluster", "ray")
        self.address = address
        self.name = name
        self._packed = None if plan is None else zlib.compress(pickle.dumps(dict(plan)))
        if self._packed is not None and len(self._packed) > _LARGEST:
            raise ConfigError(
                f"the settings of this crawl take {len(self._packed):,} bytes, compressed; Ray keeps at most "
                f"{_LARGEST:,} to restart its leader: put long values into files, and set their paths"
            )
        self._actor: Any = None
        self._machine = ""  # where the leader was last, with its folder
        self._first: float | None = None  # when the cluster was first looked for, in seconds of time.monotonic
        self._known = ""  # the id of the actor that led the crawl at the last answer
        self._was_reached = False
        self._lived = -1  # the life in which this engine is connected

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the leader, and return its result.

        Only ``join`` creates a leader if there is none.

        Raises
        ------
        ConfigError, ResumeError
            If such a leader or a cluster cannot exist: retrying does not help.
        Exception
            Anything else: retrying may help.
        """
        from ray.exceptions import ActorDiedError, RayTaskError

        if self._actor is None or self._lived != self._life:
            self._actor = await asyncio.to_thread(self.find, makes=method == "join")
            _take_back_signals()
        actor = self._actor
        try:
            future = actor.call.remote(method, args, self._known).future()
            answer = await asyncio.wait_for(asyncio.wrap_future(future), _CALL)
            self._known = actor._actor_id.hex()
            return answer
        except RayTaskError as error:
            if isinstance(error.cause, LeaderClosed):  # its name is about to be free
                self._actor = None
            raise error.cause from None
        except ActorDiedError:
            self._actor = None
            raise

    async def reset(self) -> None:
        """Disconnect all engines of this process from the cluster, so that the next call connects anew.

        After the death of its head, a process's knowledge of the cluster is useless, even when the head is back.
        """
        await asyncio.to_thread(self._leave, everybody=True)

    async def close(self) -> None:
        """Leave the cluster."""
        await asyncio.to_thread(self.leave)

    def call_now(self, method: str, *args: Any) -> Any:
        """Call a method of the leader and wait for its answer, up to a minute.

        Raises
        ------
        FocusError
            If such a leader or a cluster cannot exist.
        LeaderClosed
            If there is no leader (any more).
        ConnectionError
            If it does not answer now.
        """
        import ray
        from ray.exceptions import ActorDiedError, RayError, RayTaskError

        try:
            if self._actor is None:
                self._actor = self.find(makes=False)
            return ray.get(self._actor.call.remote(method, args), timeout=_CALL)
        except RayTaskError as error:
            raise error.cause from None
        except ActorDiedError as error:
            raise LeaderClosed("it is gone") from error
        except RayError as error:
            self._actor = None
            raise ConnectionError(reason_of(error, REASON)) from error

    def wait_until_gone(self) -> None:
        """Wait until the process of a closed leader has ended, so that another one can use its folder."""
        end = time.monotonic() + _CALL
        while time.monotonic() < end:
            try:
                self.find(makes=False)
            except LeaderClosed:
                return
            time.sleep(_PARTING)

    def leave(self) -> None:
        """Disconnect from the cluster; other engines of this process stay connected."""
        self._leave(everybody=False)

    def _leave(self, *, everybody: bool) -> None:
        with self._lock:
            self._actor = None
            if self._lived != self._life:
                return
            self._lived, cls = -1, type(self)
            cls._users -= 1
            if not self._is_guest and (everybody or not cls._users):
                import ray

                cls._life += 1
                cls._users = 0
                ray.shutdown()

    def find(self, *, makes: bool) -> Any:
        """Return the actor of the leader; with ``makes``, create it if there is none.

        Raises
        ------
        ConfigError
            If there is no cluster, or this machine cannot belong to it.
        LeaderClosed
            If there is no leader.
        """
        self.connect()
        import ray

        try:
            actor = ray.get_actor(self.name, namespace=NAMESPACE)
        except ValueError:
            if not makes or self._packed is None:
                raise LeaderClosed(f"no crawl {self.name!r} runs in the cluster") from None
            actor = self._make()
        if self._packed is not None:
            node, pid, log = ray.get(actor.where.remote(), timeout=_CALL)
            self._machine = _machines().get(node, self._machine)
            logger.info("the crawl %s is led by process %d on %s, whose log is %s", self.name, pid, self._machine, log)
        return actor

    def _make(self) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node, machines = _node_id(), _machines()
        if not self._machine:
            node = _head_id() or node
        elif machines.get(node) != self._machine:
            node = next((node for node, machine in machines.items() if machine == self._machine), "")
            if not node:
                raise ConnectionError(
                    f"{self._machine}, which has the folder of the crawl {self.name!r}, is not in the cluster: run ray "
                    "start there again"
                )
        actor = ray.remote(LeaderActor).options(
            name=self.name,
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            max_concurrency=1,
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        return actor.remote(self.name, self._packed)

    def connect(self) -> None:
        """Connect this process to the cluster, if needed.

        Raises
        ------
        ConfigError
            If there is no cluster, or this machine cannot belong to it.
        ConnectionError
            If it cannot be reached now.
        """
        with self._lock:
            if self._lived != self._life:
                if self._first is None:
                    self._first = time.monotonic()
                try:
                    self._connect()
                except ConfigError as error:
                    if self._was_reached:  # it is still starting
                        raise ConnectionError(str(error)) from error
                    raise
                except ConnectionError as error:
                    if not self._was_reached and time.monotonic() - self._first > _FIRST:
                        raise ConfigError(str(error)) from error
                    raise
                self._was_reached = True
                self._lived = self._life
                type(self)._users += 1

    def _connect(self) -> None:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        import ray

        logging.getLogger("ray").setLevel(logging.CRITICAL)
        if not self._users:
            type(self)._is_guest = ray.is_initialized()
        if ray.is_initialized():
            return
        address = self._reach()
        _keep_off_standard_output()
        try:
            ray.init(address, namespace=NAMESPACE, configure_logging=False, log_to_driver=False)
        except Exception as error:
            ray.shutdown()
            raise _explained(error, address) from error

    def _reach(self) -> str:
        """Return the address of the head, once it answers: Ray itself would wait for minutes."""
        address = self.address
        if address == AUTO:
            address = _address_of_this_machine()
            if not address:
                if self._was_reached:
                    raise ConnectionError(
                        "Ray stopped on this machine: start it again with the same command as before; "
                        "if the head stopped, do so on all machines, starting with the head"
                    )
                raise ConfigError(
                    f"FOCUS_CLUSTER is {AUTO!r}, and Ray does not run on this machine: start it with {_START}; if "
                    f"another machine is the head, with ray start --address HEAD:{_PORT} --num-cpus 0"
                )
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _REACH).close()
        except OSError as error:
            raise ConnectionError(
                f"no head of Ray answers at {address} ({reason_of(error, REASON)}): start it there with {_START} "
                f"--port {port}, and this machine with ray start --address {address} --num-cpus 0"
            ) from error
        return address


def check_address(address: str) -> None:
    """Raise ``ConfigError`` if this cannot be the address of a cluster."""
    host, _, port = address.rpartition(":")
    if address != AUTO and not (host and port.isdecimal() and "/" not in address):
        raise ConfigError(
            f"FOCUS_CLUSTER is {brief(address)}; it takes 'auto' for the cluster of this machine, or the host and port "
            f"of its head, as in 'head.example:{_PORT}'"
        )


def crawls_of(address: str) -> list[str]:
    """Return the names of the crawls with a leader in a cluster; connects this process to it.

    Raises
    ------
    ConfigError
        If Ray is not installed, there is no cluster, or this machine is not part of it.
    """
    try:
        RayEngine(address, "").connect()  # which reports a missing Ray
    except ConnectionError as error:
        raise ConfigError(str(error)) from error
    from ray.util import list_named_actors

    return sorted(list_named_actors())


def _address_of_this_machine() -> str:
    """Return the address of the head of this machine's cluster; ``""`` if it is in none."""
    from ray._private.services import canonicalize_bootstrap_address_or_die, find_gcs_addresses

    with suppress(AttributeError):  # of a Ray version that does not remember it
        find_gcs_addresses.cache_clear()
    try:
        return str(canonicalize_bootstrap_address_or_die(AUTO))
    except ConnectionError:
        return ""


def _explained(error: Exception, address: str) -> Exception:
    """Return an error that says why this process cannot connect, and what to do about it."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and isinstance(cause, Exception):
        causes.append(cause)
    said = " ".join(str(each) for each in causes)
    if "AuthToken" in said or "AuthenticationError" in said:
        return ConfigError(
            f"the cluster at {address} does not accept the token of this machine: copy ~/.ray/auth_token of its head "
            "to the same place here, and set RAY_AUTH_MODE=token"
        )
    if "ersion mismatch" in said:
        versions = printable(" ".join(str(error).split()), REASON)
        return ConfigError(f"all machines need the same versions of Ray and Python: {versions}")
    if "node info" in said:
        return ConfigError(
            f"this machine is not in the cluster of {address}: run ray start --address {address} --num-cpus 0 on it"
        )
    return ConnectionError(f"the cluster at {address} cannot be reached: {reason_of(error, REASON)}")


def _keep_off_standard_output() -> None:
    """Log what Ray would print: items may go to standard output."""
    import ray._private.worker as printing

    def tell(data: Mapping[str, Any], *_: Any, **__: Any) -> None:
        logger.debug("Ray says: %s", " ".join(map(str, data["lines"])))

    if hasattr(printing, "print_to_stdstream"):
        printing.print_to_stdstream = tell


def _node_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _actor_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_actor_id())


def _began(leader: Leader) -> bool:
    """Whether a leader found the folder of its crawl empty."""
    from scrapy_focus.jobs.job import Job

    job = leader.crawl.job
    return isinstance(job, Job) and job.is_new


def _take_back_signals() -> None:
    """Let Python alone handle SIGTERM again: Ray would print a trace, as after a crash."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
            signal.siginterrupt(signal.SIGTERM, False)


def _head_id() -> str:
    """Return the id of the cluster's head node, ``""`` if Ray does not say."""
    import ray

    return next((str(node["NodeID"]) for node in ray.nodes() if node["Alive"] and _HEAD in node["Resources"]), "")


def _machines() -> dict[str, str]:
    """Return the names of all machines in the cluster, by the ids of their nodes."""
    import ray

    return {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}


def _was_restarted() -> bool:
    import ray

    return bool(ray.get_runtime_context().was_current_actor_reconstructed)


def _end_actor() -> None:
    """End the actor of this process, so that Ray does not restart it; retried until Ray receives it."""
    import ray

    while True:
        time.sleep(_PARTING)
        with suppress(Exception):
            ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def _call_now_and_then(method: str, seconds: float) -> None:
    """Have the actor call a method of its leader now and then, between other calls, for its whole life."""
    import ray

    while True:
        time.sleep(seconds)
        with suppress(Exception):
            ray.get_runtime_context().current_actor.call.remote(method, ())


def _log_to(log: Mapping[str, Any]) -> None:
    """Log to a file in this process."""
    path = Path(log["path"])
    with suppress(OSError, ValueError):  # errors are reported when the leader is created
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
        handler.setFormatter(logging.Formatter(log["format"], log["dates"]))
        handler.addFilter(printable_elsewhere)
        logging.getLogger().addHandler(handler)
        logging.getLogger().setLevel(log["level"])
