"""How well tables of vectors tell the texts of a subject by one sentence, in one language and in several, and their cost.

    python benchmarks/embeddings.py --wikispeedia wikispeedia.tar.xz WordLlama= tokenlearn=static_model.model

Each source is NAME=SOURCE, as ``load_embedding`` takes it; an empty one is the table of the extra ``about``. Each is
loaded in a process of its own.

Measured: the area under the curve of the cosine between a sentence and the articles of Wikispeedia (title and first
3,000 characters), and between it and their titles, by whether people filed the article under the subject; the mean and
the worst of the 13 subjects of ``wikispeedia.py``, for a sentence that describes the subject and for its name alone.
Then the same for titles of pages of public bodies in four languages, by English sentences: 6 subjects with 5 titles
each, written for this purpose. And microseconds of CPU for a title (100 at once) and for an article, none of which was
embedded before, the resident memory that the embedding takes, and the CPU seconds that loading took.

Not measured: the benefit to a crawl, which ``wikispeedia.py`` measures; texts of other kinds.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from scrapy_focus.learn.embedding import Embedding, load_embedding
from wikispeedia import read_web

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Subject of Wikispeedia -> a sentence that describes it, and its name alone; written before anything was measured.
SENTENCES = {
    "subject.Science": ("physics, chemistry, biology and astronomy", "science"),
    "subject.Geography": ("countries, cities, rivers and mountains", "geography"),
    "subject.Science.Biology": ("articles about animals, plants and other living things", "biology"),
    "subject.People": ("lives of famous men and women", "people"),
    "subject.History": ("wars, empires and kings of the past", "history"),
    "subject.Everyday_life": ("food, drink, sports, films and games", "leisure"),
    "subject.Design_and_Technology": ("engineering, buildings, vehicles and machines", "technology"),
    "subject.Language_and_literature": ("writers, novels, poems and languages", "literature"),
    "subject.Science.Physics.Space_Astronomy+subject.Science.Physics.Space_transport": (
        "planets, stars and space flight", "space",
    ),
    "subject.Music+subject.People.Performers_and_composers": ("music, musicians, instruments and songs", "music"),
    "subject.Religion": ("religion, gods, churches and faith", "religion"),
    "subject.IT+subject.Mathematics": ("computers, software and mathematics", "computing"),
    "subject.Geography.Natural_Disasters+subject.Geography.Storms+subject.Geography.Climate_and_the_Weather": (
        "storms, hurricanes, earthquakes and climate", "weather",
    ),
}  # fmt: skip
#: English sentence -> titles of pages by language.
TITLES = {
    "municipal budgets and annual accounts": {
        "en": [
            "Budget of the city for 2024", "Annual financial statement", "Debt of the municipalities",
            "Revenue and expenditure by department", "Council approves the accounts",
        ],
        "de": [
            "Haushaltsplan der Stadt 2024", "Jahresabschluss und Bilanz", "Schulden der Gemeinden",
            "Einnahmen und Ausgaben nach Ressort", "Gemeinderat beschließt die Jahresrechnung",
        ],
        "fr": [
            "Budget primitif de la commune 2024", "Compte administratif annuel", "Dette des collectivités",
            "Recettes et dépenses par service", "Le conseil approuve les comptes",
        ],
        "cs": [
            "Rozpočet města na rok 2024", "Roční účetní závěrka", "Zadlužení obcí", "Příjmy a výdaje podle odborů",
            "Zastupitelstvo schválilo závěrečný účet",
        ],
    },
    "unemployment and wages": {
        "en": [
            "Job seekers by district", "Average monthly earnings", "The labour market in March",
            "Minimum wage rises in January", "Vacancies and people out of work",
        ],
        "de": [
            "Arbeitslose nach Bezirken", "Durchschnittlicher Bruttolohn", "Der Arbeitsmarkt im März",
            "Mindestlohn steigt im Januar", "Offene Stellen und Erwerbslose",
        ],
        "fr": [
            "Demandeurs d'emploi par département", "Salaire mensuel moyen", "Le marché du travail en mars",
            "Hausse du salaire minimum en janvier", "Offres d'emploi et chômeurs",
        ],
        "cs": [
            "Uchazeči o zaměstnání podle okresů", "Průměrná hrubá mzda", "Trh práce v březnu",
            "Minimální mzda v lednu vzroste", "Volná místa a nezaměstnaní",
        ],
    },
    "tourism and holidays": {
        "en": [
            "Overnight stays in hotels", "Visitors to the castle", "Camping sites by the lake",
            "Hiking trails for guests", "Arrivals of foreign travellers",
        ],
        "de": [
            "Übernachtungen in Hotels", "Besucher der Burg", "Campingplätze am See", "Wanderwege für Gäste",
            "Ankünfte ausländischer Reisender",
        ],
        "fr": [
            "Nuitées dans les hôtels", "Visiteurs du château", "Terrains de camping au bord du lac",
            "Sentiers de randonnée pour les vacanciers", "Arrivées de voyageurs étrangers",
        ],
        "cs": [
            "Přenocování v hotelech", "Návštěvníci hradu", "Kempy u jezera", "Turistické stezky pro hosty",
            "Příjezdy zahraničních cestovatelů",
        ],
    },
    "air quality and the environment": {
        "en": [
            "Fine dust measured at the stations", "Ozone warning for the weekend", "Emissions of power plants",
            "Protected forests and species", "Pollution of rivers",
        ],
        "de": [
            "Feinstaub an den Messstationen", "Ozonwarnung für das Wochenende", "Emissionen der Kraftwerke",
            "Geschützte Wälder und Arten", "Verschmutzung der Flüsse",
        ],
        "fr": [
            "Particules fines mesurées aux stations", "Alerte à l'ozone pour le week-end",
            "Émissions des centrales", "Forêts et espèces protégées", "Pollution des rivières",
        ],
        "cs": [
            "Jemný prach na měřicích stanicích", "Varování před ozonem na víkend", "Emise elektráren",
            "Chráněné lesy a druhy", "Znečištění řek",
        ],
    },
    "schools, teachers and pupils": {
        "en": [
            "Enrolment in primary classes", "Dates of the final examinations", "New building for the gymnasium",
            "Homework and reading at home", "Staff of the kindergartens",
        ],
        "de": [
            "Anmeldung für die erste Klasse", "Termine der Abiturprüfungen", "Neubau für das Gymnasium",
            "Hausaufgaben und Lesen daheim", "Erzieherinnen der Kindergärten",
        ],
        "fr": [
            "Inscription au cours préparatoire", "Dates des épreuves du baccalauréat", "Nouveau bâtiment pour le lycée",
            "Devoirs et lecture à la maison", "Personnel des écoles maternelles",
        ],
        "cs": [
            "Zápis do první třídy", "Termíny maturitních zkoušek", "Nová budova gymnázia", "Domácí úkoly a čtení doma",
            "Zaměstnanci mateřských škol",
        ],
    },
    "trains, buses and roads": {
        "en": [
            "Timetable of the regional railway", "Tram line closed for repairs", "Traffic on the motorway",
            "Tickets for commuters", "Cycle lanes in the centre",
        ],
        "de": [
            "Fahrplan der Regionalbahn", "Straßenbahnlinie wegen Bauarbeiten gesperrt", "Verkehr auf der Autobahn",
            "Fahrkarten für Pendler", "Radwege im Zentrum",
        ],
        "fr": [
            "Horaires du train régional", "Ligne de tramway fermée pour travaux", "Circulation sur l'autoroute",
            "Billets pour les navetteurs", "Pistes cyclables au centre-ville",
        ],
        "cs": [
            "Jízdní řád regionální dráhy", "Tramvajová linka uzavřena kvůli opravám", "Provoz na dálnici",
            "Jízdenky pro dojíždějící", "Cyklostezky v centru",
        ],
    },
}  # fmt: skip
LANGUAGES = ("en", "de", "fr", "cs")
_ARTICLES = 200  # whose time is measured
_LINKS = 100  # titles at once, as many as a page has links


class Areas(NamedTuple):
    """Areas under the curve over the subjects of Wikispeedia."""

    articles: float
    worst_articles: float
    titles: float
    worst_titles: float


class Row(NamedTuple):
    """What was measured of a source."""

    name: str
    sentence: Areas | None
    word: Areas | None
    languages: tuple[float, ...]
    microseconds: tuple[float, float | None]  # a title, an article
    megabytes: float
    seconds: float


def cosines(embedding: Embedding, sentence: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosines of a sentence and texts, 0 for texts without a known word, shape (n,)."""
    first = embedding.embed([sentence])[0]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(first)
    return np.asarray(rows @ first / np.where(lengths > 0, lengths, 1))


