"""Bugs put into pypoplar one at a time, to see whether a test finds them: `.ci/mutants`."""
