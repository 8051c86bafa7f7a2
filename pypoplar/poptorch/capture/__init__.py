"""From a module of PyTorch to a joint graph: forward pass, gradients and new buffers, as operations without side effects."""

from __future__ import annotations

from pypoplar.poptorch.capture.capturing import capture
from pypoplar.poptorch.capture.joint_graph import GraphInput, InputKind, JointGraph, Origin, Pass
from pypoplar.poptorch.capture.problems import CaptureError

__all__ = ["CaptureError", "GraphInput", "InputKind", "JointGraph", "Origin", "Pass", "capture"]
