"""The names of the scope in the reference."""

SETTINGS: tuple[str, ...] = (
    "FOCUS_DEPTH", "FOCUS_EXCLUDE", "FOCUS_INCLUDE", "FOCUS_MAX_PAGES_PER_HOST", "FOCUS_SCOPE",
)  # fmt: skip
STATS = {
    "focus/error/scope",
    "focus/outcome/out_of_scope",
    "focus/scope/depth",
    "focus/scope/domain",
    "focus/scope/excluded",
    "focus/scope/host",
    "focus/scope/host_full",
    "focus/scope/not_included",
    "focus/scope/page",
    "focus/scope/prefix",
}
