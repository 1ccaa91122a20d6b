"""torch_runner - PyTorch as a contender: products, convolutions, training steps, predictions.

    torch_runner.py THREADS

Variants are words joined by +: of convolutions nchw or nhwc; of models eager or compile, nchw or nhwc, and of training
adam or fused, with `item` where the loss is asked for at each step. bf16: of models by autocast.
"""
import sys

import runner

try:
    import torch
except ImportError as error:
    runner.absent(f"{sys.executable}: {error}")

FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def gemm(words, kind):
    m, n, k = map(int, words[:3])
    a = torch.rand(k, m, dtype=kind).t() if words[3][0] == "t" else torch.rand(m, k, dtype=kind)
    b = torch.rand(n, k, dtype=kind).t() if words[3][1] == "t" else torch.rand(k, n, dtype=kind)
    c = torch.empty(m, n, dtype=kind)
    return lambda: torch.mm(a, b, out=c)


def conv(words, kind, layout):
    direction, (batch, inputs, side, outputs, kernel, stride, pad, groups) = words[0], map(int, words[1:])
    as_laid = {"dtype": kind, "memory_format": FORMATS[layout]}
    x = torch.rand(batch, inputs, side, side).to(**as_laid)
    w = torch.rand(outputs, inputs // groups, kernel, kernel).to(**as_laid)
    if direction == "forward":
        return lambda: torch.conv2d(x, w, None, stride, pad, 1, groups)
    y = torch.rand_like(torch.conv2d(x, w, None, stride, pad, 1, groups)).to(**as_laid)
    wanted = [direction == "data", direction == "weights", False]
    back = torch.ops.aten.convolution_backward
    return lambda: back(y, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, wanted)


def resnet(classes):
    try:
        import torchvision
    except ImportError as error:
        raise runner.Cannot(str(error)) from None
    return torchvision.models.resnet18(num_classes=classes)


def model(name):
    """The model, and the shape of a sample."""
    n = torch.nn
    if name == "mnist-cnn":
        return n.Sequential(
            n.Conv2d(1, 64, 3, padding=1), n.ReLU(), n.Conv2d(64, 128, 3, padding=1), n.ReLU(), n.MaxPool2d(2),
            n.Flatten(), n.Linear(25088, 1024), n.ReLU(), n.Dropout(0.5), n.Linear(1024, 10)), (1, 28, 28)
    if name == "small-cnn":
        return n.Sequential(
            n.Conv2d(1, 8, 3, padding=1), n.ReLU(), n.MaxPool2d(2), n.Conv2d(8, 16, 3, padding=1), n.ReLU(),
            n.MaxPool2d(2), n.Flatten(), n.Linear(784, 10)), (1, 28, 28)
    if name == "mlp":
        return n.Sequential(n.Linear(13, 64), n.ReLU(), n.Linear(64, 64), n.ReLU(), n.Linear(64, 1)), (13,)
    if name == "resnet18-32":
        return resnet(10), (3, 32, 32)
    if name == "resnet18-224":
        return resnet(1000), (3, 224, 224)
    raise runner.Cannot(f"no model {name}")


def laid(net, x, how):
    """As the variant wants both."""
    if "nhwc" in how:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return torch.compile(net) if "compile" in how else net, x


def train(name, batch, kind, how):
    torch.manual_seed(1)
    net, shape = model(name)
    net, x = laid(net, torch.rand(batch, *shape), how)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, **({"fused": True} if "fused" in how else {}))
    if name == "mlp":
        loss_of, y = torch.nn.MSELoss(), torch.rand(batch, 1)
    else:
        loss_of, y = torch.nn.CrossEntropyLoss(), torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad()
        if kind == torch.bfloat16:
            with torch.autocast("cpu", dtype=kind):
                loss = loss_of(net(x), y)
        else:
            loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        if "item" in how:
            loss.item()

    return step


def infer(name, batch, kind, how):
    torch.manual_seed(1)
    net, shape = model(name)
    net, x = laid(net.eval(), torch.rand(batch, *shape), how)

    def once():
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == torch.bfloat16):
            net(x)

    return once


def prepare(variant, words):
    sort, kind, *rest = words
    if kind not in TYPES:
        raise runner.Cannot(f"no type {kind}")
    how = variant.split("+")
    if sort == "gemm":
        return gemm(rest, TYPES[kind])
    if sort == "conv":
        return conv(rest, TYPES[kind], variant)
    if sort in ("train", "infer"):
        return (train if sort == "train" else infer)(rest[0], int(rest[1]), TYPES[kind], how)
    raise runner.Cannot(f"no sort {sort}")


torch.set_num_threads(int(sys.argv[1]))
# Without the reset, models of one class would share what may be compiled of it, and the last ones stay eager.
runner.serve(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", prepare, torch.compiler.reset)
