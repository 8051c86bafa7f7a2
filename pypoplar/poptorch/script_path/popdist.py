"""What processes that a script starts find as ``popdist``: the same module as in the script."""

from pypoplar.poptorch.poptorch_name import install

install()
