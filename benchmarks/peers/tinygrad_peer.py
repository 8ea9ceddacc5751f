"""tinygrad on the same OpenCL device that Samebytes uses (PoCL): TinyJit over the whole step."""

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
import os  # noqa: E402

os.environ["DEV"] = "CL"
os.environ["POCL_MAX_PTHREAD_COUNT"] = str(options.threads)

import numpy  # noqa: E402
from tinygrad import Context, Device, Tensor, TinyJit, nn  # noqa: E402


class Chain:
    """Layers in a row; those with weights are found by nn.state."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def __call__(self, x):
        return x.sequential(self.layers)


def relu(x):
    return x.relu()


class BasicBlock:
    def __init__(self, channels_in, channels, stride):
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if channels_in != channels:
            self.downsample = Chain(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def __call__(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


def resnet20():
    layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), relu], 16
    for stage in range(3):
        for block in range(3):
            layers.append(BasicBlock(channels, 16 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 16 << stage
    return Chain(*layers, lambda x: x.mean((2, 3)), nn.Linear(channels, IMAGE_CLASSES))


def transit_branch(kernels):
    layers, channels = [], 1
    for out, kernel in zip(TRANSIT_CHANNELS, kernels):
        layers += [nn.Conv2d(channels, out, (1, kernel), padding=(0, kernel // 2)), nn.BatchNorm2d(out), relu]
        layers.append(lambda x: x.max_pool2d((1, 2)))
        channels = out
    return Chain(*layers, lambda x: x.mean((2, 3)))


class Transit:
    def __init__(self):
        features = 2 * TRANSIT_CHANNELS[-1]
        self.glob, self.local = transit_branch(TRANSIT_GLOBAL_KERNELS), transit_branch(TRANSIT_LOCAL_KERNELS)
        head = [nn.LayerNorm(features), nn.Linear(features, TRANSIT_HIDDEN), relu]
        self.head = Chain(*head, lambda x: x.dropout(TRANSIT_DROPOUT), nn.Linear(TRANSIT_HIDDEN, 1))

    def __call__(self, glob, local):
        return self.head(self.glob(glob).cat(self.local(local), dim=1)).reshape(-1)


class Block:
    def __init__(self, form):
        self.heads, self.dropout = form.heads, form.dropout
        self.norm1, self.norm2 = nn.LayerNorm(form.width), nn.LayerNorm(form.width)
        self.project, self.result = nn.Linear(form.width, 3 * form.width), nn.Linear(form.width, form.width)
        self.up, self.down = nn.Linear(form.width, 4 * form.width), nn.Linear(4 * form.width, form.width)

    def __call__(self, x):
        n, t, c = x.shape
        q, k, v = self.project(self.norm1(x)).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        x = x + self.result(y).dropout(self.dropout)
        return x + self.down(self.up(self.norm2(x)).gelu()).dropout(self.dropout)


class Gpt:
    def __init__(self, form):
        self.dropout = form.dropout
        self.tokens, self.positions = nn.Embedding(form.vocabulary, form.width), nn.Embedding(form.context, form.width)
        self.blocks = [Block(form) for _ in range(form.layers)]
        self.norm = nn.LayerNorm(form.width)
        for parameter in nn.state.get_parameters(self):
            if len(parameter.shape) == 2:
                parameter.assign(GPT_DEVIATION * Tensor.randn(*parameter.shape))

    def __call__(self, ids):
        x = (self.tokens(ids) + self.positions.weight[: ids.shape[1]]).dropout(self.dropout)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def mlp():
    layers = (nn.Linear(784, 512), relu, nn.Linear(512, 256), relu, nn.Linear(256, IMAGE_CLASSES))
    return Chain(lambda x: x.flatten(1), *layers)


def cnn():
    return Chain(
        *(nn.Conv2d(1, 32, 3, padding=1), relu, Tensor.max_pool2d),
        *(nn.Conv2d(32, 64, 3, padding=1), relu, Tensor.max_pool2d),
        *(lambda x: x.flatten(1), nn.Linear(7 * 7 * 64, 128), relu, nn.Linear(128, IMAGE_CLASSES)),
    )


def make_batch(workload):
    random = numpy.random.default_rng(2)
    n = workload.batch
    if workload.gpt:
        shape = (n, workload.gpt.context)
        ids, target = (random.integers(workload.gpt.vocabulary, size=shape).astype("int32") for _ in range(2))
        return (ids,), target
    if workload.name == "transit":
        views = (random.standard_normal((n, 1, 1, points), "f") for points in (TRANSIT_GLOBAL, TRANSIT_LOCAL))
        return tuple(views), random.integers(2, size=n).astype("f")
    height, width, channels = workload.image
    images = random.uniform(-1, 1, (n, channels, height, width)).astype("f")
    return (images,), random.integers(IMAGE_CLASSES, size=n).astype("int32")


def clip(parameters, largest):
    norm = sum((p.grad.square().sum() for p in parameters), Tensor(0.0)).sqrt()
    scale = (largest / (norm + 1e-6)).minimum(1.0)
    for p in parameters:
        p.grad = p.grad * scale


class Tinygrad(Session):
    def __init__(self, workload):
        super().__init__("tinygrad", importlib.metadata.version("tinygrad"), workload)
        Tensor.manual_seed(1)
        inputs, target = make_batch(workload)
        self.inputs, self.target = tuple(Tensor(x).realize() for x in inputs), Tensor(target).realize()

    def make(self, mode):
        workload, target = self.workload, self.target
        models = {"mlp": mlp, "cnn": cnn, "resnet20": resnet20, "transit": Transit}
        model = Gpt(workload.gpt) if workload.gpt else models[workload.name]()
        # Running statistics are state, too, but no parameters.
        named = nn.state.get_state_dict(model)
        parameters = [p for name, p in named.items() if not name.endswith(("running_mean", "running_var", "tracked"))]
        Tensor.realize(*named.values())
        count = sum(p.numel() for p in parameters)
        if mode == "infer":
            infer = TinyJit(lambda *inputs: model(*inputs).realize())
            return (lambda: infer(*self.inputs)), count

        optimizer = nn.optim.AdamW(
            parameters, lr=RATE, b1=workload.betas[0], b2=workload.betas[1], weight_decay=workload.weight_decay
        )

        def train(*inputs):
            optimizer.zero_grad()
            output = model(*inputs)
            if workload.name == "transit":
                loss = output.binary_crossentropy_logits(target)
            else:
                loss = output.reshape(-1, output.shape[-1]).sparse_categorical_crossentropy(target.reshape(-1))
            loss.backward()
            if workload.clip:
                clip(parameters, workload.clip)
            return loss.realize(*optimizer.schedule_step())

        train = TinyJit(train)

        def step():
            with Context(TRAINING=1):
                return train(*self.inputs)

        return step, count

    def wait(self, handle):
        Device[Device.DEFAULT].synchronize()

    def loss_of(self, handle):
        return float(handle.item()) if handle.shape == () else None


sys.exit(serve(options, Tinygrad(WORKLOADS[options.workload])))
