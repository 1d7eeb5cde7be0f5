"""Real web sites to crawl, by authors unrelated to this package.

Debian's documentation packages hold whole web sites. A comparison on them can be repeated by anyone: the packages
stay available, and the sites' servers get no requests. They are answered as a stock web server would answer them, the
same on every machine; links to files that Debian removed are dead::

    python benchmarks/sites.py fetch sklearn2 ghc     # apt-get download and dpkg -x, nothing is installed
    python benchmarks/sites.py truth sklearn2         # exhaustive crawl; writes sites/sklearn2.truth.json
    python benchmarks/sites.py record sklearn2        # for simulated crawls; writes sites/sklearn2.sqlite
    python benchmarks/sites.py serve sklearn2 --port 8000
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from scrapy_focus.core.files import write_atomically
from scrapy_focus.lab.recordings.html import read_page
from scrapy_focus.lab.recordings.importers.folder import FolderSite, record_site
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.web.mime import DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_HOST = "http://127.0.0.1"
_DOC = "usr/share/doc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one web site lies in the packages, and what counts as a target on it."""

    name: str
    packages: tuple[str, ...]
    root: str  # folder to serve, relative to the file system of the packages
    start: str = "/index.html"  # path of the first page
    types: Mapping[str, str] = field(default_factory=dict)  # suffix with dot, lower case -> MIME type
    targets: frozenset[str] = DATA_TYPES  # MIME types
    held_out: bool = False  # whether it was kept for judging what was built, and is not to be used before


