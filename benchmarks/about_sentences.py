"""What a user might ask for: three wordings and ten keywords for each subject of Wikispeedia that is crawled.

They were written from the names of the subjects, before any crawl with them and without a look at the articles or
their titles. They stay as they are: a wording that does badly is a result.
"""

from __future__ import annotations

from typing import NamedTuple


class Wordings(NamedTuple):
    """Three ways to ask for a subject, and keywords to add to any of them."""

    word: str  # a single word
    plain: str  # a short request
    rich: str  # 5 to 12 words that list what belongs to it
    keywords: tuple[str, ...]


WORDINGS = {
    "subject.Science": Wordings(
        "science",
        "pages about science",
        "physics, chemistry, biology, astronomy, medicine and the laws of nature",
        ("physics", "chemistry", "biology", "astronomy", "medicine", "scientist", "experiment", "theory", "energy", "cell"),
    ),
    "subject.Geography": Wordings(
        "geography",
        "pages about the geography of the world",
        "countries, cities, rivers, mountains, islands, climates and continents of the world",
        ("country", "city", "river", "mountain", "island", "population", "capital", "border", "region", "coast"),
    ),
    "subject.Science.Biology": Wordings(
        "biology",
        "pages about living things",
        "animals, plants, fungi and bacteria, how they live and evolve",
        ("animal", "plant", "species", "mammal", "bird", "insect", "fish", "habitat", "genus", "evolution"),
    ),
    "subject.People": Wordings(
        "people",
        "pages about famous people",
        "lives of rulers, scientists, artists, writers, explorers and other famous people",
        ("born", "died", "biography", "king", "queen", "president", "writer", "artist", "scientist", "explorer"),
    ),
    "subject.History": Wordings(
        "history",
        "pages about the history of the world",
        "wars, empires, kings, revolutions, ancient peoples and other events of the past",
        ("war", "battle", "empire", "revolution", "ancient", "medieval", "dynasty", "treaty", "century", "archaeology"),
    ),
    "subject.Everyday_life": Wordings(
        "lifestyle",
        "pages about everyday life",
        "food, drink, clothes, sports, games, hobbies and what people do at home",
        ("food", "drink", "cooking", "clothing", "sport", "game", "film", "television", "hobby", "holiday"),
    ),
    "subject.Design_and_Technology": Wordings(
        "technology",
        "pages about design and technology",
        "machines, engines, vehicles, buildings, tools, engineering and how things are designed",
        ("machine", "engine", "vehicle", "aircraft", "railway", "bridge", "tool", "engineering", "invention", "design"),
    ),
    "subject.Language_and_literature": Wordings(
        "literature",
        "pages about language and literature",
        "languages, alphabets and grammar, novels, poems, plays and those who wrote them",
        ("language", "alphabet", "grammar", "dialect", "novel", "poem", "poet", "writer", "book", "play"),
    ),
    "Space=subject.Science.Physics.Space_Astronomy+subject.Science.Physics.Space_transport": Wordings(
        "space",
        "pages about space and astronomy",
        "planets, moons, stars, galaxies, rockets, spacecraft and astronauts",
        ("planet", "moon", "star", "galaxy", "comet", "orbit", "telescope", "rocket", "spacecraft", "astronaut"),
    ),
    "Music=subject.Music+subject.People.Performers_and_composers": Wordings(
        "music",
        "pages about music and musicians",
        "composers, bands, singers, songs, instruments, operas and kinds of music",
        ("music", "song", "singer", "band", "album", "composer", "opera", "instrument", "orchestra", "symphony"),
    ),
    "subject.Religion": Wordings(
        "religion",
        "pages about world religions",
        "gods, churches, faiths, prophets, scriptures, saints and religious festivals",
        ("religion", "god", "church", "faith", "prophet", "scripture", "saint", "temple", "worship", "theology"),
    ),
    "Computing=subject.IT+subject.Mathematics": Wordings(
        "computing",
        "pages about computers and mathematics",
        "algebra, geometry, numbers, proofs, computers, software, programming and the internet",
        ("computer", "software", "programming", "internet", "algorithm", "mathematics", "geometry", "algebra", "number", "theorem"),
    ),
    "Weather=subject.Geography.Natural_Disasters+subject.Geography.Storms"
    "+subject.Geography.Climate_and_the_Weather": Wordings(
        "weather",
        "pages about weather and natural disasters",
        "storms, hurricanes, floods, earthquakes, volcanoes, droughts and the climate",
        ("weather", "climate", "storm", "hurricane", "flood", "earthquake", "volcano", "drought", "rain", "temperature"),
    ),
}  # fmt: skip
