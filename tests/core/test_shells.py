"""Which pages seem to be filled by scripts, so that they may show more in a browser."""

from __future__ import annotations

import pytest

from scrapy_focus.web.html import parsed
from scrapy_focus.web.scripts import has_scripts
from scrapy_focus.web.shells import is_shell

MENU = '<nav><a href="/">Home</a> <a href="/news">News</a> <a href="/about">About</a></nav>'
APP = '<script src="/static/app.4f2a.js"></script>'
JQUERY = '<script src="/js/jquery-3.7.1.min.js"></script><script src="/js/bootstrap.bundle.js"></script>'
PIXEL = (
    "<script>window.dataLayer = []; function gtag() { dataLayer.push(arguments) } gtag('config', 'G-1')</script>"
    "<noscript><iframe src='https://www.googletagmanager.com/ns.html' height=0 width=0></iframe>"
    "<img src='https://stats.example/pixel.gif'></noscript>"
)
FETCH = "<script>fetch('/api/files').then(r => r.json()).then(d => show(document.getElementById('out'), d))</script>"
TEXT = "<p>The office is closed on public holidays. Letters are answered within four weeks.</p>"
ASKS = "<noscript>You need to enable JavaScript to run this app.</noscript>"

SHELLS = {
    "a list that a script fills": f"{MENU}<div id=list></div><button id=next>Next</button>{APP}",
    "an app": f'{ASKS}<div id="root"></div>{APP}',
    "an app that says wait": f'<div id="app"><p class="spinner">Loading ...</p><img src="/load.gif"></div>{APP}',
    "an app of modules": '<app-root></app-root><script src="main.js" type="module"></script>',
    "an app within a frame of links": f'{MENU}<div class="page-content"></div>{APP}<footer><a href="/i">I</a></footer>',
    "an empty main part": f"{MENU}<main><h1>Reports</h1></main>{APP}",
    "an empty main part by its role": f'{MENU}<div role="main"><h1>Reports</h1></div>{APP}',
    "a heading above an empty list": f'{MENU}{TEXT}<ul class="documentList"></ul>{APP}',
    "an empty table": f"{MENU}<h1>Reports</h1><table id=results><tbody></tbody></table>{APP}",
    "a script that fetches into an element": f"{MENU}{TEXT}<div id='out'></div>{FETCH}",
    "a wish for JavaScript": f"{MENU}<h1>Reports</h1><noscript>Bitte aktivieren Sie JavaScript.</noscript>{PIXEL}",
    "nothing but a script": "<script>location.replace('/en/')</script>",
    "a button that loads more": f"{MENU}{'<p><a href=/r>Report</a></p>' * 20}<button>Load more</button>{APP}",
}
WHOLE = {
    "a blog": f"{MENU}<main><article><h2><a href='/a'>A</a></h2>{TEXT * 15}</article></main>{JQUERY}{PIXEL}",
    "a list": f"{MENU}<ul>{'<li><a href=/r.pdf>Report</a>' * 30}</ul>{APP}<div id=search-results></div>",
    "a list beside an empty one": f"{MENU}<ul>{'<li><a href=/r.pdf>Report</a>' * 5}</ul><ul class=list></ul>{APP}",
    "a contact": f"{MENU}<h1>Contact</h1>{TEXT}<div id=map></div><div class=g-recaptcha></div>{APP}{PIXEL}",
    "a word of thanks": f"{MENU}<main><p>Thank you for your message. We will write to you soon.</p></main>{APP}",
    "pixels": f"{MENU}<h1>Imprint</h1>{TEXT}{PIXEL}",
    "comments": f"<h1>Post</h1>{TEXT}<div id=disqus_thread></div><noscript>Please enable JavaScript to view the "
    f"comments powered by Disqus.</noscript>{APP}",
    "an image": f"{MENU}<main><img src=/photo.jpg alt=Photo></main>{APP}",
    "a film": f"{MENU}<main><iframe src=https://video.example/1></iframe></main>{APP}",
    "frames": "<frameset><frame src=/left><frame src=/right></frameset><script>x()</script>",
    "a form": f"<form action=/login><input name=user><input type=password name=pw></form>{APP}",
    "an asking page that is whole": f"{MENU}{TEXT * 5}<noscript>Please enable JavaScript.</noscript>{APP}",
    "a menu for small screens": f"{MENU}<div id=mobile-menu></div><div class=overlay></div><p>Open on Monday.</p>{JQUERY}",
    "helpers": f"<div id=fb-root></div><div id=cookie-banner></div><div class=clear></div>{TEXT}{APP}",
    "a library that fills": f"{MENU}<main><h1>Reports</h1></main>{JQUERY}",
    "a guarded page": f"{MENU}<p>Hello.</p><div id=out></div><script>fetch('/cdn-cgi/x'); 'out'</script>",
    "a carousel": f"{MENU}<main>{TEXT * 2}<button>Next</button><button>Previous</button></main>{JQUERY}",
    "a text that folds": f"{MENU}<main>{TEXT * 30}<button>Show more</button></main>{APP}",
    "more comments": f"{TEXT * 30}<div class=comments><button>Load more</button></div>{APP}",
    "a book": f"<div id=sidebar></div><main>{TEXT * 2}<a href=/2>Next</a></main><script src=searcher.js></script>",
}


@pytest.mark.parametrize("name", SHELLS)
def test_pages_that_scripts_fill(name: str) -> None:
    """What a reader comes for is not there, and something says that it is to come."""
    html = f"<html><head><title>x</title></head><body>{SHELLS[name]}</body></html>"
    assert has_scripts(html)
    root = parsed(html)
    assert root is not None
    assert is_shell(root, "http://a.test/")


@pytest.mark.parametrize("name", WHOLE)
def test_ordinary_pages_are_whole(name: str) -> None:
    """Scripts that count, guard, adorn or discuss a page make no shell of it, nor do short pages."""
    html = f"<html><head><title>x</title></head><body>{WHOLE[name]}</body></html>"
    assert has_scripts(html)
    root = parsed(html)
    assert root is not None
    assert not is_shell(root, "http://a.test/")


def test_scripts_of_other_sites_are_no_sign() -> None:
    """An empty main part beside nothing but a script from elsewhere stays what it is."""
    html = f"{MENU}<main></main><script src='https://cdn.example/x.js'></script>"
    root = parsed(html)
    assert root is not None
    assert not is_shell(root, "http://a.test/")
    assert is_shell(root, "https://cdn.example/")
