"""Machine code of the host: how it is made, loaded, and kept for the next process."""
