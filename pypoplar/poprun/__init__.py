"""The `poprun` command: starts a program in several instances, which share the replicas of its models."""