def of_subjects(embedding: Embedding, path: Path) -> tuple[Areas, Areas]:
    """Return the areas for all subjects, by their sentences and by their names."""
    web = read_web(path)
    articles = embedding.embed([f"{title}\n{text}" for title, text in zip(web.titles, web.texts, strict=True)])
    titles = embedding.embed(web.titles)
    found = []
    for form in (0, 1):
        areas = []
        for subject, forms in SENTENCES.items():
            labels = web.labels(subject)
            areas.append([roc_auc_score(labels, cosines(embedding, forms[form], rows)) for rows in (articles, titles)])
        (articles_mean, titles_mean), (articles_worst, titles_worst) = np.mean(areas, axis=0), np.min(areas, axis=0)
        found.append(Areas(*map(float, (articles_mean, articles_worst, titles_mean, titles_worst))))
    return found[0], found[1]


def of_languages(embedding: Embedding) -> tuple[float, ...]:
    """Return the mean area of the subjects for each language."""
    means = []
    for language in LANGUAGES:
        subjects = np.repeat(np.arange(len(TITLES)), [len(titles[language]) for titles in TITLES.values()])
        rows = embedding.embed([title for titles in TITLES.values() for title in titles[language]])
        areas = [roc_auc_score(subjects == i, cosines(embedding, sentence, rows)) for i, sentence in enumerate(TITLES)]
        means.append(float(np.mean(areas)))
    return tuple(means)


