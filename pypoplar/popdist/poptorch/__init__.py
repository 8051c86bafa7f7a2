"""Options of PyTorch models whose replicas are spread over instances: ``popdist.poptorch.Options()``."""

from pypoplar.popdist.poptorch.instance_options import Options

__all__ = ["Options"]
