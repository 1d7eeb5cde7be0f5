"""The names of the files with the status in the reference."""

SETTINGS: tuple[str, ...] = ("FOCUS_STATS_FILE", "FOCUS_METRICS_FILE", "FOCUS_STATS_INTERVAL")
STATS = {"focus/error/status_files"}
