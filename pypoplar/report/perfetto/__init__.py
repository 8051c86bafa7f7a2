"""Reports as traces for the Perfetto UI."""
