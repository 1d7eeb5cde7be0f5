"""The vocabulary of the synthetic portal in its three languages (internal)."""

from __future__ import annotations

import unicodedata
from typing import Final

LANGUAGES: Final = ("en", "fr", "de")
PREFIXES: Final = ("", "/fr", "/de")
LANGUAGE_NAMES: Final = ("English", "Français", "Deutsch")

NOUNS: Final = tuple(
    tuple(line.split())
    for line in (
        "growth labour census trade prices housing energy health school income region survey monthly annual quarterly "
        "index output wages budget tourism transport climate water migration crime births farming fishing retail "
        "exports forestry savings",
        "croissance emploi recensement commerce prix logement énergie santé école revenu région enquête mensuel annuel "
        "trimestriel indice production salaires finances tourisme transports climat eau migrations criminalité "
        "naissances agriculture pêche détail exportations forêts épargne",
        "Wachstum Arbeit Zensus Handel Preise Wohnen Energie Gesundheit Schule Einkommen Region Umfrage monatlich "
        "jährlich vierteljährlich Index Produktion Löhne Haushalt Tourismus Verkehr Klima Wasser Migration "
        "Kriminalität Geburten Landwirtschaft Fischerei Einzelhandel Exporte Forst Sparen",
    )
)

SENTENCES: Final = (
    (
        "The {a} figures rose by {n} percent on the previous quarter, while {b} remained stable.",
        "According to the {a} division, {b} fell for the {n}th month in a row.",
        "Respondents to the {a} questionnaire reported lower {b} in {n} municipalities.",
        "The minister for {a} welcomed {n} guests to the conference on {b}.",
        "Revised weights for {a} have changed the level of {b} by {n} points.",
        "Detailed results on {a} and {b} will be released in {n} weeks.",
        "A new method for measuring {a} was tested with {n} households and compared with {b}.",
        "Regional differences in {a} were larger than those in {b}, as in {n} earlier rounds.",
    ),
    (
        "Les chiffres {a} ont augmenté de {n} pour cent sur un trimestre, tandis que {b} restait stable.",
        "Selon la division {a}, la série {b} recule pour le {n}e mois consécutif.",
        "Les enquêtés du volet {a} signalent une baisse de la série {b} dans {n} communes.",
        "Le ministre a accueilli {n} invités à la conférence {a} et {b}.",
        "La révision des pondérations {a} modifie le niveau {b} de {n} points.",
        "Les résultats détaillés {a} et {b} paraîtront dans {n} semaines.",
        "Une nouvelle mesure {a} a été testée auprès de {n} ménages et comparée à {b}.",
        "Les écarts régionaux {a} dépassent ceux de {b}, comme lors de {n} vagues précédentes.",
    ),
    (
        "Die Zahlen zu {a} stiegen um {n} Prozent gegenüber dem Vorquartal, {b} blieb stabil.",
        "Nach Angaben der Abteilung {a} ging {b} im {n}. Monat in Folge zurück.",
        "Die Befragten im Bereich {a} meldeten weniger {b} in {n} Gemeinden.",
        "Der Minister begrüßte {n} Gäste auf der Tagung zu {a} und {b}.",
        "Neue Gewichte für {a} verändern das Niveau von {b} um {n} Punkte.",
        "Ausführliche Ergebnisse zu {a} und {b} erscheinen in {n} Wochen.",
        "Ein neues Verfahren für {a} wurde mit {n} Haushalten erprobt und mit {b} verglichen.",
        "Die regionalen Unterschiede bei {a} waren größer als bei {b}, wie in {n} früheren Runden.",
    ),
)

_TERMS: Final = """
home          Home                       Accueil                     Startseite
news          News                       Actualités                  Nachrichten
data          Data catalogue             Catalogue de données        Datenkatalog
publications  Publications               Publications                Veröffentlichungen
indicators    Indicators                 Indicateurs                 Indikatoren
topics        Topics                     Thèmes                      Themen
glossary      Glossary                   Glossaire                   Glossar
archive       Archive                    Archives                    Archiv
calendar      Release calendar           Calendrier                  Kalender
about         About us                   À propos                    Über uns
contact       Contact                    Contact                     Kontakt
legal         Legal notice               Mentions légales            Impressum
private       Staff area                 Espace réservé              Interner Bereich
more          Read more                  Lire la suite               Weiterlesen
see           View dataset               Voir les données            Datensatz ansehen
download      Download                   Télécharger                 Herunterladen
related       Related articles           Articles liés               Verwandte Artikel
latest        Latest news                Dernières actualités        Neueste Nachrichten
tags          Keywords                   Mots-clés                   Schlagwörter
resources     Files and resources        Fichiers et ressources      Dateien und Ressourcen
copy          Download (mirror)          Télécharger (miroir)        Herunterladen (Spiegel)
bulletin      Bulletin                   Bulletin                    Bulletin
first         « first                    « premier                   « erste
previous      previous                   précédent                   vorherige
next          next                       suivant                     nächste
last          last »                     dernier »                   letzte »
press         Press release (PDF)        Communiqué (PDF)            Pressemitteilung (PDF)
micro         Microdata (restricted)     Microdonnées (accès limité) Mikrodaten (beschränkt)
video         Watch the video            Voir la vidéo               Video ansehen
noevent       No release on this day.    Aucune publication ce jour. Keine Veröffentlichung.
missing       Page not found             Page introuvable            Seite nicht gefunden
permalink     Permalink                  Lien permanent              Permalink
search        Search                     Rechercher                  Suchen
period        Period                     Période                     Zeitraum
series        Old bulletins              Anciens bulletins           Alte Hefte
"""


def _columns() -> tuple[dict[str, str], ...]:
    rows = [(line[:14], line[14:41], line[41:69], line[69:]) for line in _TERMS.strip().splitlines()]
    return tuple({row[0].strip(): row[1 + e].strip() for row in rows} for e in range(len(LANGUAGES)))


def _ascii(word: str) -> str:
    folded = unicodedata.normalize("NFKD", word.lower().replace("ß", "ss"))
    return folded.encode("ascii", "ignore").decode()


TERMS: Final = _columns()
SLUGS: Final = tuple(tuple(_ascii(word) for word in words) for words in NOUNS)
N_NOUNS: Final = len(NOUNS[0])
