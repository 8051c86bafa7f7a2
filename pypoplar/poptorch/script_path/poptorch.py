"""What processes that a script starts find as ``poptorch``: the same module as in the script."""

from pypoplar.poptorch.poptorch_name import install

install()
