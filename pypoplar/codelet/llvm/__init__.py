"""Codelets as machine code of the host, by LLVM."""
