"""Who decides: one published system in each file or folder."""
