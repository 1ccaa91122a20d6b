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
TORCHVISION = {"resnet18": "resnet18", "resnet50": "resnet50", "mobilenetv2": "mobilenet_v2"}
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


class Block(torch.nn.Module):
    """What comes before each place, seen from there, and a wide layer."""

    def __init__(self, width, heads):
        super().__init__()
        n = torch.nn
        self.norms = n.ModuleList(n.LayerNorm(width) for _ in range(2))
        self.heads, self.qkv, self.out = heads, n.Linear(width, 3 * width), n.Linear(width, width)
        self.wide = n.Sequential(n.Linear(width, 4 * width), n.GELU(), n.Linear(4 * width, width))

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, steps, width))
        return x + self.wide(self.norms[1](x))


class Gpt(torch.nn.Module):
    """On bytes: the class of each place's next one."""

    def __init__(self, context=128, width=128, heads=4, layers=4):
        super().__init__()
        n = torch.nn
        self.bytes, self.places = n.Embedding(256, width), n.Embedding(context, width)
        self.blocks = n.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = n.LayerNorm(width)

    def forward(self, x):
        x = self.norm(self.blocks(self.bytes(x) + self.places.weight))
        return (x @ self.bytes.weight.T).transpose(1, 2)


class Lstm(torch.nn.Module):
    """Of 28 steps of 28 numbers, all states together."""

    def __init__(self):
        super().__init__()
        self.lstm, self.linear = torch.nn.LSTM(28, 128, batch_first=True), torch.nn.Linear(28 * 128, 10)

    def forward(self, x):
        return self.linear(self.lstm(x)[0].flatten(1))


def torchvision_model(name, side):
    try:
        import torchvision
    except ImportError as error:
        raise runner.Cannot(str(error)) from None
    classes = 10 if side == 32 else 1000
    return getattr(torchvision.models, name)(num_classes=classes), (3, side, side)


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
    if name == "gpt":
        return Gpt(), (128,)
    if name == "lstm":
        return Lstm(), (28, 28)
    net, _, side = name.partition("-")
    if net in TORCHVISION and side in ("32", "224"):
        return torchvision_model(TORCHVISION[net], int(side))
    raise runner.Cannot(f"no model {name}")


def samples(name, batch, shape):
    return torch.randint(0, 256, (batch, *shape)) if name == "gpt" else torch.rand(batch, *shape)


def laid(net, x, how):
    """As the variant wants both."""
    if "nhwc" in how:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return torch.compile(net) if "compile" in how else net, x


def train(name, batch, kind, how):
    torch.manual_seed(1)
    net, shape = model(name)
    net, x = laid(net, samples(name, batch, shape), how)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, **({"fused": True} if "fused" in how else {}))
    if name == "mlp":
        loss_of, y = torch.nn.MSELoss(), torch.rand(batch, 1)
    else:
        loss_of = torch.nn.CrossEntropyLoss()
        y = samples(name, batch, shape) if name == "gpt" else torch.randint(0, 10, (batch,))

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
    net, x = laid(net.eval(), samples(name, batch, shape), how)

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
