#!/usr/bin/env python3
"""flowers.py - the PyTorch side of 07_pytorch_model: trains a small classifier, saves it, predicts.

Writes flowers.pt (a state dict) and flowers.onnx (the network with its weights) into this folder. Needs torch, onnx and
onnxscript; the two files lie here already.
"""
import pathlib

import torch
from torch import nn

here = pathlib.Path(__file__).parent
torch.manual_seed(1)
centres = torch.tensor([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
labels = torch.arange(150) % 3
x = centres[labels] + 0.3 * torch.randn(150, 4)

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(300):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()

torch.save(model.state_dict(), here / "flowers.pt")
flowers = torch.tensor([[5.1, 3.5, 1.4, 0.2], [6.0, 2.8, 4.4, 1.3], [6.6, 3.0, 5.6, 2.1]])
torch.onnx.export(model, (flowers,), here / "flowers.onnx", input_names=["flowers"], output_names=["scores"],
                  dynamic_shapes={"input": {0: "batch"}}, external_data=False)
with torch.no_grad():
    for row in model(flowers).softmax(-1):
        print(*(f"{p:.4f}" for p in row))
