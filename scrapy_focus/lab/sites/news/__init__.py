"""A synthetic news site that changes: articles are born, updated and withdrawn, and so lists of them change."""
