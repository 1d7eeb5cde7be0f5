"""Tells which links are poor: to log in, share, reply or print, and those of a kind that led only to errors.

Pages of many sites have links that lead to no content: a login that returns here, a reply to each comment, a page for
the printer. Each is another URL, so a crawl may spend a third of its requests on them before a policy knows their
value. A wrong guess may cost a page. So only whole words of the path, parameters of widespread software and whole
anchors count, and never a URL with the extension of a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from scrapy_focus.web.patterns import made_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.core.types import Outcome

#: The anchor of a request that a spider wants to be fetched when nothing else is left.
REST = "(the rest)"

_ERRORS = 3  # in a row, and nothing else, after which a kind of link is poor
_KINDS = 1024  # that are remembered
_LONGEST = 500  # characters of a URL that are read
_LONGEST_ANCHOR = 80
_MAY_PASS = frozenset((401, 403, 405, 408, 423, 425, 429))  # what a site may answer temporarily, or to any HEAD

_PAGE = r"(?:\.(?:x?html?|shtml|php\d?|aspx?|jsp|do|cgi|pl|cfm|action))?/?"
_PATH = re.compile(
    r".*/(?:(?:wp|user)?[-_]?log[-_]?(?:in|out|on|off)|sign[-_]?(?:in|out|up|off)|comment/reply/.*"
    r"|(?:lost|forgot|forgotten|reset)[-_]?(?:your-)?password|password[-_](?:reset|forgot|forgotten|recovery)"
    r"|(?:users?|accounts?|members?|auth|customers?)/(?:register|registration|create|new|join|password/new)"
    r"|add[-_]?to[-_]?(?:cart|basket|bag|wishlist|compare)|(?:shopping[-_]?)?cart|checkout|wishlist"
    r"|sharer|share[-_]?article|mailto|(?:e?mail|tell|send)[-_](?:to[-_])?(?:a[-_])?friend"
    r"|print(?:er)?[-_]?friendly|printable|print[-_]?(?:version|page|view)|reply[-_]?to|new[-_]?reply"
    r"|anmelden|abmelden|einloggen|ausloggen|passwort-vergessen|warenkorb|merkzettel|se-connecter|d[eé]connexion"
    r"|connexion|mot-de-passe-oubli[eé]|panier|iniciar-?sesion|cerrar-?sesion|carrito|carrello|carrinho|inloggen"
    r"|uitloggen|winkelwagen|logga-in|logga-ut|zaloguj|wyloguj|logowanie|koszyk|prihlaseni|odhlaseni)" + _PAGE
)
_QUERY = re.compile(
    r"(?:.*&)?(?:(?:replytocom|add-to-cart|add_to_(?:cart|wishlist|compare))=[^&]*"
    r"|share=(?:jetpack-)?(?:facebook|twitter|x|linkedin|pinterest|reddit|tumblr|telegram|pocket|email|whatsapp|print"
    r"|mastodon|threads|bluesky)"
    r"|print(?:able)?=(?:1|true|yes|print)|(?:outlook-)?ical=1|veaction=edit|option=com_mailto|task=user\.log(?:in|out)"
    r"|action=(?:edit|login|logout|register|lostpassword|rp|reply|print|printpage)"
    r"|do=(?:login|logout|register|newreply)|mode=(?:login|logout|register|reply|quote|sendpassword)"
    r"|title=special:(?:userlogin|userlogout|createaccount))(?:&.*)?"
)
_FILE = re.compile(r"(?:.*&)?(?:format|download|file|filename|export|attachment)=.*")
_SHARED_BY = re.compile(
    r"(?:www\.|m\.|web\.|api\.)?(?:facebook\.com/(?:sharer|share|dialog)|(?:twitter|x)\.com/(?:intent|share)"
    r"|linkedin\.com/(?:sharearticle|sharing|cws/share)|pinterest\.[a-z.]+/pin/create|reddit\.com/submit"
    r"|(?:t|telegram)\.me/share|whatsapp\.com/send|tumblr\.com/(?:share|widgets/share)|getpocket\.com/(?:save|edit)"
    r"|xing\.com/spi/shares|vk\.com/share|news\.ycombinator\.com/submitlink|bsky\.app/intent|threads\.net/intent)"
    r".*"
)
_ANCHORS = frozenset(
    """
    log in|login|log on|sign in|signin|log out|logout|log off|sign out|sign up|signup|create account|create an account
    forgot password|forgot password?|forgot your password?|lost your password?|lost password?|reply|reply to this
    share this|share on facebook|share on twitter|share on x|share on linkedin|share by email|tweet|tweet this|print
    print this|print this page|printer friendly|printer-friendly version|print version|email this|email to a friend
    add to cart|add to basket|add to bag|add to wishlist|add to compare|shopping cart|checkout|my account|my cart
    anmelden|einloggen|abmelden|ausloggen|registrieren|konto erstellen|passwort vergessen|passwort vergessen?|antworten
    seite drucken|drucken|druckansicht|druckversion|warenkorb|in den warenkorb|merkzettel|weiterempfehlen
    se connecter|connexion|déconnexion|se déconnecter|s'inscrire|créer un compte|mot de passe oublié
    mot de passe oublié ?|répondre|partager|imprimer|panier|ajouter au panier
    iniciar sesión|cerrar sesión|registrarse|crear cuenta|responder|compartir|imprimir|añadir al carrito
    accedi|esci|registrati|rispondi|condividi|stampa|aggiungi al carrello
    iniciar sessão|terminar sessão|cadastre-se|compartilhar|partilhar|adicionar ao carrinho
    inloggen|aanmelden|uitloggen|beantwoorden|afdrukken|winkelwagen|logga in|logga ut|skriv ut|logg inn|log ind
    kirjaudu sisään|zaloguj się|zaloguj|wyloguj|zarejestruj się|odpowiedz|udostępnij|drukuj|koszyk|přihlásit se
    přihlásit|odhlásit|košík|bejelentkezés|giriş yap|войти|выйти|ответить|поделиться|распечатать|корзина
    登录|登入|登出|注册|回复|分享|打印|购物车|ログイン|ログアウト|新規登録|返信|印刷|로그인|로그아웃|회원가입|인쇄
    """.strip().replace("\n    ", "|").split("|")
)  # fmt: skip
_TO_REPLY = re.compile(r"(?:log ?in|sign in|log on|register) (?:to|or register) .+|(?:reply|antworten|respond) to .+")


def is_utility(url: str, anchor: str = "") -> bool:
    """Whether a link is one to log in, reply, share, print or buy, by its URL or its whole anchor.

    Examples
    --------
    >>> is_utility("http://a.test/wp-login.php?redirect_to=5"), is_utility("http://a.test/members", " Anmelden ")
    (True, True)
    >>> is_utility("http://a.test/2024/login-trends/"), is_utility("http://a.test/register", "Register of companies")
    (False, False)
    >>> is_utility("http://a.test/prices.csv", "Print")
    False
    """
    try:
        parts = urlsplit(url[:_LONGEST].lower())
        query = unquote(parts.query)
    except ValueError:
        return False
    if _FILE.fullmatch(query):
        return False
    if _PATH.fullmatch(parts.path) or _QUERY.fullmatch(query) or _SHARED_BY.fullmatch(parts.netloc + parts.path):
        return True
    if not anchor or len(anchor) > _LONGEST_ANCHOR or not _IS_PAGE.fullmatch(parts.path):
        return False
    said = " ".join(anchor.split()).strip(".:…»>→ ").lower()
    return said in _ANCHORS or bool(_TO_REPLY.fullmatch(said))


_IS_PAGE = re.compile(r"(?:.*/)?[^/.]*" + _PAGE)


class PoorLinks:
    """Tells which links are poor, and learns kinds of links that lead only to errors.

    A kind is a host, the first folder, the number of further ones, the extension and the names in the query. After
    three errors and nothing else it is poor, except for its 4th, 8th, 16th link and so on, so that a misjudged kind is
    discovered. A page without an error clears it. Temporary answers of a site (429, 503) are ignored.

    Examples
    --------
    >>> poor = PoorLinks()
    >>> poor.is_poor("http://a.test/login"), poor.is_poor("http://a.test/news")
    (True, False)
    """

    def __init__(self) -> None:
        self._errors: dict[str, int] = {}  # by kind, the most recent one last; -1: it led to a page
        self._tried: dict[str, int] = {}  # links of poor kinds about to be fetched

    def is_poor(self, url: str, anchor: str = "") -> bool:
        """Whether a link is poor by its URL or anchor, or because a spider gave it the anchor :data:`REST`."""
        return anchor == REST or is_utility(url, anchor)

    def is_barren(self, url: str) -> bool:
        """Whether a link about to be fetched is of a kind that leads only to errors; each 2^n-th one is not."""
        if not self._tried:
            return False
        kind = _kind(url)
        if kind not in self._tried:
            return False
        self._tried[kind] = n = self._tried[kind] + 1
        return n < 4 or n & (n - 1) != 0

    def learn(self, outcome: Outcome) -> None:
        """Learn from the outcome of a pick."""
        status = outcome.status
        if outcome.error and (status is None or not 400 <= status < 500 or status in _MAY_PASS):
            return
        kind = _kind(outcome.pick.url)
        errors = self._errors.pop(kind, 0)
        self._errors[kind] = errors = -1 if errors < 0 or not outcome.error else errors + 1
        if errors < 0:
            self._tried.pop(kind, None)
        elif errors == _ERRORS:
            self._tried[kind] = 0
        if len(self._errors) > _KINDS:
            oldest = next(iter(self._errors))
            del self._errors[oldest]
            self._tried.pop(oldest, None)

    def state(self) -> dict[str, Any]:
        """Return the learned state as plain values."""
        return {"errors": dict(self._errors), "tried": dict(self._tried)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an earlier run."""
        self._errors = dict(state.get("errors", {}))
        self._tried = dict(state.get("tried", {}))


def _kind(url: str) -> str:
    try:
        host = urlsplit(url).netloc
    except ValueError:
        host = ""
    return host + made_place(url, "")
