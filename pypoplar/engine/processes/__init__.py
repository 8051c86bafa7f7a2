"""Replicas that are spread over processes, which meet by MPI."""
