"""Optimisers with PopTorch's arguments, which are PyTorch's on the host."""

from pypoplar.poptorch.optim.adam import Adam, AdamW
from pypoplar.poptorch.optim.ipu_optimizer import Optimizer
from pypoplar.poptorch.optim.lamb import LAMB
from pypoplar.poptorch.optim.optimizer_kinds import optimizer_kind
from pypoplar.poptorch.optim.rmsprop import RMSprop
from pypoplar.poptorch.optim.sgd import SGD
from pypoplar.poptorch.optim.variable_attributes import VariableAttributes

__all__ = ["LAMB", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "VariableAttributes", "optimizer_kind"]
