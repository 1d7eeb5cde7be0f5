"""A synthetic site with parts that can only be seen if its scripts run."""
