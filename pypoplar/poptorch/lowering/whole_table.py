"""All entries of the table: importing this module makes it whole."""

from __future__ import annotations

import pypoplar.poptorch.lowering.activations
import pypoplar.poptorch.lowering.convolutions
import pypoplar.poptorch.lowering.element_losses
import pypoplar.poptorch.lowering.element_wise.arithmetic_elements
import pypoplar.poptorch.lowering.element_wise.function_elements
import pypoplar.poptorch.lowering.element_wise.gamma_elements
import pypoplar.poptorch.lowering.element_wise.number_parts
import pypoplar.poptorch.lowering.element_wise.relation_elements
import pypoplar.poptorch.lowering.elements
import pypoplar.poptorch.lowering.embeddings
import pypoplar.poptorch.lowering.integers.common_factors
import pypoplar.poptorch.lowering.losses
import pypoplar.poptorch.lowering.nonlinearities
import pypoplar.poptorch.lowering.normalization
import pypoplar.poptorch.lowering.own_entries.custom_vertices
import pypoplar.poptorch.lowering.own_entries.host_functions
import pypoplar.poptorch.lowering.own_entries.label_searches
import pypoplar.poptorch.lowering.own_entries.nested_programs
import pypoplar.poptorch.lowering.own_entries.sliced_views
import pypoplar.poptorch.lowering.pooling
import pypoplar.poptorch.lowering.products
import pypoplar.poptorch.lowering.randomness
import pypoplar.poptorch.lowering.rearranging.indexing
import pypoplar.poptorch.lowering.rearranging.joining
import pypoplar.poptorch.lowering.rearranging.random_numbers
import pypoplar.poptorch.lowering.rearranging.scans
import pypoplar.poptorch.lowering.rearranging.sorting
import pypoplar.poptorch.lowering.recurrent_layers
import pypoplar.poptorch.lowering.reductions
import pypoplar.poptorch.lowering.resampling
import pypoplar.poptorch.lowering.tensor_views
import pypoplar.poptorch.lowering.walks.nested_walks  # noqa: F401 (imported for their entries)
