"""A synthetic news site that changes: articles are born, updated and withdrawn, and lists change with them."""
