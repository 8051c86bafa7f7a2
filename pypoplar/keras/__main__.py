"""``python -m pypoplar.keras SCRIPT``: programs that import ``tensorflow.python.ipu`` run as they are."""

import sys

from pypoplar.keras.tensorflow_names import install
from pypoplar.poptorch.script_runner import main

main(sys.argv[1:], install)