SITES = {
    site.name: site
    for site in (
        Site(name="astropy", packages=("python-astropy-doc",), root=f"{_DOC}/python-astropy-doc/html"),
        Site(name="erlang", packages=("erlang-doc",), root=f"{_DOC}/erlang-doc", start="/doc/index.html"),
        Site(name="ghc", packages=("ghc-doc",), root=f"{_DOC}/ghc-doc/html"),
        Site(
            name="lily",
            packages=("lilypond-doc-html",),
            root=f"{_DOC}/lilypond/html",
            start="/Documentation/web/index.html",
        ),
        Site(name="linuxdoc", packages=("linux-doc-6.1",), root=f"{_DOC}/linux-doc-6.1/html"),
        Site(
            name="lohelp",
            packages=("libreoffice-help-en-us", "libreoffice-help-common"),
            root="usr/share/libreoffice/help",
            start="/en-US/text/swriter/main0000.html",
        ),
        Site(name="petsc", packages=("petsc3.18-doc",), root=f"{_DOC}/petsc3.18-doc/docs"),
        Site(name="sagedoc", packages=("sagemath-doc",), root=f"{_DOC}/sagemath/html", start="/en/index.html"),
        Site(name="skimage", packages=("python-skimage-doc",), root=f"{_DOC}/python-skimage-doc/html"),
        Site(name="sklearn", packages=("python-sklearn-doc",), root=f"{_DOC}/python-sklearn-doc/html"),
        Site(
            name="sklearn2",
            packages=("python-sklearn-doc",),
            root=f"{_DOC}/python-sklearn-doc/html",
            types={".txt": "text/x-rst"},
        ),
        Site(name="statsm", packages=("python-statsmodels-doc",), root=f"{_DOC}/python-statsmodels-doc/html"),
        Site(name="ase", packages=("python-ase-doc",), root=f"{_DOC}/python-ase-doc/html"),
        Site(name="asio", packages=("libasio-doc",), root=f"{_DOC}/libasio-dev"),
        Site(name="brz", packages=("brz-doc",), root=f"{_DOC}/brz/html", start="/en/index.html"),
        Site(name="csound", packages=("csound-doc",), root=f"{_DOC}/csound-doc/html"),
        Site(
            name="macaulay2",
            packages=("macaulay2-common",),
            root="usr/share",
            start="/doc/Macaulay2/Macaulay2Doc/html/index.html",
        ),
        Site(name="mhbook", packages=("mh-book",), root=f"{_DOC}/mh-book/html"),
        Site(name="pydicom", packages=("python-pydicom-doc",), root=f"{_DOC}/python-pydicom-doc/html"),
        Site(name="twisted", packages=("twisted-doc",), root=f"{_DOC}/twisted-doc/html"),
        Site(name="argyll", packages=("argyll-doc",), root=f"{_DOC}/argyll-doc", start="/ArgyllDoc.html"),
        Site(
            name="lilyfr",
            packages=("lilypond-doc-html", "lilypond-doc-html-fr"),
            root=f"{_DOC}/lilypond/html",
            start="/Documentation/web/index.fr.html",
        ),
        Site(name="nsis", packages=("nsis-doc", "nsis-common"), root=".", start=f"/{_DOC}/nsis/Docs/Chapter1.html"),
        Site(name="pcbrnd", packages=("pcb-rnd-doc",), root=f"{_DOC}/pcb-rnd"),
        Site(
            name="swig",
            packages=("swig4.0-examples",),
            root=f"{_DOC}/swig4.0-examples/Examples",
            types={  # as Apache has them
                **dict.fromkeys((".c", ".cpp", ".cxx", ".h"), "text/x-c"),
                ".java": "text/x-java-source",
            },
        ),
        Site(name="tomcat", packages=("tomcat10-examples",), root="usr/share/tomcat10-examples/examples"),
        Site(name="sasview", packages=("sasview-doc",), root=f"{_DOC}/sasview/html"),
        Site(name="tables", packages=("python-tables-doc",), root=f"{_DOC}/python-tables-doc/html"),
        Site(name="mdanalysis", packages=("python-mdanalysis-doc",), root=f"{_DOC}/python-mdanalysis-doc/html"),
        # The rest are of 29 November. Whether a site is held out was drawn by the parity of the SHA-256 of its package's
        # name before any of them was crawled; those without files were left out. These were used for development, ...
        Site(name="avrlibc", packages=("avr-libc",), root=f"{_DOC}/avr-libc", start="/avr-libc-user-manual/index.html"),
        Site(name="tango", packages=("libtango-doc",), root=f"{_DOC}/tango/html"),
        Site(name="racket", packages=("racket-doc", "racket-common"), root=f"{_DOC}/racket"),
        Site(name="dealii", packages=("libdeal.ii-doc",), root=f"{_DOC}/libdeal.ii-doc/html"),
        Site(name="python", packages=("python3.11-doc",), root=f"{_DOC}/python3.11/html"),
        Site(name="dpdk", packages=("dpdk-doc",), root=f"{_DOC}/dpdk", start="/guides/index.html"),
        Site(name="xen", packages=("xen-doc",), root=f"{_DOC}/xen/html"),
        Site(name="systemtap", packages=("systemtap-doc",), root="usr/share/systemtap/examples"),
        # ... these were kept to judge what was built, ...
        Site(name="dolfin", packages=("dolfin-doc",), root=f"{_DOC}/dolfin-doc", held_out=True),
        Site(name="hap", packages=("gap-hap",), root="usr/share/gap/pkg/HAP", start="/www/index.html", held_out=True),
        Site(name="qutip", packages=("python-qutip-doc",), root=f"{_DOC}/python-qutip-doc/html", held_out=True),
        Site(name="opencv", packages=("opencv-doc",), root=f"{_DOC}/opencv-doc/opencv4/html", held_out=True),
        Site(name="cogent", packages=("python-cogent-doc",), root=f"{_DOC}/python-cogent-doc/html", held_out=True),
        Site(
            name="liggghts",
            packages=("liggghts-doc",),
            root=f"{_DOC}/liggghts",
            start="/doc/Manual.html",
            held_out=True,
        ),
        Site(name="nipy", packages=("python-nipy-doc",), root=f"{_DOC}/python-nipy-doc/html", held_out=True),
        Site(name="rdkit", packages=("rdkit-doc",), root=f"{_DOC}/rdkit/html", held_out=True),
        Site(
            name="boost",
            packages=("libboost1.81-doc",),
            root=f"{_DOC}/libboost1.81-doc",
            start="/doc/html/index.html",
            held_out=True,
        ),
        Site(name="clanlib", packages=("clanlib-doc",), root=f"{_DOC}/clanlib-doc", held_out=True),
        # ... and these were chosen for the same purpose when it was final, because they have files.
        Site(name="ezdxf", packages=("python-ezdxf-doc",), root=f"{_DOC}/python-ezdxf-doc/html", held_out=True),
        Site(name="gevent", packages=("python-gevent-doc",), root=f"{_DOC}/python-gevent-doc/html", held_out=True),
        Site(name="nipype", packages=("python-nipype-doc",), root=f"{_DOC}/python3-nipype/html", held_out=True),
        Site(name="praw", packages=("praw-doc",), root=f"{_DOC}/praw-doc/html", held_out=True),
        Site(name="rsyslog", packages=("rsyslog-doc",), root=f"{_DOC}/rsyslog-doc/html", held_out=True),
        Site(name="sfepy", packages=("python-sfepy-doc",), root=f"{_DOC}/python-sfepy-doc/html", held_out=True),
        Site(name="tornado", packages=("python-tornado-doc",), root=f"{_DOC}/python-tornado-doc/html", held_out=True),
        Site(name="varnish", packages=("varnish-doc",), root=f"{_DOC}/varnish/html", held_out=True),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What an exhaustive crawl of a site finds.

    Every URL is asked for once, so `requests` is the sum of pages, targets, redirects, dead links and others.
    """

    site: str
    start: str  # path
    requests: int
    pages: int  # HTML
    redirects: int
    dead: int  # URLs that are linked and answered with an error
    others: int  # images, style sheets, programs
    target_bytes: int
    other_bytes: int  # pages and others
    targets: tuple[str, ...]  # paths as requested, sorted


def exhaust(site: Site, server: FolderSite) -> Truth:
    """Everything on `site`, by a breadth-first crawl without a network.

    Links are those that :func:`~scrapy_focus.lab.recordings.html.read_page` finds, on the same host. Memory grows with the number
    of distinct URLs.
    """
    start = _HOST + site.start
    counts: Counter[str] = Counter()
    volume: Counter[str] = Counter()
    targets: list[str] = []
    seen = {start}
    queue = deque([start])
    while queue:
        url = queue.popleft()
        path = url.removeprefix(_HOST)
        page = server.fetch(path)
        found: Iterable[str] = ()
        if page.location:
            kind, found = "redirects", [urljoin(url, page.location)]
        elif page.status >= 400:
            kind = "dead"
        elif "html" in page.mime:
            kind, found = "pages", [link.url for link in read_page(url, {"Content-Type": page.mime}, page.body).links]
        elif page.mime in site.targets:
            kind = "targets"
            targets.append(path)
        else:
            kind = "others"
        counts[kind] += 1
        volume[kind] += page.size
        for link in found:
            if link not in seen and link.startswith(f"{_HOST}/"):
                seen.add(link)
                queue.append(link)
    return Truth(
        site=site.name,
        start=site.start,
        requests=counts.total(),
        pages=counts["pages"],
        redirects=counts["redirects"],
        dead=counts["dead"],
        others=counts["others"],
        target_bytes=volume["targets"],
        other_bytes=volume["pages"] + volume["others"],
        targets=tuple(sorted(targets)),
    )


def fetch(name: str, folder: Path = Path("sites")) -> Path:
    """Download and unpack the packages of the site called `name`, unless it is done, and return the tree.

    Packages are kept in ``FOLDER/debs`` and unpacked to ``FOLDER/PACKAGE``; nothing is installed.

    Raises
    ------
    SystemExit
        apt does not know the package, or cannot reach its mirror.
    """
    tree = _tree(name, folder)
    if tree.is_dir():
        return tree
    debs = folder / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    unpacked = folder / f"{tree.name}.unpacking"
    shutil.rmtree(unpacked, ignore_errors=True)
    for package in SITES[name].packages:
        if not any(debs.glob(f"{package}_*.deb")):
            done = subprocess.run(["apt-get", "download", package], cwd=debs, check=False)
            if done.returncode:
                raise SystemExit(f"apt-get could not download {package}: run apt-get update, then fetch again")
        deb = max(debs.glob(f"{package}_*.deb"), key=lambda file: file.stat().st_mtime)
        subprocess.run(["dpkg", "-x", str(deb), str(unpacked)], check=True)
    unpacked.rename(tree)
    return tree


def open_site(name: str, folder: Path = Path("sites")) -> FolderSite:
    """The site called `name`, ready to answer, from the files that `fetch` left in `folder`.

    Raises
    ------
    SystemExit
        The packages were not fetched.
    """
    site = SITES[name]
    tree = _tree(name, folder)
    if not (tree / site.root).is_dir():
        raise SystemExit(f"{name} is not in {folder}: run python benchmarks/sites.py fetch {name}")
    return FolderSite(tree / site.root, tree=tree, types=site.types)


def write_truth(name: str, folder: Path = Path("sites")) -> Truth:
    """What an exhaustive crawl of the site called `name` finds; also written to ``FOLDER/NAME.truth.json``."""
    truth = exhaust(SITES[name], open_site(name, folder))
    write_atomically(_truth_file(name, folder), json.dumps(asdict(truth), indent=1).encode())
    return truth


def read_truth(name: str, folder: Path = Path("sites")) -> Truth:
    """What `write_truth` wrote, after calling it where it did not."""
    file = _truth_file(name, folder)
    if not file.exists():
        return write_truth(name, folder)
    fields = json.loads(file.read_text(encoding="utf-8"))
    return Truth(**{**fields, "targets": tuple(fields["targets"])})


def _tree(name: str, folder: Path) -> Path:
    return folder / "+".join(SITES[name].packages)


def _truth_file(name: str, folder: Path) -> Path:
    return folder / f"{name}.truth.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description="Real web sites from Debian's documentation packages.")
    parser.add_argument("--folder", type=Path, default=Path("sites"), help="where packages and counts are kept")
    commands = parser.add_subparsers(dest="command", required=True)
    for command, words in (
        ("fetch", "download and unpack the packages"),
        ("truth", "crawl exhaustively without a network, count, and write NAME.truth.json"),
        ("record", "record without a network, and write NAME.sqlite"),
        ("serve", "answer on 127.0.0.1 until interrupted"),
    ):
        subparser = commands.add_parser(command, help=words)
        many = command != "serve"
        subparser.add_argument("names", metavar="NAME", choices=sorted(SITES), nargs="+" if many else 1)
        if command == "record":
            subparser.add_argument("--bodies", action="store_true", help="keep the pages, for goals that read them")
        if not many:
            subparser.add_argument("--port", type=int, default=0, help="default: any free one")
    options = parser.parse_args(arguments)
    for name in options.names:
        if options.command == "fetch":
            print(fetch(name, options.folder))
        elif options.command == "truth":
            counts = asdict(write_truth(name, options.folder))
            counts["targets"] = len(counts["targets"])
            print(json.dumps(counts), flush=True)
        elif options.command == "record":
            path = options.folder / f"{name}.sqlite"
            site, root = open_site(name, options.folder), _HOST + SITES[name].start
            print(path, record_site(site, path, root=root, bodies=options.bodies), flush=True)
        else:
            _serve(name, options.folder, options.port)


def _serve(name: str, folder: Path, port: int) -> None:
    server = SiteServer(open_site(name, folder), port=port)
    server.start()
    print(server.url.removesuffix("/") + SITES[name].start, flush=True)
    server.serve_until_interrupted()


if __name__ == "__main__":
    main()
