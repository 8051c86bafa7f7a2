"""Flows of training, with failures, edits on the host, files and other models in between, are PyTorch's.

Five hundred of them by hand: `python tests/helpers/training_flows.py 0 500`.
"""

from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from training_flows import check_flow, drawn_flow


@examples(4)
@given(st.randoms(use_true_random=False))
def test_a_drawn_flow_is_pytorchs(draws):
    check_flow(drawn_flow(draws))
