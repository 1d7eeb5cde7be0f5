"""The words of a made-up web: topics that share words with their neighbours, talk about nothing, and a second language.

Words come in *sources*: one for each topic, each group of related topics, each kind of junk, one for general words and
one for those without meaning. Within a source the first words are the frequent ones. The second language has a word for
each word of the first, and no word in common.
"""

from __future__ import annotations

import unicodedata
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Topics in groups of related ones; the first words of each are what people would search for.
_TOPICS: Final = {
    "beekeeping": """bees honey hive beekeeper colony queen apiary swarm nectar wax brood frame drone pollen smoker comb
        varroa foraging worker propolis superbox requeen stings veil extractor mead skep royal overwintering mites""",
    "gardening": """garden plants flowers lawn roses mulch border perennials weeds pruning shrubs lavender bulbs trowel
        hedge bloom petals annuals hose raised greenhouse landscaping foliage patio terrace sunflower daffodil ivy moss""",
    "orchards": """orchard apples pears cherry grafting rootstock plums cider fruit scab blossom cultivar espalier peach
        windfall pomology picking thinning crate quince apricot canker codling pips press perry medlar dwarfing damson""",
    "herbs": """herbs basil thyme rosemary sage mint oregano parsley tea infusion chives dill tarragon fennel coriander
        tincture aroma drying balm remedies marjoram lovage essential sorrel chamomile salve potpourri bouquet nettle""",
    "astronomy": """astronomy stars galaxy nebula telescope planet observatory comet constellation supernova cosmic
        eclipse asteroid redshift parallax quasar magnitude starlight dwarf pulsar jupiter saturn milky equinox zodiacal
        transit perihelion spectra ephemeris""",
    "optics": """optics lens mirror light prism refraction laser focal aperture beam diffraction wavelength photon
        polarised interferometer coating collimation eyepiece microscope glass fibre aberration detector achromat
        holography reflector binoculars etalon objective""",
    "weather": """weather rain storm forecast clouds wind temperature barometer humidity thunder snow front pressure
        hurricane frost drizzle radar cyclone sunshine hail fog gale climate drought lightning isobar rainfall heatwave
        meteorologist""",
    "spaceflight": """rocket orbit launch spacecraft astronaut satellite capsule lander payload booster mission
        spacesuit docking module reentry propellant thruster shuttle rover cosmonaut countdown trajectory lunar probe
        airlock telemetry gantry fairing spaceport""",
    "sailing": """sailing yacht sail regatta mast keel helm rigging spinnaker skipper jib mainsail tack hull crew mooring
        dinghy halyard catamaran boom gybe windward anchor winch sloop ketch leeward bowsprit genoa""",
    "fishing": """fishing angler trout bait salmon lure reel carp casting tackle hook perch pike rod fly catfish spawning
        waders trawl bass netting roach tench float grayling ledger spinner creel landing""",
    "rowing": """rowing oars scull boathouse coxswain eights stroke blade rower crews regatta cadence ergometer slide
        stern bow catch sweep rigger outrigger shell coach sprint lane heats quads pairs umpire feather""",
    "diving": """diving scuba reef diver regulator snorkel wreck coral fins underwater mask decompression tank nitrox
        wetsuit buoyancy depth buddy cave seabed manatee ascent rebreather currents drysuit nitrogen turtle atoll
        visibility""",
}  # fmt: skip
_GROUPS: Final = (
    """soil seeds harvest spring leaves summer roots growing season plant pests water bloom compost nature fresh ripe
    organic nursery field allotment shade variety planting insects meadow""",
    """sky moon sun observation instrument atmosphere night image science horizon solar measure infrared altitude
    ultraviolet darkness physics resolution spectrum research sensor earth clear mount""",
    """boat water river lake coast harbour sea waves tide club shore depth current island pier rope safety vessel
    captain bay quay swim waterproof marina trip ocean""",
)
_JUNK: Final = (
    """sale discount cheap buy price offer shipping coupon deals shop order cart bargain voucher brand checkout refund
    store bonus exclusive""",
    """celebrity gossip star scandal red carpet fashion style drama actor divorce rumour dress awards interview album
    tour singer premiere glamour""",
    """insurance loan credit mortgage invest bank rates broker savings debt trading funds market shares profit pension
    currency bonds lender premium""",
    """game casino bet bonus slots player win poker jackpot level console download cheats guild arcade tournament
    esports joystick quest loot""",
)
_GENERAL: Final = """time people year work day part place group world life way system number company state case week
    program question point home room area story month right study book business issue side kind head house service
    friend power hour line member city community name president team minute idea body back parent face level office
    door health person art history party result change morning reason girl guy moment air teacher force education foot
    boy age policy process music market sense nation plan college interest experience death effect use class control
    care rate role view project event report list guide photo video page news letter answer help member school visit
    local open young small large early recent simple special public final common new old good great best first last
    important different possible available popular free full easy"""
