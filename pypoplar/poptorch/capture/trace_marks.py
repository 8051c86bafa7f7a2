"""Marks on the nodes of a graph that is being traced: what they are made for."""

from __future__ import annotations

from torch.fx.experimental.proxy_tensor import get_proxy_mode

from pypoplar.poptorch.capture.joint_graph import Origin, Pass


class TraceMarks:
    """Notes in new nodes of the traced graph what they are made for."""

    def __init__(self) -> None:
        self.marked = 0
        self.now: tuple[Origin | None, Pass] = (None, Pass.FORWARD)

    def turn_to(self, origin: Origin | None, part: Pass) -> None:
        """What is traced from here on is made for an origin; what was traced since the last turn belongs to the last one."""
        mode = get_proxy_mode()
        assert mode is not None, "graphs are marked while they are traced"
        nodes = list(mode.tracer.graph.nodes)
        for node in nodes[self.marked :]:
            node.meta["origin"], node.meta["pass"] = self.now
        self.marked = len(nodes)
        self.now = origin, part
