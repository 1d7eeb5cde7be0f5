"""Where everything is on the synthetic scripted site: how many of each kind, the sections of its app, the files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The kinds of pages: a static list, the app, a collection that shows more on demand, the news, or exports.
Kind: TypeAlias = Literal["lists", "app", "collections", "news", "exports"]
#: How an API is asked for the next page of a list.
Make: TypeAlias = Literal["next", "pages"]
#: How links follow from the JSON: made of ids in lists, or URLs throughout.
Shape: TypeAlias = Literal["ids", "urls"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAKES: Final[tuple[Make, ...]] = get_args(Make)
SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)

PER_LIST, PER_DATASET, PER_COLLECTION = 8, 2, 20  # files
SHOWN, PER_MORE = 4, 8  # files of a collection that are in its HTML, and that come at a time
PER_NEWS = 10  # news pages for each that has a file
_SECTIONS: Final = ("climate", "health", "trade", "schools", "energy", "housing", "water", "forests", "wages", "travel")
_SUBJECTS: Final = (
    "rainfall incomes rents harvests exports births prices wages journeys emissions pupils patients permits crimes "
    "visitors vacancies imports reserves taxes yields"
).split()
_PLACES: Final = "coast capital north valley islands border plains harbour suburbs highlands".split()
_DATASET = re.compile(r"[0-9a-f]{4}-(\d{1,9})\Z", re.ASCII)
_FILE = re.compile(r"/files/(lists|collections|news)-(\d{1,6})-(\d{1,3})\.csv\Z", re.ASCII)
_OF_DATASET = re.compile(r"/files/([a-z0-9-]+)/([0-9a-f]{4}-\d{1,9})-(\d)\.csv\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How many pages there are of each kind; none by 0."""

    lists: int = 15  # each with 8 files
    app_lists: int = 10  # list pages of the app
    per_app_list: int = 12  # datasets on each, a page and 2 files for each dataset
    collections: int = 12  # each with 4 files in the HTML and 16 behind scripts
    news: int = 80  # a file on one in ten
    exports: int = 20  # each with one file: one half by URL, the other made in the browser

    def __post_init__(self) -> None:
        for name in ("lists", "app_lists", "per_app_list", "collections", "news", "exports"):
            if not 0 <= getattr(self, name) <= 100_000:
                raise ValueError(f"{name}={getattr(self, name)!r} was given; choose a number from 0 to 100000")
        if self.app_lists and not self.per_app_list:
            raise ValueError("per_app_list=0 leaves the lists of the app empty; choose 1 or more, or app_lists=0")

    @property
    def datasets(self) -> int:
        """Number of dataset pages of the app."""
        return self.app_lists * self.per_app_list


#: Mixes by the percentage of files with a URL that are behind scripts; 72 is the default.
MIXES: Final[Mapping[int, Mix]] = MappingProxyType(
    {
        5: Mix(lists=130, app_lists=4, per_app_list=3, collections=2, news=150, exports=2),
        30: Mix(lists=60, app_lists=5, collections=6, news=120, exports=10),
        72: Mix(),
        80: Mix(lists=6),
    }
)


class Api(NamedTuple):
    """How one section of the app gets its data."""

    make: Make = "pages"
    shape: Shape = "ids"


class Section(NamedTuple):
    """A part of the app: its lists, all over one API."""

    name: str
    make: Make
    shape: Shape
    pages: int  # lists that the site shows
    size: int  # datasets on each

    @property
    def datasets(self) -> int:
        """Number of datasets."""
        return self.pages * self.size


