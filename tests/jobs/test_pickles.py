"""Stored data of policies, requests and events can be read again, and reading it runs nothing else."""

from __future__ import annotations

import array
import collections
import contextlib
import datetime
import decimal
import enum
import io
import operator
import pathlib
import pickle
import random
import re
import subprocess
import sys
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier

from scrapy_focus.core.types import State
from scrapy_focus.jobs.pickles import Classes, RefusedName
from scrapy_focus.jobs.plain import dumps_plain, loads_plain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda each: st.lists(each) | st.tuples(each, each) | st.dictionaries(st.text(), each),
)


class Kind(enum.Enum):
    """Of something."""

    ONE = 1


class Thing:
    """Something that a policy may hold."""

    class Inner:
        """A class within a class."""

    def __init__(self) -> None:
        self.inner = self.Inner()
        self.kinds = {Kind.ONE, State.WAITING}


def function() -> None:
    """Of a project."""


class Calls:
    """Pickled as a call of something."""

    def __init__(self, called: Any, *args: Any, state: Any = None) -> None:
        self.reduced = (called, args) if state is None else (called, args, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


# Plain values


@given(PLAIN)
def test_plain_values_are_restored(value: Any) -> None:
    """As they were, tuples as tuples and bytes as bytes."""
    assert loads_plain(dumps_plain(value)) == value


def test_what_is_nearly_plain_becomes_plain() -> None:
    """Numbers of NumPy and subclasses of text are stored as plain numbers and texts."""
    value = (
        np.float64(0.5),
        np.int32(3),
        [re.RegexFlag.DOTALL, State.NEW],
        collections.Counter("aab"),
        bytearray(b"x"),
    )
    back = loads_plain(dumps_plain(value))
    assert back == (0.5, 3, [16, 0], {"a": 2, "b": 1}, b"x")
    assert [type(each) for each in back] == [float, int, list, dict, bytearray]
    with pytest.raises(TypeError, match=r"is a Thing, and only plain values"):
        dumps_plain(["a", Thing()])


@given(st.binary() | PLAIN.map(dumps_plain).flatmap(lambda data: st.tuples(
    st.just(data), st.integers(0, len(data) - 1), st.integers(0, 255)
).map(lambda change: change[0][: change[1]] + bytes([change[2]]) + change[0][change[1] + 1 :])))  # fmt: skip
def test_bytes_of_anybody_are_a_plain_value_or_an_error(data: bytes) -> None:
    """Whatever they are, reading them has no other effect."""
    with contextlib.suppress(ValueError):
        loads_plain(data)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Calls(print, "executed"), protocol=protocol) for protocol in range(6)
    ] + [
        pickle.dumps(Kind.ONE),
        b"\x80\x05Nr\xff\xff\xff\x7f.",  # would make room for two thousand million values
        b"\x80\x05Np2000000000\n.",
        b"\x80\x05\x82\x01.",
        b"\x80\x05Pabc\n.",
        b"\x80\x05N.N.",
        b"\x80\x05N",
        b"\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"",
    ],
)  # fmt: skip
def test_more_than_plain_values_is_refused(data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Before any of it is read."""
    with pytest.raises(ValueError, match=r"cut off, or has more than plain values"):
        loads_plain(data)
    assert not capsys.readouterr().out


# Objects


def values() -> dict[str, Any]:
    """Return values that policies and requests may hold, by name."""
    swapped = np.arange(4, dtype=">f4")
    return {
        "arrays": [np.arange(6.0).reshape(2, 3), np.zeros((0, 3), np.float32), np.array(5, np.int8), swapped],
        "Fortran's order": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "strided": np.arange(10)[::3],
        "texts": np.array(["a", "bc", ""]),
        "dates": np.array(["2020-01-01"], "M8[D]"),
        "records": np.array([(1, 2.5)], [("a", "i4"), ("b", "f8", (2,))]),
        "objects": np.array([[{"a": 1}, None]], object),
        "numbers": [np.float32(1.5), np.int64(-3), np.bool_(True), np.str_("x")],
        "types": [np.dtype("f4"), np.float32, int, State],
        "containers": [collections.Counter("aab"), collections.defaultdict(list, a=[1]), collections.deque([1], 3)],
        "dates and paths": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), pathlib.PurePosixPath("a/b")],
        "others": [decimal.Decimal("1.5"), uuid.UUID(int=5), array.array("q", [1, 2]), operator.itemgetter(1)([0, 1])],
        "kinds": [Kind.ONE, State.FLYING],
    }


@pytest.mark.parametrize("name", values())
def test_values_of_policies_are_restored(name: str) -> None:
    """Of the same types, with the same values; arrays can be written to."""
    value = values()[name]
    classes = Classes([__name__])
    back = classes.loads(classes.dumps(value))
    assert repr(back) == repr(value)
    for each, was in zip(back, value, strict=True) if isinstance(value, list) else [(back, value)]:
        assert type(each) is type(was)
        if isinstance(each, np.ndarray):
            assert each.dtype == was.dtype
            assert each.flags.writeable
            assert each.flags.fnc == was.flags.fnc


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_random_numbers_continue(bits: str) -> None:
    """Generators are restored in the same state, including what spawns others; two names of one stay one."""
    made = np.random.Generator(getattr(np.random, bits)(5))
    made.random(3)
    made.integers(5, dtype=np.uint8)
    made.spawn(2)
    classes = Classes()
    back, same = classes.loads(classes.dumps([made, made]))
    assert back is same
    assert back.random(5).tolist() == made.random(5).tolist()
    assert back.spawn(1)[0].random() == made.spawn(1)[0].random()


def test_older_random_numbers_continue() -> None:
    """Those of NumPy's first generator, which scikit-learn uses, and of Python's."""
    older, own = np.random.RandomState(3), random.Random(3)
    older.normal()
    classes = Classes()
    older_back, own_back = classes.loads(classes.dumps((older, own)))
    assert older_back.normal(size=3).tolist() == older.normal(size=3).tolist()
    assert own_back.random() == own.random()


def test_a_classifier_is_restored() -> None:
    """Its learned state is restored."""
    model = SGDClassifier(loss="log_loss", random_state=1).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
    classes = Classes()
    back = classes.loads(classes.dumps(model))
    assert back.predict_proba([[0.3]]).tolist() == model.predict_proba([[0.3]]).tolist()


def test_a_project_names_its_classes_and_no_functions() -> None:
    """Also classes within classes; and what of other packages is named one by one."""
    thing = Classes([__name__]).dumps(Thing())
    assert Classes([__name__]).loads(thing).inner.__class__ is Thing.Inner
    with pytest.raises(RefusedName, match=r"'tests.jobs.test_pickles.Thing', .*FOCUS_STORED_CLASSES"):
        Classes().loads(thing)
    for classes in (Classes([__name__]), Classes(["tests"])):
        with pytest.raises(RefusedName, match=r"test_pickles\.function"):
            classes.dumps(function)
        with pytest.raises(RefusedName, match=r"test_pickles\.function"):
            classes.loads(pickle.dumps(function))
    for path in (f"{__name__}.function", __name__, "tests"):
        assert Classes(paths=[path]).loads(Classes(paths=[path]).dumps(function)) is function


HOSTILE: dict[str, Any] = {
    "a command": Calls(__import__("os").system, "echo executed"),
    "Python": Calls(eval, "print('executed')"),
    "an attribute": Calls(getattr, "abc", "upper"),
    "a process": Calls(subprocess.Popen, ["echo", "executed"]),
    "a file": Calls(open, "executed", "w"),
    "NumPy's loader": Calls(np.load, "executed", None, True),
    "NumPy's tests": Calls(np.testing.rundocs, "executed"),
    "NumPy's arrays": Calls(np.ndarray, (1,)),
    "an attribute getter": operator.attrgetter("__class__"),
    "a method caller": operator.methodcaller("upper"),
    "a pickle": Calls(pickle.loads, b"N."),
    "a function of the package": Calls(dumps_plain, 1),
    "a class that opens files": Calls(__import__("scrapy_focus").EventLog, pathlib.PurePosixPath("executed")),
    "scikit-learn's functions": Calls(__import__("sklearn").clone, 1),
    "scikit-learn's memory": Calls(__import__("sklearn.utils", fromlist=["_"]).Bunch),
    "the machine's stack": Calls(sys._getframe),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_on_the_list_is_not_called(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither when it is read, nor when it would be written."""
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(HOSTILE[name])
    with pytest.raises(RefusedName, match=r"it names '.*', which a JOBDIR may not contain"):
        Classes(["tests"]).loads(data)
    with pytest.raises(RefusedName):
        Classes(["tests"]).dumps(HOSTILE[name])
    assert not capfd.readouterr().out
    assert not list(tmp_path.iterdir())


def named(module: str, name: str) -> bytes:
    """Return a pickle that names something, and does nothing with it."""
    file = io.BytesIO()
    pickler = pickle._Pickler(file, 4)
    pickler.write(pickle.PROTO + b"\x04")
    pickler.save(module)
    pickler.save(name)
    pickler.write(pickle.STACK_GLOBAL + pickle.STOP)
    return file.getvalue()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("scrapy_focus.learn.modelfile", "zipfile.ZipFile"),
        ("scrapy_focus.learn.modelfile", "BytesIO"),
        ("scrapy_focus.learn.modelfile", "Path"),
        ("scrapy_focus.policies.bases", "Policy.__init__"),
        ("scrapy_focus.policies.bases", "Policy.__init__.__globals__"),
        ("tests.jobs.test_pickles", "subprocess.Popen"),
        ("tests.jobs.test_pickles", "SGDClassifier.__init__"),
        ("scrapy_focus.jobs.pickles", "Classes"),
        ("scrapy_focus.jobs.pickles", "np"),
        ("sklearn.base", "np.load"),
        ("collections", "Counter.__init__"),
    ],
)
def test_nothing_is_reached_through_what_is_on_the_list(module: str, name: str) -> None:
    """Neither what a module imported, nor the attributes of a class."""
    for classes in (Classes(["tests"]), Classes(paths=["tests"])):
        with pytest.raises(RefusedName):
            classes.loads(named(module, name))


