"""The form of codelets that the interpreter runs."""
