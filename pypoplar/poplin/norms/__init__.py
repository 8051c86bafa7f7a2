"""Normalisation of the channels of activations: parameters, statistics, whitening, gradients."""
