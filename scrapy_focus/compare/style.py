"""How the page of a comparison looks: on a screen of any width, light or dark, and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d1d9e0;
  --grid: #d8dce1; --best: #dff3e4; --warn: #fff4d6; --warn-line: #c69026; --link: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --paper: #101418; --card: #181d23;
  --line: #333b44; --grid: #333b44; --best: #153d24; --warn: #3a2f10; --warn-line: #c69026; --link: #7ab7ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
header, main, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.2rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.08rem; margin: 1.8rem 0 .5rem; overflow-wrap: anywhere; }
p, li, dd { max-width: 46rem; overflow-wrap: anywhere; }
a { color: var(--link); }
.soft, figcaption, footer { color: var(--soft); font-size: .9rem; }
.result ul, .warning ul { padding-left: 1.1rem; } .result { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .3rem 1.2rem; }
.result li { margin: .45rem 0; }
.warning { background: var(--warn); border-left: 4px solid var(--warn-line); border-radius: .25rem;
  padding: .1rem 1.1rem; margin: 1.2rem 0; }
.scroll { overflow-x: auto; margin: 0 0 1.2rem; } p.caption { margin: .8rem 0 .2rem; font-size: .9rem; color: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .36rem .8rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td.words, table[aria-labelledby=policies] th { text-align: left; }
td { white-space: nowrap; } td.long { white-space: normal; min-width: 7.5rem; } td.words { white-space: normal; min-width: 11rem; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody th { font-weight: 500; min-width: 8.5rem; max-width: 16rem; overflow-wrap: break-word; }
.best { background: var(--best); font-weight: 700; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
figure { margin: .6rem 0; } figure svg { width: 100%; height: auto; display: block; color: var(--ink); }
figure svg text { font-family: inherit !important; }
.wide { overflow-x: auto; } .wide svg { min-width: 34rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dl.facts dd { margin: 0; } dt { font-weight: 600; } dl.words dd { margin: 0 0 .6rem; }
details { margin: .5rem 0; } summary { cursor: pointer; padding: .25rem 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem .9rem; overflow-x: auto;
  font-size: .85rem; } pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; } code { overflow-wrap: anywhere; }
footer { margin-top: 3rem; padding-bottom: 2rem; }
@media (max-width: 30rem) { dl.facts { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: .4rem; } }
@media print { :root { --ink: #000; --paper: #fff; --card: #fff; --line: #bbb; --grid: #ddd; --soft: #444; --best: #eee;
    --warn: #fff; color-scheme: light; }
  body { font-size: 10.5pt; } figure, tr, .result { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .scroll, .wide { overflow: visible; } details::details-content { content-visibility: visible; block-size: auto; } }
"""
