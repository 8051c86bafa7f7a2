"""Arrays: sorted intervals and the tables that the passes are made of."""
