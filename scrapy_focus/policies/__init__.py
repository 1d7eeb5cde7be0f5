"""Who decides: one published system per file."""
