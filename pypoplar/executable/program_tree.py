"""The program tree: what the control program was made of, for the report.

It is kept as a table of nodes, children before parents, so that it can be saved and walked whatever its depth. A function is one
node under every Call of it.
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class ProgramTree:
    """Nodes by number. A node that is a static step takes its name and type from the step; it has none here."""

    type: tuple[str, ...]  # "Sequence", "Repeat", ...: libpva's program types, or the program's class
    name: tuple[str, ...]
    detail: tuple[str, ...]  # in words: "100 times"
    made_at: tuple[str, ...]  # the user's line, file:line; empty for what no line made
    step: Int64s  # the static step that the node is, or `NOTHING`
    first_child: Int64s  # [nodes + 1]: where the node's children begin in the next
    child: Int64s  # numbers of nodes, each less than its parent's
    root: Int64s  # the node of each program of the engine

    def __len__(self) -> int:
        return len(self.type)

    def children(self, node: int) -> Int64s:
        """The numbers of a node's children, in program order."""
        return self.child[self.first_child[node] : self.first_child[node + 1]]
