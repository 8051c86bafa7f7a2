"""What a run cost: the report and its texts."""
