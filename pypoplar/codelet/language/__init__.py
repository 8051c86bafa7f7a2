"""The language that codelets are written in: fields, declarations, sources, and how mistakes in them are shown."""
