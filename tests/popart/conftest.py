"""Without the packages onnx and PyTorch there is nothing to test here but names."""

import importlib.util

collect_ignore_glob = (
    []
    if all(importlib.util.find_spec(name) for name in ("onnx", "torch"))
    else [
        "test_custom_operators.py",
        "test_graphcore_operators.py",
        "test_node_places.py",
        "test_popart_builder.py",
        "test_popart_mistakes.py",
        "test_popart_sessions.py",
    ]
)
