"""The names of stored responses in the reference."""

SETTINGS: tuple[str, ...] = ("FOCUS_KILL_SAFE_FETCH",)
STATS = {
    "focus/answer/recalled",
    "focus/error/answers",
    "focus/error/keep",
    "focus/error/recall",
}
