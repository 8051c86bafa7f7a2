"""``python -m pypoplar.keras SCRIPT``: programs that import ``tensorflow.python.ipu`` run as they are."""

import sys

from pypoplar.keras.tensorflow_names import install
from pypoplar.poptorch.script_runner import ScriptNames, main

MEANING = (
    "IPU TensorFlow and Keras as it is, on the simulated IPU: what it imports as tensorflow.python.ipu is pypoplar.keras.ipu, and\n"
    "where TensorFlow is not installed Keras stands in for what it takes of it."
)
main(sys.argv[1:], ScriptNames("python -m pypoplar.keras", MEANING, install))
