"""The names of near copies in the reference."""

SETTINGS: tuple[str, ...] = ("FOCUS_IGNORE_PARAMETERS",)
STATS = {
    "focus/error/near",
    "focus/near/checked",
    "focus/near/dropped",
    "focus/near/learned",
    "focus/near/returned",
    "focus/near/unlearned",
    "focus/outcome/near_copy",
}
