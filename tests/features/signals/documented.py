"""The names of signals in the reference."""

SETTINGS: tuple[str, ...] = ()
STATS = {
    "focus/error/hear",
    "focus/signal/cut",
    "focus/signal/elsewhere",
    "focus/signal/entries",
    "focus/signal/feeds",
    "focus/signal/future",
    "focus/signal/heard",
    "focus/signal/no_url",
    "focus/signal/repeated",
    "focus/signal/sitemaps",
    "focus/signal/undated",
    "focus/signal/unreadable",
}
