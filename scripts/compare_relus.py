"""compare_relus.py - PyTorch's gradients where ReLUs that rounding decides are decided as the other side did.

An argument of a ReLU that is as small as rounding may come out on either side of its corner, and its gradient then passes on one
side and not on the other: a difference of percents in the gradients behind it, of which no bound on rounding says anything. Here
each such argument is turned in PyTorch's backward, one after the other, and stays turned where that brings the gradients nearer.
"""
import torch

NEAR = 2e-5  # of the root of the mean square of a ReLU's arguments: a transform's error behind a dozen layers
MOST = 64  # so many arguments are tried, the nearest first; one more backward each


class Turned(torch.autograd.Function):
    """A ReLU that passes the gradient where `passes` says so."""

    @staticmethod
    def forward(context, x, passes, most):
        context.save_for_backward(passes)
        return x.clamp(0, most)

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0], None, None


class Relus:
    """Stands for all ReLUs of `model`, in the order of their calls; `turned` holds (call, place) pairs."""

    def __init__(self, model):
        self.turned, self.near, self.calls = set(), None, 0
        for module in model.modules():
            if isinstance(module, (torch.nn.ReLU, torch.nn.ReLU6)):
                most = 6.0 if isinstance(module, torch.nn.ReLU6) else float("inf")
                module.forward = lambda x, most=most: self.apply(x, most)

    def apply(self, x, most):
        flat = x.detach().reshape(-1)
        passes = ((flat > 0) & (flat < most)).clone()
        if self.near is not None:
            distance = torch.minimum(flat.abs(), (flat - most).abs())
            within = torch.nonzero(distance <= NEAR * flat.square().mean().sqrt()).reshape(-1)
            self.near += [(float(distance[place]), self.calls, int(place)) for place in within]
        for call, place in self.turned:
            if call == self.calls:
                passes[place] = ~passes[place]
        self.calls += 1
        return Turned.apply(x, passes.reshape(x.shape), most)


def decided(model, backward, theirs):
    """(largest relative L2 difference, turned, tried): of the gradients of `model`, which backward() makes, from `theirs` by
    name, with the ReLUs turned that bring them nearer. Changes the ReLUs of `model`."""

    def distances():
        relus.calls = 0
        backward()
        return [float((theirs[k].double() - p.grad.double()).norm() / p.grad.double().norm()) for k, p in model.named_parameters()]

    relus = Relus(model)
    relus.near = []
    best = distances()
    tried, relus.near = sorted(relus.near)[:MOST], None
    for _, call, place in tried:
        relus.turned.add((call, place))
        now = distances()
        if sum(d * d for d in now) < sum(d * d for d in best):
            best = now
        else:
            relus.turned.remove((call, place))
    return max(best), len(relus.turned), len(tried)
