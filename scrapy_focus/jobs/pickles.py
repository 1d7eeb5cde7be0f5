"""Pickles that cannot run code.

A pickle is a program: it names functions, and calls them. Yet a policy and a queued request have objects of arbitrary
classes, and must survive their process. So there are two kinds. A *plain* one holds numbers, texts, bytes and
containers of them; it names nothing, and anybody may read it. Any other is written and read with :class:`Classes`, the
list of allowed names. A forbidden name is refused when the pickle is written, and not only when a crawl resumes.

NumPy's own way to pickle arrays is not on the list: it lets a pickle set the memory addresses of an array's objects.
Arrays and random generators are written as texts, numbers and bytes instead, and rebuilt from these.
"""

from __future__ import annotations

import ast
import io
import math
import pickle
from enum import Enum
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

_PATHS = ("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
#: Names outside of all packages that are harmless with any arguments.
_HARMLESS = {
    "array": ("array", "_array_reconstructor"),
    "builtins": (
        "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "range", "set",
        "slice", "str", "tuple",
    ),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "functools": ("partial",),
    "itertools": ("count",),
    "operator": ("itemgetter",),
    "pathlib": _PATHS,
    "pathlib._local": _PATHS,
    "random": ("Random",),
    "re": ("_compile",),
    "types": ("SimpleNamespace",),
    "uuid": ("SafeUUID", "UUID"),
}  # fmt: skip
#: Classes of these may be named: policies consist of them, and none opens a file or a connection.
_OURS = ("scrapy_focus.core.types", "scrapy_focus.learn", "scrapy_focus.policies", "scrapy_focus.topic")
#: Current names of modules that stored jobs know by older names.
_MOVED = {
    "scrapy_focus.learn.bayes": "scrapy_focus.policies.hostbandit.bayes",
    "scrapy_focus.learn.logistic": "scrapy_focus.policies.branching.logistic",
    "scrapy_focus.learn.qnet": "scrapy_focus.policies.treeq.qnet",
    "scrapy_focus.learn.states": "scrapy_focus.policies.foragers.states",
    "scrapy_focus.learn.td": "scrapy_focus.policies.foragers.td",
    "scrapy_focus.learn.tournament": "scrapy_focus.policies.hostbandit.tournament",
    "scrapy_focus.learn.tree": "scrapy_focus.policies.treeq.tree",
    **{
        f"scrapy_focus.learn.{name}": f"scrapy_focus.topic.{name}"
        for name in (
            "adaptive", "background", "drift", "examples", "expansion", "frequency", "keywords", "models", "nearby",
            "neural", "relevance", "repeated", "rounds", "shifted", "validation",
        )
    },
}  # fmt: skip
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_ENDS = {"pos": 624, "buffer_pos": 4}  # largest positions in the state of a generator, which NumPy does not check
_LONGEST = 10_000  # characters of the description of a data type


class RefusedName(pickle.UnpicklingError):
    """Raised for a pickle that names a forbidden class or function."""

    def __init__(self, module: str, name: str) -> None:
        self.path = f"{module}.{name}"
        super().__init__(
            f"it names {self.path!r}, which a JOBDIR may not contain: if you trust it, add "
            f"{self.path!r} to FOCUS_STORED_CLASSES, or to the attribute stores of the policy"
        )


class Classes:
    """The classes and functions that pickles may name; writes and reads such pickles.

    Always allowed: plain values, the usual containers, dates and the like of the standard library, NumPy's arrays and
    random generators, estimators of scikit-learn, and the classes that policies of this package consist of.

    Parameters
    ----------
    packages
        Packages or modules of the crawling project: every class of them may be named, and no function.
    paths
        Import paths of single classes and functions, or of whole packages, including functions.
    """

    def __init__(self, packages: Collection[str] = (), paths: Collection[str] = ()) -> None:
        self._packages = tuple(packages)
        self._paths = tuple(paths)

    def with_more(self, packages: Collection[str], paths: Collection[str]) -> Classes:
        """Return a list with more packages and paths."""
        return Classes({*self._packages, *packages}, {*self._paths, *paths})

    def dumps(self, value: object, given: object = None) -> bytes:
        """Return the pickle of a value. It has a reference in place of ``given``, wherever that is in the value.

        So an object that the reader has anyway is not copied.

        Raises
        ------
        RefusedName
            If it would name a forbidden class or function.
        Exception
            Whatever a value raises that cannot be pickled.
        """
        parts = _Parts()
        _Pickler(parts, self, given).dump(value)
        return b"".join(parts)

    def loads(self, data: bytes, given: object = None) -> Any:
        """Return the value of a pickle, with ``given`` in place of the references that :meth:`dumps` wrote.

        Only allowed names are imported or called.

        Raises
        ------
        RefusedName
            If it names a forbidden class or function.
        Exception
            Whatever an invalid pickle raises.
        """
        return _Unpickler(data, self, given).load()

    def find(self, module: str, name: str) -> Any:
        """Return an allowed class or function.

        Raises
        ------
        RefusedName
            If it is not allowed.
        ImportError, AttributeError
            If it does not exist.
        """
        module = _MOVED.get(module, module)
        if name in _HARMLESS.get(module, ()):
            return _resolve(module, name)
        if module == __name__ and name in _MAKERS:
            return _MAKERS[name]
        if module == "numpy" and _is_number(found := getattr(np, name, None)):
            return found
        if _is_within_any(f"{module}.{name}", self._paths):
            found = _resolve(module, name)
            # A module may have imported it from elsewhere: its own module counts.
            home = getattr(found, "__module__", None) or module
            if not isinstance(found, ModuleType) and _is_within_any(f"{home}.{name}", self._paths):
                return found
        elif _is_within_any(module, (*_OURS, *self._packages, "sklearn")):
            found = _resolve(module, name)
            if isinstance(found, type) and found.__module__ == module and _is_ours_or_estimator(found):
                return found
        raise RefusedName(module, name)


def _is_within(path: str, package: str) -> bool:
    return path == package or path.startswith(f"{package}.")


def _is_within_any(name: str, paths: Collection[str]) -> bool:
    return any(_is_within(name, path) for path in paths)


def _is_number(found: Any) -> bool:
    """Whether this is one of NumPy's number types."""
    return isinstance(found, type) and issubclass(found, (np.number, np.bool_))


def _is_ours_or_estimator(cls: type) -> bool:
    """Whether a class is not of scikit-learn, or is an estimator or a loss, which are harmless to construct."""
    if not _is_within(cls.__module__, "sklearn"):
        return True
    if cls.__module__ in ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast"):
        return True
    return issubclass(cls, import_module("sklearn.base").BaseEstimator)


def _resolve(module: str, name: str) -> Any:
    """Return an attribute of a module by its name, which may be that of a nested class."""
    found: Any = import_module(module)
    for i, part in enumerate(name.split(".")):
        if i and not isinstance(found, type):  # a module within a module leads anywhere
            raise RefusedName(module, name)
        found = getattr(found, part)
    return found


class _Parts(list[bytes]):
    """Collects a pickle in parts: a file in memory copies everything repeatedly while it grows."""

    def write(self, part: bytes) -> int:
        """Take a part."""
        self.append(bytes(part))
        return len(self[-1])


class _Pickler(pickle.Pickler):
    def __init__(self, file: _Parts, classes: Classes, given: object) -> None:
        super().__init__(file, protocol=5)
        self._classes = classes
        self._given = given

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._given and obj is not None:
            return _given, ()
        reduce = _REDUCERS.get(type(obj))
        if reduce is not None:
            return reduce(obj)
        if isinstance(obj, np.generic):
            return _scalar, (_text_of(obj.dtype), obj.tobytes())
        if isinstance(obj, np.dtype):
            if obj.isbuiltin != 1 or obj.hasobject:
                raise pickle.PicklingError(f"it has the data type {obj}; only types of numbers can be stored")
            return _dtype, (obj.str,)
        if isinstance(obj, Enum):  # some versions of Python would name getattr, which leads anywhere
            return type(obj), (obj.value,)
        if isinstance(obj, (type, FunctionType, BuiltinFunctionType)):
            is_named = "<" not in obj.__qualname__  # pickle itself refuses others, such as lambdas
            if is_named and obj is not _given:
                self._classes.find(str(obj.__module__), obj.__qualname__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, classes: Classes, given: object) -> None:
        super().__init__(io.BytesIO(data))
        self._classes = classes
        self._given = given

    def find_class(self, module: str, name: str) -> Any:
        """Return the object that the pickle names, if allowed."""
        if (module, name) == (__name__, _given.__name__):
            return self._get_given
        return self._classes.find(module, name)

    def _get_given(self) -> object:
        if self._given is None:
            raise pickle.UnpicklingError("it refers to an object that the reader does not provide")
        return self._given


def _given() -> object:
    """The reference in pickles to the object that the reader has."""
    raise pickle.UnpicklingError("read it with Classes.loads")


# NumPy's objects as plain values


def _text_of(dtype: np.dtype[Any]) -> str:
    """Return the description of a data type in NumPy's file format."""
    return repr(np.lib.format.dtype_to_descr(dtype))


def _type_of(text: str) -> np.dtype[Any]:
    if type(text) is not str or len(text) > _LONGEST:
        raise pickle.UnpicklingError("an array has no data type")
    return np.lib.format.descr_to_dtype(ast.literal_eval(text))


def _array(text: str, shape: tuple[int, ...], order: str, data: bytes) -> NDArray[Any]:
    """Return an array of numbers from all of its bytes."""
    dtype = _type_of(text)
    if math.prod(shape) * dtype.itemsize != len(data) or dtype.hasobject:
        raise pickle.UnpicklingError(f"an array of the shape {shape} has {len(data):,} bytes")
    made = np.frombuffer(data, dtype) if data else np.empty(0 if 0 in shape else math.prod(shape), dtype)
    return made.reshape(shape, order="F" if order == "F" else "C").copy(order="K")


def _objects(shape: tuple[int, ...], values: list[Any]) -> NDArray[Any]:
    """Return an array of objects."""
    if math.prod(shape) != len(values):
        raise pickle.UnpicklingError(f"an array of the shape {shape} has {len(values):,} objects")
    made = np.empty(len(values), object)
    for i, value in enumerate(values):
        made[i] = value
    return made.reshape(shape)


def _scalar(text: str, data: bytes) -> Any:
    return _array(text, (), "C", data)[()]


def _dtype(text: str) -> np.dtype[Any]:
    """Return the data type of a number; other types would let a pickle change their meaning."""
    found = np.dtype(text) if type(text) is str and len(text) <= _LONGEST else np.dtype(object)
    if found.isbuiltin != 1 or found.hasobject:
        raise pickle.UnpicklingError(f"{text!r} is not the data type of a number")
    return found


def _bits(name: str, seed: Mapping[str, Any] | None, state: dict[str, Any]) -> np.random.BitGenerator:
    """Return a bit generator in its stored state."""
    inner = state.get("state")
    places = {**state, **(inner if isinstance(inner, dict) else {})}
    well = all(0 <= int(places.get(place, 0)) <= end for place, end in _ENDS.items())
    if name not in _GENERATORS or not well:
        raise pickle.UnpicklingError(f"{name!r} is not a random generator that can be restored")
    made: np.random.BitGenerator = getattr(np.random, name)(None if seed is None else np.random.SeedSequence(**seed))
    made.state = state
    return made


def _generator(bits: np.random.BitGenerator) -> np.random.Generator:
    return np.random.Generator(bits)


def _legacy(bits: np.random.BitGenerator, gauss: tuple[int, float]) -> np.random.RandomState:
    """Return one of NumPy's older generators, which scikit-learn uses."""
    made = np.random.RandomState(bits)
    has_gauss, last = gauss
    made.set_state({**made.get_state(legacy=False), "has_gauss": int(has_gauss), "gauss": float(last)})
    return made


def _of_array(array: NDArray[Any]) -> tuple[Any, ...]:
    if array.dtype == object:
        return _objects, (array.shape, list(array.ravel()))
    if array.dtype.hasobject:
        raise pickle.PicklingError("it has an array of records with objects, which cannot be stored")
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    return _array, (_text_of(array.dtype), array.shape, order, array.tobytes(order))


def _of_bits(bits: Any) -> tuple[Any, ...]:
    seed = bits.seed_seq
    return _bits, (type(bits).__name__, seed.state if isinstance(seed, np.random.SeedSequence) else None, bits.state)


def _of_legacy(random: np.random.RandomState) -> tuple[Any, ...]:
    state: dict[str, Any] = random.get_state(legacy=False)
    return _legacy, (random._bit_generator, (state["has_gauss"], state["gauss"]))


_REDUCERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    np.ndarray: _of_array,
    np.random.Generator: lambda generator: (_generator, (generator.bit_generator,)),
    np.random.RandomState: _of_legacy,
    np.random.SeedSequence: lambda seed: (_seed, (seed.state,)),
    **{getattr(np.random, name): _of_bits for name in _GENERATORS},
}


def _seed(state: Mapping[str, Any]) -> np.random.SeedSequence:
    return np.random.SeedSequence(**state)


_MAKERS = {made.__name__: made for made in (_array, _bits, _dtype, _generator, _legacy, _objects, _scalar, _seed)}
