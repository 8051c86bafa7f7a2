"""Recurrent layers: their parameters, their sequences, one loop of steps for all, and the cells of LSTMs and GRUs."""
