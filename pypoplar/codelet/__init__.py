"""The codelet language: fields, registration, the typed form, its price and its native code."""
