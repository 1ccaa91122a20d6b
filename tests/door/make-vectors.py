#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes vectors.inc: small cases computed with PyTorch in float64, in the layouts of plugin.h (images NHWC, weights
[out][kernel...][in/groups]). Run it again only to add a case: the numbers must not change.

    python3 make-vectors.py > vectors.inc      (PyTorch 2)
"""
import torch
import torch.nn.functional as F

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)


def numbers(tensor):
    flat = tensor.detach().contiguous().flatten().tolist()
    return "(const double[]){ " + ", ".join(f"{x:.17g}" for x in flat) + " }"


def list_of(values):
    return "{ " + ", ".join(str(v) for v in values) + " }"


def emit(kind, cases):
    print(f"static const {kind}_vector {kind}_vectors[] = {{")
    for case in cases:
        print("    {")
        for key, value in case.items():
            print(f"        .{key} = {value},")
        print("    },")
    print("};\n")


def channels_last(tensor):
    return tensor.movedim(1, -1)


def gemm(m, n, k, batch, ta, tb, bias, activation):
    a, b = torch.randn(batch, m, k), torch.randn(batch, k, n)
    c = a @ b
    case = dict(m=m, n=n, k=k, batch=batch, trans=ta | tb << 1, activation=f"CEK_ACT_{activation}")
    if bias:
        v = torch.randn(n)
        c = c + v
        case["bias"] = numbers(v)
    c = dict(NONE=lambda x: x, RELU=F.relu, TANH=torch.tanh, SIGMOID=torch.sigmoid, GELU=F.gelu)[activation](c)
    case.update(a=numbers(a.mT if ta else a), b=numbers(b.mT if tb else b), c=numbers(c), a_sum=numbers(a.sum(2)))
    return case


def pad_of(lo, hi):
    """F.pad's order: last dimension first."""
    return [p for pair in reversed(list(zip(lo, hi))) for p in pair]


