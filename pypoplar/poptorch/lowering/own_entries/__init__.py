"""What PopTorch's own operators become."""
