"""Losses of classifiers, counts of right answers, and the largest elements of rows."""
