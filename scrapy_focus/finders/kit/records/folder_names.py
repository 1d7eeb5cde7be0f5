"""File names in the folder of a crawl."""

MANIFEST = "manifest.jsonl"  # the list of files
FILES = "files"  # the folder of files
SKIPPED = "skipped.jsonl"  # the list of files that were too large
PAGES = "pages.jsonl"  # the list of pages of a search for a topic, or for important pages
ENTITIES = "entities.jsonl"  # the list of entities of a search for structured data
GRAPH = ".focus/graph.jsonl"  # which page links to which, in a search for important pages
NEWS = "news.jsonl"  # the list of news of a watch
TEXTS = "text"  # the folder of texts of pages
