"""What the reference says of counts of structured data."""

SETTINGS: tuple[str, ...] = ()
STATS = {
    "focus/error/note",
    "focus/structured/broken",
    "focus/structured/cut",
    "focus/structured/entities",
    "focus/structured/pages",
    "focus/structured/wanted",
}
