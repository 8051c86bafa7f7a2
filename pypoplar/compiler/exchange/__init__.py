"""What moves between tiles, and what it costs."""