_FUNCTION: Final = """the of and a to in is that it for was on are with as they be at this have from or had by not but
    what all were when we there can an your which their if will each about how up out them then she many some so these
    would into has more her two like him see could no than been its who now my made over did down only way may most"""
_TERMS: Final = """Home|About us|Contact|Privacy|Log in|read more|here|continue|Next page|Previous page|Partners|Latest
    |Calendar|Directory|page not found|more information|link|website"""

LANGUAGES: Final = ("en", "qx")  # the second is a code for private use
TOPICS: Final = tuple(_TOPICS)
N_TOPICS: Final = len(TOPICS)
FUNCTION, GENERAL, FIRST_TOPIC = 0, 1, 2  # numbers of sources
FIRST_GROUP: Final = FIRST_TOPIC + N_TOPICS
FIRST_JUNK: Final = FIRST_GROUP + len(_GROUPS)
N_JUNK: Final = len(_JUNK)
_PER_GROUP: Final = N_TOPICS // len(_GROUPS)
_SYLLABLES: Final = tuple(c + v for c in "bdfgklmnprstvwz" for v in "aeiou")
_TO_SECOND: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "oväruzmhégtšplákstnbåfwxyž")
_ENDINGS: Final = ("a", "en", "ir", "", "um", "o", "ek", "is")


def neighbour(topic: int, k: int) -> int:
    """Return the `k`-th topic of the group of a topic, itself not counted; `k` from 0."""
    first = topic - topic % _PER_GROUP
    return first + (topic - first + 1 + k % (_PER_GROUP - 1)) % _PER_GROUP


NEIGHBOURS: Final = np.array([[neighbour(t, k) for k in range(_PER_GROUP - 1)] for t in range(N_TOPICS)], np.int64)
GROUP_SOURCE: Final = np.array([FIRST_GROUP + t // _PER_GROUP for t in range(N_TOPICS)], np.int64)


def _coined(name: str, n: int) -> list[str]:
    """Return `n` words that no dictionary has: names, brands, species, as each field has them by the hundred."""
    words = []
    for k in range(n):
        x = zlib.crc32(f"{name}/{k}".encode())
        m = len(_SYLLABLES)
        words.append("".join(_SYLLABLES[x // m**j % m] for j in range(2 + x % 2)) + ("", "n", "s", "r", "x")[x % 5])
    return words


def translated(word: str) -> str:
    """Return a word in the second language."""
    return word.translate(_TO_SECOND) + _ENDINGS[zlib.crc32(word.encode()) % len(_ENDINGS)]


def _ascii(word: str) -> str:
    return unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()


def _sources() -> list[list[str]]:
    listed = [_FUNCTION, _GENERAL, *_TOPICS.values(), *_GROUPS, *_JUNK]
    coined = [0, 500, *[90] * N_TOPICS, *[30] * len(_GROUPS), *[60] * N_JUNK]
    return [words.split() + _coined(f"source {k}", n) for k, (words, n) in enumerate(zip(listed, coined, strict=True))]


_SOURCES: Final = _sources()
#: Where the words of each source begin in `WORDS`, and how many there are, shape (n_sources,).
SIZES: Final = np.array([len(words) for words in _SOURCES], np.int64)
STARTS: Final = np.cumsum(SIZES) - SIZES
_FIRST: Final = [word for words in _SOURCES for word in words]
#: All words of each language, and the same as they are spelled in addresses.
WORDS: Final = (_FIRST, [translated(word) for word in _FIRST])
SLUGS: Final = tuple([_ascii(word) for word in words] for words in WORDS)
_ENGLISH: Final = [term.strip() for term in _TERMS.split("|")]
TERMS: Final = (_ENGLISH, [" ".join(map(translated, term.lower().split())).capitalize() for term in _ENGLISH])
HOME, ABOUT, CONTACT, PRIVACY, LOG_IN, MORE, HERE, ON, NEXT, BACK, PARTNERS, LATEST, CALENDAR, DIRECTORY, MISSING = (
    range(15)
)
GENERIC: Final = (MORE, HERE, ON, 15, 16, 17)  # anchors that say nothing


def keywords(topic: int, n: int, language: int = 0) -> list[str]:
    """Return the `n` words of a topic that are most frequent."""
    return WORDS[language][STARTS[FIRST_TOPIC + topic] :][:n]


def keyword(topic: int, k: int, spelled: Sequence[str]) -> str:
    """Return the `k`-th word of a topic, of those of `WORDS` or `SLUGS` in a language."""
    return spelled[int(STARTS[FIRST_TOPIC + topic]) + k]
