"""The names of traps in the reference."""

SETTINGS: tuple[str, ...] = ("FOCUS_MAX_COPIES", "FOCUS_MAX_FOLDERS", "FOCUS_MAX_LINKS", "FOCUS_MAX_REPEATS")
STATS = {
    "focus/error/traps",
    "focus/trap/copies",
    "focus/trap/folders",
    "focus/trap/links",
    "focus/trap/repeats",
}