def test_a_package_that_is_named_gives_only_what_is_its_own() -> None:
    """Not the modules that it imported."""
    for module, name in [("numpy", "os"), ("numpy", "os.system"), ("numpy.testing", "sys.modules")]:
        with pytest.raises((RefusedName, AttributeError)):
            Classes(paths=["numpy"]).loads(named(module, name))
    assert Classes(paths=["numpy"]).loads(named("numpy", "load")) is np.load


MADE = "scrapy_focus.jobs.pickles"
FORGED = {
    "objects that are addresses": ("_array", ("'|O'", (1,), "C", b"AAAAAAAA")),
    "records of addresses": ("_array", ("[('a', '|O')]", (1,), "C", b"AAAAAAAA")),
    "too few bytes": ("_array", ("'<f8'", (1000,), "C", b"AAAAAAAA")),
    "no type at all": ("_array", (3, (1,), "C", b"AAAAAAAA")),
    "a type that is a program": ("_array", ("__import__('os')", (1,), "C", b"A")),
    "a type of objects": ("_dtype", ("O",)),
    "a type that can be changed": ("_dtype", (">f4",)),
    "a type of records": ("_dtype", ("V8",)),
    "a place outside": ("_bits", ("MT19937", None, {"bit_generator": "MT19937", "state": {"pos": 10**6, "key": []}})),
    "another generator": ("_bits", ("Generator", None, {})),
    "objects that are too few": ("_objects", ((10**12,), [1])),
}


@pytest.mark.parametrize("name", FORGED)
def test_arrays_that_nobody_wrote_are_refused(name: str) -> None:
    """Data that NumPy would use as memory addresses never reaches it."""
    function, args = FORGED[name]
    data = named(MADE, function)[:-1] + pickle.dumps(args, 4)[2:-1] + pickle.REDUCE + pickle.STOP
    with pytest.raises(Exception, match=r".") as raised:
        Classes().loads(data)
    assert isinstance(raised.value, (pickle.UnpicklingError, ValueError, TypeError))


def test_numpys_own_pickles_of_arrays_are_refused() -> None:
    """They can set the memory addresses of an array's objects."""
    with pytest.raises(RefusedName, match=r"numpy.*(_reconstruct|_frombuffer)"):
        Classes(["tests"]).loads(pickle.dumps(np.arange(3), 5))
