"""The typed form of codelets, its operations, and what they cost."""
