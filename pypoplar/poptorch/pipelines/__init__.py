"""Stages of a model that overlap: which operations each has, what crosses between them, stashes, and the order of a step."""