def conv(batch, ic, oc, size, kernel, stride, dilation, lo, hi, groups):
    dims = len(size)
    x = torch.randn(batch, ic, *size, requires_grad=True)
    w = torch.randn(oc, ic // groups, *kernel, requires_grad=True)
    b = torch.randn(oc, requires_grad=True)
    f = [None, F.conv1d, F.conv2d, F.conv3d][dims]
    y = f(F.pad(x, pad_of(lo, hi)), w, b, stride=stride, dilation=dilation, groups=groups)
    dy = torch.randn_like(y)
    y.backward(dy)
    return {"spatial": dims, "groups": groups, "batch": batch, "in_channels": ic, "out_channels": oc, "in": list_of(size),
            "kernel": list_of(kernel), "stride": list_of(stride), "dilation": list_of(dilation), "pad_lo": list_of(lo),
            "pad_hi": list_of(hi), "out_count": y.numel(), "x": numbers(channels_last(x)), "w": numbers(channels_last(w)),
            "bias": numbers(b), "y": numbers(channels_last(y)), "dy": numbers(channels_last(dy)),
            "dx": numbers(channels_last(x.grad)), "dw": numbers(channels_last(w.grad)), "dbias": numbers(b.grad)}


def pool(mode, batch, channels, size, kernel, stride, lo, hi, count_pad):
    dims = len(size)
    x = torch.randn(batch, channels, *size, requires_grad=True)
    if mode == "MAX":
        f = [None, F.max_pool1d, F.max_pool2d, F.max_pool3d][dims]
        y = f(F.pad(x, pad_of(lo, hi), value=-torch.inf), kernel, stride)
    else:
        f = [None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][dims]
        y = f(F.pad(x, pad_of(lo, hi)), kernel, stride)
        if not count_pad:
            y = y / f(F.pad(torch.ones_like(x), pad_of(lo, hi)), kernel, stride)
    dy = torch.randn_like(y)
    y.backward(dy)
    return {"mode": f"CEK_POOL_{mode}", "flags": int(count_pad), "spatial": dims, "batch": batch, "channels": channels,
            "in": list_of(size), "kernel": list_of(kernel), "stride": list_of(stride), "pad_lo": list_of(lo),
            "pad_hi": list_of(hi), "out_count": y.numel(), "x": numbers(channels_last(x)), "y": numbers(channels_last(y)),
            "dy": numbers(channels_last(dy)), "dx": numbers(channels_last(x.grad))}


def softmax(rows, columns, scale):
    x = scale * torch.randn(rows, columns)
    return dict(rows=rows, columns=columns, x=numbers(x), softmax=numbers(x.softmax(1)), log_softmax=numbers(x.log_softmax(1)))


def cross_entropy(rows, classes, scale, weighted):
    x = (scale * torch.randn(rows, classes)).requires_grad_()
    labels = torch.randint(classes, (rows,))
    # f32 holds these weights exactly, as the operand does.
    weights = torch.randint(1, 9, (rows,)) / 8 if weighted else torch.ones(rows)
    loss = (weights * F.cross_entropy(x, labels, reduction="none")).sum()
    (loss / weights.sum()).backward()
    case = dict(rows=rows, classes=classes, x=numbers(x), labels="(const int32_t[])" + list_of(labels.tolist()),
                inv_n=f"{1 / weights.sum().item():.17g}", loss=f"{loss.item():.17g}",
                correct=int((x.argmax(1) == labels).sum()), dx=numbers(x.grad))
    if weighted:
        case["weights"] = "(const float[])" + list_of(weights.tolist())
    return case


def squared_error(rows, columns):
    x, target = torch.randn(rows, columns, requires_grad=True), torch.randn(rows, columns)
    mean = F.mse_loss(x, target)
    mean.backward()
    return dict(rows=rows, columns=columns, x=numbers(x), target=numbers(target), inv_n=f"{1 / x.numel():.17g}",
                mean=f"{mean.item():.17g}", dx=numbers(x.grad))


def activation(name, f):
    x = torch.tensor([-30.0, -6.5, -3.0, -1.25, -0.5, -1e-3, 0.25, 0.75, 1.5, 4.0, 9.0], requires_grad=True)
    dy = torch.randn_like(x)
    y = f(x)
    y.backward(dy)
    return dict(code=f"CEK_PW_{name}", grad_code=f"CEK_PW_{name}_GRAD", reads_input=int(name == "GELU"), count=x.numel(),
                x=numbers(x), y=numbers(y), dy=numbers(dy), dx=numbers(x.grad))


def optimizer(name, steps, count, lr, **options):
    kind = dict(SGD=torch.optim.SGD, ADAM=torch.optim.Adam, ADAMW=torch.optim.AdamW, RMSPROP=torch.optim.RMSprop,
                ADAGRAD=torch.optim.Adagrad)[name]
    p = torch.randn(count, requires_grad=True)
    first = numbers(p)
    optim = kind([p], lr=lr, **options)
    grads = torch.randn(steps, count)
    for grad in grads:
        p.grad = grad.clone()
        optim.step()
    betas = options.get("betas", (0.9, 0.999))
    flags = [f for f, on in (("CEK_OPTIMIZER_NESTEROV", options.get("nesterov")), ("CEK_OPTIMIZER_DECOUPLED", name == "ADAMW"),
                            ("CEK_OPTIMIZER_CENTERED", options.get("centered"))) if on]
    decay = options.get("alpha", 0.99) if name == "RMSPROP" else options.get("lr_decay", 0)
    return dict(algorithm="CEK_OPTIMIZER_" + name.removesuffix("W"), flags=" | ".join(flags) or 0,
                steps=steps, count=count, lr=lr, weight_decay=options.get("weight_decay", 0),
                momentum=options.get("momentum", 0), dampening=options.get("dampening", 0),
                epsilon=0 if name == "SGD" else options.get("eps", 1e-10 if name == "ADAGRAD" else 1e-8), beta1=betas[0], beta2=betas[1],
                decay=decay, initial=options.get("initial_accumulator_value", 0),
                first=first, grads=numbers(grads), last=numbers(p))


print("/* Made by make-vectors.py with PyTorch in float64; do not edit. */\n")
emit("gemm", [
    gemm(3, 4, 5, 1, 0, 0, False, "NONE"),
    gemm(4, 3, 6, 1, 1, 0, True, "NONE"),
    gemm(2, 5, 3, 1, 0, 1, True, "GELU"),
    gemm(3, 2, 4, 1, 1, 1, True, "TANH"),
    gemm(2, 3, 4, 3, 0, 1, False, "SIGMOID"),
    gemm(1, 7, 1, 1, 0, 0, True, "RELU"),
])
emit("conv", [
    conv(2, 3, 4, (5, 6), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    conv(1, 4, 6, (7, 5), (3, 2), (2, 1), (1, 2), (0, 1), (2, 1), 2),
    conv(2, 4, 4, (6, 6), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 4),
    conv(1, 2, 3, (9,), (4,), (2,), (2,), (3,), (1,), 1),
    conv(1, 2, 2, (3, 4, 5), (2, 3, 2), (1, 2, 2), (1, 1, 2), (1, 0, 1), (0, 1, 1), 1),
    conv(2, 3, 5, (4, 4), (1, 1), (3, 2), (1, 1), (0, 0), (0, 0), 1),
])
emit("pool", [
    pool("MAX", 2, 3, (6, 6), (2, 2), (2, 2), (0, 0), (0, 0), False),
    pool("MAX", 1, 2, (7, 5), (3, 3), (2, 1), (1, 0), (1, 2), False),
    pool("AVERAGE", 1, 2, (6, 5), (3, 2), (2, 2), (1, 1), (1, 0), True),
    pool("AVERAGE", 2, 1, (6, 5), (3, 2), (2, 2), (1, 1), (1, 0), False),
    pool("AVERAGE", 2, 3, (4, 5), (4, 5), (1, 1), (0, 0), (0, 0), False),
    pool("MAX", 1, 2, (9,), (3,), (2,), (1,), (1,), False),
    pool("MAX", 1, 1, (4, 4, 5), (2, 2, 3), (2, 1, 2), (0, 1, 1), (0, 0, 1), False),
])
emit("softmax", [softmax(3, 5, 1), softmax(2, 7, 300), softmax(1, 1, 1)])
emit("cross_entropy", [cross_entropy(4, 5, 1, False), cross_entropy(5, 3, 4, True), cross_entropy(2, 10, 200, True)])
emit("squared_error", [squared_error(4, 3), squared_error(5, 1)])
emit("activation", [activation("RELU", F.relu), activation("TANH", torch.tanh), activation("SIGMOID", torch.sigmoid),
                    activation("GELU", F.gelu)])
emit("optimizer", [
    optimizer("SGD", 3, 5, 0.1),
    optimizer("SGD", 4, 5, 0.05, momentum=0.9, weight_decay=0.01),
    optimizer("SGD", 4, 5, 0.05, momentum=0.8, dampening=0.25),
    optimizer("SGD", 4, 5, 0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
    optimizer("ADAM", 5, 5, 0.001),
    optimizer("ADAM", 5, 5, 0.01, betas=(0.8, 0.95), weight_decay=0.1, eps=1e-6),
    optimizer("ADAMW", 5, 5, 0.01, weight_decay=0.2),
    optimizer("RMSPROP", 5, 5, 0.01),
    optimizer("RMSPROP", 5, 5, 0.01, alpha=0.9, momentum=0.8, weight_decay=0.1, eps=1e-6),
    optimizer("RMSPROP", 5, 5, 0.01, alpha=0.95, centered=True),
    optimizer("RMSPROP", 5, 5, 0.01, alpha=0.95, momentum=0.9, centered=True, weight_decay=0.01),
    optimizer("ADAGRAD", 5, 5, 0.1),
    optimizer("ADAGRAD", 5, 5, 0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.5, eps=1e-6),
])
