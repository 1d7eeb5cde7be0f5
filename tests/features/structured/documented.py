"""The names of counts of structured data in the reference."""

SETTINGS: tuple[str, ...] = ()
STATS = {
    "focus/error/note",
    "focus/structured/broken",
    "focus/structured/cut",
    "focus/structured/entities",
    "focus/structured/pages",
    "focus/structured/wanted",
}
