"""A synthetic site of which a part can only be seen where its scripts run."""
