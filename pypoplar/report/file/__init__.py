"""Reports as SQLite files."""
