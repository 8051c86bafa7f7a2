"""The entries of the table of operators, a module a family."""

from pypoplar.onnx.families import (  # noqa: F401
    convolution_nodes,
    element_nodes,
    graphcore_layers,
    graphcore_nodes,
    graphcore_parts,
    graphcore_splines,
    index_nodes,
    learning_nodes,
    normalization_nodes,
    pool_nodes,
    quantized_nodes,
    recurrent_nodes,
    reduction_nodes,
    resize_nodes,
    sampling_nodes,
    shape_nodes,
    spectrum_nodes,
)
