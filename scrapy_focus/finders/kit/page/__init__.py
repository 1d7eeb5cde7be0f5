"""The page and the tables of a folder."""
