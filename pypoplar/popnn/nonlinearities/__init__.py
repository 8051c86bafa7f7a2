"""Non-linearities on elements, softmax over rows, and their gradients."""
