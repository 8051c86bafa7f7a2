"""What may be changed in a part of a function: locals and fields."""

from __future__ import annotations

from pypoplar.codelet.cpp_tree.tree import Node


def is_changed(within: Node, declared: Node) -> bool:
    """Whether a local may be changed in a part of a function: it is used there other than by its value."""
    return declared.key in changed_locals(within)


def changed_locals(within: Node) -> frozenset[int]:
    """The locals that a part of a function may change."""
    known = within.__dict__.get("changed_locals")
    if known is None:
        found: set[int] = set()
        _look(within, None, found)
        known = within.__dict__["changed_locals"] = frozenset(found)
    return known


def _look(node: Node, parent: Node | None, found: set[int]) -> None:
    if node.kind == "DECL_REF_EXPR":
        declared = node.referenced
        if declared is not None and not (parent is not None and parent.kind == "UNEXPOSED_EXPR"):
            found.add(declared.key)
        return
    for child in node.children:
        outer = parent if node.kind == "PAREN_EXPR" else node
        _look(child, outer, found)


def changed_fields(within: Node) -> frozenset[str] | None:
    """The members of the vertex that a part of a function may change; None where it calls something that may change any."""
    found: set[str] = set()
    for node in within.walk():
        if node.kind == "CALL_EXPR":
            function = node.referenced
            if (
                function is not None
                and function.kind == "CXX_METHOD"
                and not node.name.startswith("operator")
                and not _of_ours(function)
            ):
                return None
        if node.kind == "MEMBER_REF_EXPR":
            found |= {node.name} if not _is_read(node, within) else set()
    return frozenset(found)


def _of_ours(function: Node) -> bool:
    return "/cpp/headers/" in function.file


def _is_read(member: Node, within: Node) -> bool:
    reads = within.__dict__.get("read_members")
    if reads is None:
        reads = within.__dict__["read_members"] = {
            (child.line, child.column, child.name)
            for node in within.walk()
            if node.kind == "UNEXPOSED_EXPR"
            for child in node.children
            if child.kind == "MEMBER_REF_EXPR"
        }
    return (member.line, member.column, member.name) in reads


def ends(node: Node) -> bool:
    """Whether a statement returns on every path."""
    if node.kind == "RETURN_STMT":
        return True
    if node.kind == "COMPOUND_STMT":
        return any(ends(child) for child in node.children)
    if node.kind == "IF_STMT":
        children = [child for child in node.children if not child.kind.endswith("_REF")]
        return len(children) >= 3 and ends(children[-1]) and ends(children[-2])
    return False