class Plan:
    """Where everything is; a function of its parameters.

    Parameters
    ----------
    mix
        How many pages of each kind.
    apis
        A section of the app for each; the lists are shared out among them.
    seed
        Another seed is another site.
    """

    def __init__(self, mix: Mix, apis: Sequence[Api], *, seed: int) -> None:
        for api in apis:
            if api.make not in MAKES or api.shape not in SHAPES:
                raise ValueError(
                    f"the API {tuple(api)} is unknown; its make is one of {', '.join(MAKES)}, "
                    f"and its shape one of {', '.join(SHAPES)}"
                )
        if mix.app_lists and not 1 <= len(apis) <= mix.app_lists:
            raise ValueError(
                f"{mix.app_lists} lists of the app cannot be shared among {len(apis)} APIs; "
                "give one or more, and no more than there are lists"
            )
        self.mix = mix
        self.seed = seed
        used = apis if mix.app_lists else ()
        self.sections = {
            name: Section(name, api.make, api.shape, len(range(i, mix.app_lists, len(used))), mix.per_app_list)
            for i, api in enumerate(used)
            for name in [f"{_SECTIONS[i % len(_SECTIONS)]}{i // len(_SECTIONS) or ''}"]
        }
        order = sorted(range(1, mix.exports + 1), key=lambda export: self.draw("export", export))
        self._blobs = frozenset(order[: mix.exports // 2])

    def draw(self, *what: object) -> int:
        """Return a number below 2**64 that depends only on the seed and `what`."""
        words = "/".join(map(str, (self.seed, *what)))
        return int.from_bytes(blake2b(words.encode(), digest_size=8).digest())

    def title(self, *what: object) -> str:
        """Return the name of something."""
        subject, place = divmod(self.draw("title", *what), len(_PLACES))
        return f"{_SUBJECTS[subject % len(_SUBJECTS)].capitalize()} of the {_PLACES[place]}"

    # -- the app ----------------------------------------------------------------------------------------------------

    def dataset(self, section: Section, number: int) -> str:
        """Return the id of a dataset by its number, from 0."""
        return f"{self.draw('dataset', section.name, number) % 65_536:04x}-{number}"

    def number(self, section: Section, dataset: str) -> int | None:
        """Return the number of a dataset by its id, None if there is none."""
        found = _DATASET.match(dataset)
        if found is None or self.dataset(section, number := int(found[1])) != dataset:
            return None
        return number if number < section.datasets else None

    def list_path(self, section: Section, page: int = 1) -> str:
        """Return the path of a list of the app, from 1."""
        return f"/app/{section.name}?page={page}"

    def dataset_path(self, section: Section, number: int) -> str:
        """Return the path of the page of a dataset."""
        return f"/app/{section.name}/dataset/{self.dataset(section, number)}"

    def list_at(self, path: str) -> tuple[Section, int] | None:
        """Return the section and the page of a path, None if the app has no list there."""
        bare, _, query = path.partition("?")
        section = self.sections.get(bare.removeprefix("/app/")) if bare.startswith("/app/") else None
        if section is None:
            return None
        value = query.partition("=")[2]
        page = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
        exists = 1 <= page <= section.pages
        return (section, page) if exists and self.list_path(section, page) == path else None

    def dataset_at(self, path: str) -> tuple[Section, int] | None:
        """Return the section and the number of a dataset by the path of its page, None if there is none."""
        parts = path.split("/")
        if len(parts) != 5 or parts[1] != "app" or parts[3] != "dataset" or parts[2] not in self.sections:
            return None
        section = self.sections[parts[2]]
        number = self.number(section, parts[4])
        if number is None:
            return None
        return section, number

    # -- files ------------------------------------------------------------------------------------------------------

    def is_blob(self, export: int) -> bool:
        """Whether the file of an export is made in the browser."""
        return export in self._blobs

    def files_of(self, kind: Kind, page: int) -> list[str]:
        """Return the files of a page of lists, collections, news or exports, by its number from 1."""
        if kind == "exports":
            return [] if self.is_blob(page) else [f"/export?id={page}"]
        n = {"lists": PER_LIST, "collections": PER_COLLECTION, "news": int(page % PER_NEWS == 0)}[kind]
        return [f"/files/{kind}-{page}-{k}.csv" for k in range(n)]

    def files_of_dataset(self, section: Section, number: int) -> list[str]:
        """Return the files of a dataset."""
        return [f"/files/{section.name}/{self.dataset(section, number)}-{k}.csv" for k in range(PER_DATASET)]

    def n_of(self, kind: Kind) -> int:
        """Return the number of pages of a kind."""
        mix = self.mix
        return {
            "lists": mix.lists,
            "app": mix.app_lists + mix.datasets,
            "collections": mix.collections,
            "news": mix.news,
            "exports": mix.exports,
        }[kind]

    def files(self, kind: Kind) -> Iterator[str]:
        """Yield all files of a kind that have a URL."""
        if kind == "app":
            for section in self.sections.values():
                for number in range(section.datasets):
                    yield from self.files_of_dataset(section, number)
        else:
            for page in range(1, self.n_of(kind) + 1):
                yield from self.files_of(kind, page)

    def has_file(self, path: str) -> bool:
        """Return whether there is a file."""
        if found := _OF_DATASET.match(path):
            return self._has_file_of_dataset(path, found[1], found[2])
        if found := _FILE.match(path):
            kind: Kind = next(kind for kind in KINDS if kind == found[1])
            page = int(found[2])
            return 1 <= page <= self.n_of(kind) and path in self.files_of(kind, page)
        name, _, export = path.partition("=")
        if name != "/export?id" or not (export.isascii() and export.isdigit() and len(export) < 7):
            return False
        return 1 <= int(export) <= self.mix.exports and path in self.files_of("exports", int(export))

    def _has_file_of_dataset(self, path: str, section_name: str, identifier: str) -> bool:
        section = self.sections.get(section_name)
        number = None if section is None else self.number(section, identifier)
        return section is not None and number is not None and path in self.files_of_dataset(section, number)
