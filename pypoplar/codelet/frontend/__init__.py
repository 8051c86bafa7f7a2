"""From Python to the typed form."""
