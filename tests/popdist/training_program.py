"""A model with dropout and momentum, trained on shuffled rows; each instance prints what it saw."""

import json
import sys

import popdist
import popdist.poptorch
import poptorch
import torch

torch.manual_seed(3)
differs = sys.argv[1] if sys.argv[1:] and popdist.getInstanceIndex() == 1 else ""  # what the second instance has otherwise
rate = 0.2 if differs == "rate" else 0.1
rows = torch.utils.data.TensorDataset(torch.arange(52 * 3).reshape(-1, 3).float() / 200, torch.arange(52) % 4)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.loss = torch.nn.CrossEntropyLoss()

    def forward(self, x, y):
        out = self.linear(torch.nn.functional.dropout(x, 0.3))
        return out, self.loss(out, y)


options = popdist.poptorch.Options(ipus_per_replica=1).outputMode(poptorch.OutputMode.All)
options.Training.gradientAccumulation(2)
net = Net()
if differs == "weight":
    with torch.no_grad():
        net.linear.weight[2, 1] += 1
loader = poptorch.DataLoader(options, rows, batch_size=2, shuffle=True)
model = poptorch.trainingModel(net, options, optimizer=torch.optim.SGD(net.parameters(), lr=rate, momentum=0.5))
told = {"instance": popdist.getInstanceIndex(), "rows": [], "losses": []}
for number, (x, y) in enumerate(loader):
    if number == 1 and differs == "later":
        torch.nn.init.zeros_(net.linear.bias)
    if number == 1 and differs == "again":
        model.copyWeightsToDevice()  # what is there already
    _, loss = model(x, y)
    told["rows"].append((x[:, 0] * 200 / 3).round().int().tolist())
    told["losses"].append([float(value).hex() for value in loss.flatten()])
told["weights"] = [float(value).hex() for value in net.linear.weight.detach().flatten()]
print(json.dumps(told), flush=True)
