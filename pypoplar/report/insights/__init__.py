"""What a report says in words, and what to try."""
