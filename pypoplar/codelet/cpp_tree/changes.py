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


def aliased_locals(within: Node) -> frozenset[int]:
    """The locals of a function that a pointer, a reference, or a lambda may change, also where their names do not stand."""
    known = within.__dict__.get("aliased_locals")
    if known is None:
        found: set[int] = set()
        for node in within.walk():
            if node.kind == "LAMBDA_EXPR":
                found |= changed_locals(node)
            elif not _assigns(node):
                found |= {one.referenced.key for one in node.children if one.kind == "DECL_REF_EXPR" and one.referenced is not None}
        known = within.__dict__["aliased_locals"] = frozenset(found)
    return known


def _assigns(node: Node) -> bool:
    """Whether a name below it is read, or changed by this name."""
    if node.kind == "UNARY_OPERATOR":
        return node.operator != "&"
    return node.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR", "BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "ARRAY_SUBSCRIPT_EXPR")


def changed_fields(within: Node) -> frozenset[str] | None:
    """The members of the vertex that a part of a function may change, and what it calls; None where that may be any."""
    found: set[str] = set()
    return frozenset(found) if _look_for_fields(within, found, set()) else None


def _look_for_fields(within: Node, found: set[str], seen: set[int]) -> bool:
    """Add the members that are changed; False where something is called, or given the vertex, that may change any."""
    for node in within.walk():
        if node.kind == "CALL_EXPR" and not _look_into(node, found, seen):
            return False
        if node.kind == "MEMBER_REF_EXPR":
            found |= {node.name} if not _is_read(node, within) else set()
    return True


def _look_into(call: Node, found: set[str], seen: set[int]) -> bool:
    function = call.referenced
    if function is not None and function.kind == "CXX_METHOD" and not _of_ours(function):
        body = function.cursor.get_definition()
        if body is None or not any(child.kind.name == "COMPOUND_STMT" for child in body.get_children()):
            return False
        method = Node(body)
        if method.key not in seen:
            seen.add(method.key)
            return _look_for_fields(method, found, seen)
    return not any(part.naked.kind == "CXX_THIS_EXPR" or _is_vertex(part.naked) for part in call.parts)


def _is_vertex(node: Node) -> bool:
    """Whether an expression is ``*this``."""
    return node.kind == "UNARY_OPERATOR" and any(part.naked.kind == "CXX_THIS_EXPR" for part in node.parts)


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
