"""``python -m pypoplar.popart SCRIPT``: programs that import ``popart`` run as they are."""

import sys

from pypoplar.poptorch.poptorch_name import install
from pypoplar.poptorch.script_runner import ScriptNames, main

MEANING = "PopART as it is, on the simulated IPU: what it imports as popart is pypoplar.popart."
main(sys.argv[1:], ScriptNames("python -m pypoplar.popart", MEANING, install))
