"""From programs and plans to the flat tables of an executable."""
