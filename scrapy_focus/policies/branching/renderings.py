"""Which pages a browser should look at: what renderings brought, by template.

Pages of one template are alike: they need a browser all, or none does. Whether they do is seen by comparison. The plain
page was fetched, and its links are known, so what its rendering reveals is what only a browser sees. Signs, such as an
empty page, say at most where to begin: full frames may stand around an empty list, and small pages may be whole.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

TRIES = 3  # renderings of a template that may bring nothing, before it is left
AGAIN = 50  # plain pages of a template that was left, of which one is rendered
SURE = 2  # renderings that paid, after which pages without links of their own are rendered at once
_MOST = 4096  # templates


class Rendered(NamedTuple):
    """What is known of the pages of a template."""

    plain: int = 0  # that were fetched, and have scripts
    shells: int = 0  # of these, those that revealed no link
    tried: int = 0  # renderings
    paid: int = 0  # of these, those that revealed a link
    since: int = 0  # plain pages since it was left, or looked at again

    @property
    def is_left(self) -> bool:
        """Whether renderings bring nothing."""
        return self.tried >= TRIES and not self.paid

    @property
    def is_direct(self) -> bool:
        """Whether its pages may be rendered at once, as plain ones bring nothing."""
        return self.paid >= SURE and self.shells == self.plain


class Templates:
    """Remembers for each template what plain pages and renderings revealed.

    Notes
    -----
    *Memory*: five numbers for each of 4,096 templates; the one that was looked at longest ago is forgotten.

    Examples
    --------
    Three renderings bring nothing, so the template is left.

    >>> templates = Templates()
    >>> for page in range(3):
    ...     templates.fetched("/news/#", new=4)
    ...     if templates.wants("/news/#"):
    ...         templates.rendered("/news/#", new=0)
    >>> templates.wants("/news/#")
    False
    """

    def __init__(self) -> None:
        self.seen: OrderedDict[str, Rendered] = OrderedDict()

    def fetched(self, template: str, new: int) -> None:
        """A plain page with scripts came, and revealed so many new links."""
        known = self._of(template)
        since = known.since + 1 if known.is_left else 0
        self._put(template, known._replace(plain=known.plain + 1, shells=known.shells + (not new), since=since))

    def rendered(self, template: str, new: int) -> None:
        """A page was rendered, and revealed so many links that its plain page had not."""
        known = self._of(template)
        self._put(template, known._replace(tried=known.tried + 1, paid=known.paid + (new > 0), since=0))

    def wants(self, template: str) -> bool:
        """Whether a plain page that came just now should wait to be rendered."""
        known = self._of(template)
        return not known.is_left or known.since >= AGAIN

    def is_direct(self, template: str) -> bool:
        """Whether a new link should wait to be rendered, without being fetched before."""
        return self._of(template).is_direct

    def _of(self, template: str) -> Rendered:
        return self.seen.get(template, Rendered())

    def _put(self, template: str, known: Rendered) -> None:
        self.seen[template] = known
        self.seen.move_to_end(template)
        if len(self.seen) > _MOST:
            self.seen.popitem(last=False)