def microseconds(embedding: Embedding, texts: Sequence[str], at_once: int) -> float:
    """Return the CPU time of a text."""
    started = time.process_time()
    for start in range(0, len(texts), at_once):
        embedding.embed(texts[start : start + at_once])
    return (time.process_time() - started) / len(texts) * 1e6


def resident() -> float:
    """Return the resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def measure(name: str, source: str, path: Path | None) -> Row:
    """Measure a source in this process, which has loaded none before."""
    before, started = resident(), time.process_time()
    embedding = load_embedding(source)
    seconds = time.process_time() - started
    languages = of_languages(embedding)
    megabytes = resident() - before
    if path is None:
        titles = [title for each in TITLES.values() for of_language in each.values() for title in of_language]
        return Row(name, None, None, languages, (microseconds(embedding, titles, _LINKS), None), megabytes, seconds)
    web = read_web(path)
    times = (microseconds(embedding, web.titles, _LINKS), microseconds(embedding, web.texts[:_ARTICLES], 1))
    sentence, word = of_subjects(embedding, path)
    return Row(name, sentence, word, languages, times, megabytes, seconds)


def lines(rows: Sequence[Row]) -> list[str]:
    """Return two tables in Markdown."""
    found = [
        "| table | articles | worst | titles | worst | articles, by name | titles, by name |",
        "|---" + "|--:" * 6 + "|",
    ]
    for row in rows:
        if row.sentence and row.word:
            cells = [*row.sentence, row.word.articles, row.word.titles]
            found.append(f"| {row.name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    found += ["", "| table | " + " | ".join(LANGUAGES) + " | µs a title | µs an article | MB | s to load |"]
    found.append("|---" + "|--:" * (len(LANGUAGES) + 4) + "|")
    for row in rows:
        areas = " | ".join(f"{area:.3f}" for area in row.languages)
        title, article = ("" if time is None else f"{time:,.0f}" for time in row.microseconds)
        costs = f"{title} | {article} | {row.megabytes:,.0f} | {row.seconds:.1f}"
        found.append(f"| {row.name} | {areas} | {costs} |")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="NAME=SOURCE")
    parser.add_argument(
        "--wikispeedia", type=Path, help="the archive or its folder; without it, titles of languages only"
    )
    given = parser.parse_args(arguments)
    rows = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for each in given.sources:
            name, _, source = each.partition("=")
            rows.append(pool.submit(measure, name, source, given.wikispeedia).result())
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
