"""The old home of what writes profiles and pages, which is `pypoplar.pva` now; these paths go on working."""
