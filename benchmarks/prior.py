"""Fits what other sites taught about links that lead to files: the prior that the default policy starts from.

``watch`` crawls recorded sites with the policy without a prior, and writes the features of each page that it chose,
and whether that led to a file. ``fit`` fits one logistic regression to all sites, each with the same weight, and
writes the prior of the package. ``leave-one-out`` writes one for each site, fitted to all others: with these, the
policy can be judged on the sites that it was made on. Synthetic sites take no part. Words that lead to files are added in ten languages, as no
recorded site has them::

    python benchmarks/prior.py watch sites/*.sqlite --out watched
    python benchmarks/prior.py fit watched --out scrapy_focus/policies/branching/prior.npz
    python benchmarks/prior.py leave-one-out watched --out priors
    focus compare sites/ghc.sqlite --policy BranchingBandit:prior=priors/ghc.npz --policy KEYWORD-FIRST
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.linear_model import LogisticRegression

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.learn.hashed import N_FEATURES, feature
from scrapy_focus.policies.branching.features import ANY
from scrapy_focus.policies.branching.folders import KEPT
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.branching.prior import write_prior
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

SAME = {"sklearn2": "sklearn", "lilyfr": "lily"}  # sites that share pages are left out together
MOST = 3000  # pages of a site
SITES = 3  # on which a feature must occur
C = 0.1  # inverse strength of the regularization
TIMES = 2.5  # factor of the weights: strong regularization makes them too small ...
DOWN = 10.6  # ... and weight that makes a page unlikely to lead to files, as most are
LEAST = 0.02  # smaller weights are left out
WORDS = """
    csv ods pdf xls xlsx
    annex data dataset datasets download downloads publication publications report reports statistical statistics
    bericht berichte daten datensatz herunterladen publikation publikationen statistik statistiken veroeffentlichungen
    donnees données rapport rapports statistiques telecharger télécharger telechargement
    datos descarga descargar descargas estadisticas estadísticas informe informes publicaciones
    dati pubblicazioni rapporti scarica scaricare statistiche
    baixar dados estatisticas estatísticas publicacoes publicações relatorio relatorios
    downloaden gegevens publicaties rapporten statistieken
    dane pobierz publikacje raporty statystyki
    данные отчеты отчёты публикации скачать статистика
    ダウンロード データ 統計 下载 数据 统计
""".split()  # that lead to files in ten languages; the sites are nearly all in English
WORD = 2.5  # weight of each of them, at least


class Watching(BranchingBandit):
    """The default policy without a prior, which keeps what it learned from."""

    def __init__(self) -> None:
        super().__init__(prior="")
        self.rows: list[NDArray[np.uint16]] = []
        self.labels: list[bool] = []

    def _learn_leads(self, row: NDArray[np.uint16], found: float) -> float:
        self.rows.append(row[:KEPT].copy())
        self.labels.append(found > 0)
        return super()._learn_leads(row, found)


class Watched(NamedTuple):
    """The pages that crawls of a site chose, each with equal weight for those that led to files and all others."""

    rows: Any  # csr_array, shape (n, 65536)
    labels: NDArray[np.bool_]
    weights: NDArray[np.float64]  # their sum is the same for each site


def watch(site: Path, out: Path, budget: int, seeds: int) -> Path:
    """Crawl a site, and write the features of its pages and what they led to."""
    rows: list[NDArray[np.uint16]] = []
    labels: list[bool] = []
    for seed in range(seeds):
        policy = Watching()
        simulate(policy, FilesGoal(), site, budget=budget, seed=seed)
        rows += policy.rows
        labels += policy.labels
    path = out / f"{site.stem}.npz"
    np.savez_compressed(path, rows=np.array(rows, np.uint16).reshape(-1, KEPT), labels=np.array(labels, np.bool_))
    return path


def read(folder: Path) -> dict[str, Watched]:
    """Return what was watched by site; sites that share pages are one, and those with fewer than three hits none."""
    found = defaultdict(list)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            found[SAME.get(path.stem, path.stem)].append((data["rows"], data["labels"]))
    sites = {}
    for name, parts in found.items():
        rows, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
        if labels.sum() < SITES:
            continue
        if len(rows) > MOST:
            chosen = np.random.default_rng(0).choice(len(rows), MOST, replace=False)
            rows, labels = rows[chosen], labels[chosen]
        weights = np.where(labels, 1 / max(labels.sum(), 1), 1 / max((~labels).sum(), 1))
        sites[name] = Watched(_sparse(rows), labels, 300 * weights / weights.sum())
    return sites


def _sparse(rows: NDArray[np.uint16]) -> Any:
    """Return rows as the model reads them: each feature counts by the root of their number."""
    lengths = np.sqrt(np.maximum(np.count_nonzero(rows, axis=1), 1))
    at, place = np.nonzero(rows)
    return csr_array((1 / lengths[at], (at, rows[at, place].astype(np.int64))), shape=(len(rows), N_FEATURES))


def fit(sites: Mapping[str, Watched], names: Sequence[str]) -> NDArray[np.float32]:
    """Return the weights of all features, fitted to some of the sites."""
    on = np.zeros(N_FEATURES, np.int64)
    for name in names:
        on[np.unique(sites[name].rows.indices)] += 1
    known = np.flatnonzero(on >= SITES)
    rows = vstack([sites[name].rows for name in names]).tocsr()[:, known]
    labels, weights = (np.concatenate([getattr(sites[name], part) for name in names]) for part in ("labels", "weights"))
    model = LogisticRegression(C=C, max_iter=300).fit(rows, labels, sample_weight=weights)
    fitted = np.zeros(N_FEATURES, np.float32)
    fitted[known] = TIMES * model.coef_[0]
    fitted[np.abs(fitted) < LEAST] = 0
    fitted[ANY] -= DOWN
    named = [feature("anchor", part) for word in WORDS for part in words_of(word)]
    named += [feature("url", word) for word in WORDS if word.isascii()]
    fitted[named] = np.maximum(fitted[named], WORD)
    return fitted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    watching = commands.add_parser("watch", help="crawl recorded sites, and write what their pages led to")
    watching.add_argument("sites", nargs="+", type=Path, help="recordings")
    watching.add_argument("--out", type=Path, default=Path("watched"), help="folder (default: watched)")
    watching.add_argument("--budget", type=int, default=2500, help="requests of each crawl (default: 2500)")
    watching.add_argument("--seeds", type=int, default=2, help="crawls of each site (default: 2)")
    watching.add_argument("--processes", type=int, default=2, help="crawls at a time (default: 2)")
    fitting = commands.add_parser("fit", help="write one prior, fitted to all sites")
    fitting.add_argument("watched", type=Path, help="folder of watch")
    fitting.add_argument("--out", type=Path, required=True, help="file")
    leaving = commands.add_parser("leave-one-out", help="write a prior for each site, fitted to all others")
    leaving.add_argument("watched", type=Path, help="folder of watch")
    leaving.add_argument("--out", type=Path, required=True, help="folder")
    args = parser.parse_args()
    if args.command == "watch":
        args.out.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(args.processes) as pool:
            for run in [pool.submit(watch, site, args.out, args.budget, args.seeds) for site in args.sites]:
                print(run.result())
        return
    sites = read(args.watched)
    if args.command == "fit":
        write_prior(args.out, fit(sites, list(sites)))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(args.watched.glob("*.npz")):
        left_out = SAME.get(path.stem, path.stem)
        write_prior(args.out / path.name, fit(sites, [name for name in sites if name != left_out]))


if __name__ == "__main__":
    main()
