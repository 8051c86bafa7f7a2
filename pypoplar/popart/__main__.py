"""``python -m pypoplar.popart SCRIPT``: programs that import ``popart`` run as they are."""

import sys

from pypoplar.poptorch.script_runner import main

main(sys.argv[1:])
