"""The names of foreseen redirects in the reference."""

SETTINGS: tuple[str, ...] = ("FOCUS_LEARN_REDIRECTS",)
STATS = {
    "focus/error/redirect",
    "focus/outcome/redirect_seen",  # also of redirects that were followed
    "focus/redirect/foreseen",
    "focus/redirect/known",
    "focus/redirect/returned",
    "focus/redirect/wrong",
}
