"""What optimisers do on the device: how a parameter changes, given its gradient."""
