"""The replicas of a graph: what each has for itself, and how they run and meet."""
