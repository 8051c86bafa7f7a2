"""A call of PopTorch's MNIST script, 50 steps of 8 images: ``pypoplar predict docs/jobs/mnist.py``."""

import poptorch
import torch
from torch import nn

BATCH, STEPS = 8, 50


class Network(nn.Module):
    """Two convolutions and two products, and the loss beside the classes."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU()), *(nn.Conv2d(32, 64, 3), nn.MaxPool2d(2), nn.ReLU())
        )
        self.products = nn.Sequential(nn.Linear(1600, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))

    def forward(self, images, labels):
        classes = self.products(self.convolutions(images).flatten(1))
        return classes, nn.functional.cross_entropy(classes, labels)


with torch.device("meta"):
    model = Network()
    images, labels = torch.empty(BATCH * STEPS, 1, 28, 28), torch.empty(BATCH * STEPS, dtype=torch.long)
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05)
poptorch.trainingModel(model, poptorch.Options().deviceIterations(STEPS), optimizer)(images, labels)
