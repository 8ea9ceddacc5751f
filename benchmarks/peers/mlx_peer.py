"""MLX's CPU backend: mx.compile over the whole step, channels last as MLX has it."""

import sys

from worker import Session, parse, serve
from workloads import (
    GPT_DEVIATION,
    IMAGE_CLASSES,
    RATE,
    TRANSIT_CHANNELS,
    TRANSIT_DROPOUT,
    TRANSIT_GLOBAL,
    TRANSIT_GLOBAL_KERNELS,
    TRANSIT_HIDDEN,
    TRANSIT_LOCAL,
    TRANSIT_LOCAL_KERNELS,
    WORKLOADS,
)

options = parse(__doc__)

import importlib.metadata  # noqa: E402

import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
import mlx.optimizers as optim  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402

mx.set_default_device(mx.cpu)


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm(channels)
        if channels_in != channels:
            shortcut = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm(channels))

    def __call__(self, x):
        y = self.bn2(self.conv2(nn.relu(self.bn1(self.conv1(x)))))
        return nn.relu(y + (self.downsample(x) if "downsample" in self else x))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm(16)
        blocks, channels = [], 16
        for stage in range(3):
            for block in range(3):
                blocks.append(BasicBlock(channels, 16 << stage, 2 if stage > 0 and block == 0 else 1))
                channels = 16 << stage
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(channels, IMAGE_CLASSES)

    def __call__(self, x):
        return self.fc(self.blocks(nn.relu(self.bn1(self.conv1(x)))).mean((1, 2)))


def transit_branch(kernels):
    layers, channels = [], 1
    for out, kernel in zip(TRANSIT_CHANNELS, kernels):
        layers += [nn.Conv1d(channels, out, kernel, padding=kernel // 2), nn.BatchNorm(out), nn.ReLU(), nn.MaxPool1d(2)]
        channels = out
    return nn.Sequential(*layers)


class Transit(nn.Module):
    def __init__(self):
        super().__init__()
        features = 2 * TRANSIT_CHANNELS[-1]
        self.glob, self.local = transit_branch(TRANSIT_GLOBAL_KERNELS), transit_branch(TRANSIT_LOCAL_KERNELS)
        self.head = nn.Sequential(
            nn.LayerNorm(features),
            nn.Linear(features, TRANSIT_HIDDEN),
            nn.ReLU(),
            nn.Dropout(TRANSIT_DROPOUT),
            nn.Linear(TRANSIT_HIDDEN, 1),
        )

    def __call__(self, glob, local):
        return self.head(mx.concatenate([self.glob(glob).mean(1), self.local(local).mean(1)], 1)).reshape(-1)


class Block(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.heads = form.heads
        self.norm1, self.norm2 = nn.LayerNorm(form.width), nn.LayerNorm(form.width)
        self.project, self.result = nn.Linear(form.width, 3 * form.width), nn.Linear(form.width, form.width)
        self.up, self.down = nn.Linear(form.width, 4 * form.width), nn.Linear(4 * form.width, form.width)
        self.drop = nn.Dropout(form.dropout)

    def __call__(self, x):
        n, t, c = x.shape
        q, k, v = self.project(self.norm1(x)).reshape(n, t, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=(c // self.heads) ** -0.5, mask="causal")
        x = x + self.drop(self.result(y.transpose(0, 2, 1, 3).reshape(n, t, c)))
        return x + self.drop(self.down(nn.gelu_approx(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(form.vocabulary, form.width), nn.Embedding(form.context, form.width)
        self.blocks = [Block(form) for _ in range(form.layers)]
        self.norm, self.drop = nn.LayerNorm(form.width), nn.Dropout(form.dropout)
        normal = nn.init.normal(std=GPT_DEVIATION)
        self.apply(lambda parameter: normal(parameter) if parameter.ndim == 2 else parameter)

    def __call__(self, ids):
        x = self.drop(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.tokens.as_linear(self.norm(x))


class Flatten(nn.Module):
    def __call__(self, x):
        return x.reshape(x.shape[0], -1)


def mlp():
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, IMAGE_CLASSES)]
    return nn.Sequential(Flatten(), *layers)


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, IMAGE_CLASSES)),
    )


def make_batch(workload):
    n = workload.batch
    if workload.gpt:
        ids, target = (mx.random.randint(0, workload.gpt.vocabulary, (n, workload.gpt.context)) for _ in range(2))
        return (ids,), target
    if workload.name == "transit":
        views = tuple(mx.random.normal((n, points, 1)) for points in (TRANSIT_GLOBAL, TRANSIT_LOCAL))
        return views, mx.random.randint(0, 2, (n,)).astype(mx.float32)
    return (mx.random.uniform(-1, 1, (n, *workload.image)),), mx.random.randint(0, IMAGE_CLASSES, (n,))


class Mlx(Session):
    def __init__(self, workload):
        super().__init__("mlx", importlib.metadata.version("mlx"), workload)
        mx.random.seed(1)
        self.inputs, self.target = make_batch(workload)
        mx.eval(self.inputs, self.target)

    def make(self, mode):
        workload, inputs, target = self.workload, self.inputs, self.target
        models = {"mlp": mlp, "cnn": cnn, "resnet20": ResNet20, "transit": Transit}
        model = Gpt(workload.gpt) if workload.gpt else models[workload.name]()
        mx.eval(model.parameters())
        model.train(mode == "train")
        count = sum(value.size for _, value in tree_flatten(model.trainable_parameters()))
        if mode == "infer":
            forward = mx.compile(model.__call__, inputs=[model.state])

            def infer():
                output = forward(*inputs)
                mx.async_eval(output)
                return output

            return infer, count

        optimizer = optim.AdamW(
            RATE, betas=list(workload.betas), weight_decay=workload.weight_decay, bias_correction=True
        )
        optimizer.init(model.trainable_parameters())
        state = [model.state, optimizer.state, mx.random.state]

        def loss(inputs, target):
            output = model(*inputs)
            if workload.name == "transit":
                return nn.losses.binary_cross_entropy(output, target, reduction="mean")
            return nn.losses.cross_entropy(output, target, reduction="mean")

        value_and_gradients = nn.value_and_grad(model, loss)

        def train(inputs, target):
            value, gradients = value_and_gradients(inputs, target)
            if workload.clip:
                gradients, _ = optim.clip_grad_norm(gradients, workload.clip)
            optimizer.update(model, gradients)
            return value

        train = mx.compile(train, inputs=state, outputs=state)

        def step():
            value = train(inputs, target)
            mx.async_eval(value, state)
            return value

        return step, count

    def wait(self, handle):
        mx.eval(handle)

    def loss_of(self, handle):
        return float(handle) if handle.ndim == 0 else None


sys.exit(serve(options, Mlx(WORKLOADS[options.workload])))
