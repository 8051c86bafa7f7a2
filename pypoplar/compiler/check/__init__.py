"""What the compiler refuses: connections, mappings, races."""
