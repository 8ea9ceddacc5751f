"""JAX on the CPU: jit over the whole step with donated state, channels last, optax.adamw."""

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

import os  # noqa: E402

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
import optax  # noqa: E402
from jax import lax  # noqa: E402

jax.config.update("jax_default_prng_impl", "rbg")  # its quick generator
MOMENTUM, EPS = 0.1, 1e-5  # of norms

# A model is two trees, parameters and running statistics, and forward(parameters, state, inputs, key), which returns
# output and new state; key is None in evaluation mode.


class Maker:
    """Draws initial values on the host."""

    def __init__(self):
        self.random = numpy.random.default_rng(1)

    def uniform(self, shape, fan_in):
        bound = fan_in**-0.5
        return self.random.uniform(-bound, bound, shape).astype(numpy.float32)

    def normal(self, *shape):
        return (GPT_DEVIATION * self.random.standard_normal(shape, numpy.float32)).astype(numpy.float32)

    def linear(self, inputs, outputs):
        return {"w": self.uniform((inputs, outputs), inputs), "b": self.uniform((outputs,), inputs)}

    def conv(self, kernel, inputs, outputs, bias=True):
        fan_in = inputs * int(numpy.prod(kernel))
        parameters = {"w": self.uniform((*kernel, inputs, outputs), fan_in)}
        if bias:
            parameters["b"] = self.uniform((outputs,), fan_in)
        return parameters

    @staticmethod
    def norm(features):
        return {"g": numpy.ones(features, numpy.float32), "b": numpy.zeros(features, numpy.float32)}

    @staticmethod
    def statistics(features):
        return {"mean": numpy.zeros(features, numpy.float32), "var": numpy.ones(features, numpy.float32)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def conv(p, x, stride=1):
    axes = x.ndim - 2
    pad = [(k // 2, k // 2) for k in p["w"].shape[:axes]]
    names = ("NHWC", "HWIO", "NHWC") if axes == 2 else ("NWC", "WIO", "NWC")
    y = lax.conv_general_dilated(x, p["w"], (stride,) * axes, pad, dimension_numbers=names)
    return y + p["b"] if "b" in p else y


def max_pool(x):
    """Windows of two. By reshape, whose gradient is quicker here than that of reduce_window."""
    axes = x.ndim - 2
    shape = [x.shape[0]]
    for extent in x.shape[1:-1]:
        shape += [extent // 2, 2]
    x = x[(slice(None), *(slice(0, extent // 2 * 2) for extent in x.shape[1:-1]))]
    return x.reshape(*shape, x.shape[-1]).max(tuple(range(2, 2 * axes + 1, 2)))


def batch_norm(p, s, x, training):
    if not training:
        return (x - s["mean"]) * (lax.rsqrt(s["var"] + EPS) * p["g"]) + p["b"], s
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    var = jnp.maximum((x * x).mean(axes) - mean * mean, 0)
    n = x.size // x.shape[-1]
    new = {
        "mean": (1 - MOMENTUM) * s["mean"] + MOMENTUM * mean,
        "var": (1 - MOMENTUM) * s["var"] + MOMENTUM * var * (n / (n - 1)),
    }
    return (x - mean) * (lax.rsqrt(var + EPS) * p["g"]) + p["b"], new


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + EPS) * p["g"] + p["b"]


def dropout(x, probability, key):
    if key is None or probability == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - probability, x.shape), x / (1 - probability), 0)


def mlp(make):
    p = [make.linear(784, 512), make.linear(512, 256), make.linear(256, IMAGE_CLASSES)]

    def forward(p, s, inputs, key):
        x = inputs[0].reshape(inputs[0].shape[0], -1)
        return linear(p[2], jax.nn.relu(linear(p[1], jax.nn.relu(linear(p[0], x))))), s

    return p, [], forward


def cnn(make):
    p = [make.conv((3, 3), 1, 32), make.conv((3, 3), 32, 64), make.linear(3136, 128), make.linear(128, IMAGE_CLASSES)]

    def forward(p, s, inputs, key):
        x = max_pool(jax.nn.relu(conv(p[0], inputs[0])))
        x = max_pool(jax.nn.relu(conv(p[1], x)))
        return linear(p[3], jax.nn.relu(linear(p[2], x.reshape(x.shape[0], -1)))), s

    return p, [], forward


def resnet20(make):
    p, s, strides = [[make.conv((3, 3), 3, 16, bias=False), make.norm(16)]], [[make.statistics(16)]], [1]
    channels = 16
    for stage in range(3):
        for block in range(3):
            out = 16 << stage
            p.append([make.conv((3, 3), channels, out, False), make.norm(out)])
            p[-1] += [make.conv((3, 3), out, out, False), make.norm(out)]
            s.append([make.statistics(out), make.statistics(out)])
            if out != channels:
                p[-1] += [make.conv((1, 1), channels, out, False), make.norm(out)]
                s[-1].append(make.statistics(out))
            strides.append(2 if stage > 0 and block == 0 else 1)
            channels = out
    p.append([make.linear(channels, IMAGE_CLASSES)])

    def forward(p, s, inputs, key):
        training = key is not None
        new = []
        x, stem = batch_norm(p[0][1], s[0][0], conv(p[0][0], inputs[0]), training)
        x = jax.nn.relu(x)
        new.append([stem])
        for q, t, stride in zip(p[1:-1], s[1:], strides[1:]):
            y, t1 = batch_norm(q[1], t[0], conv(q[0], x, stride), training)
            y, t2 = batch_norm(q[3], t[1], conv(q[2], jax.nn.relu(y)), training)
            new.append([t1, t2])
            if len(q) > 4:
                x, t3 = batch_norm(q[5], t[2], conv(q[4], x, stride), training)
                new[-1].append(t3)
            x = jax.nn.relu(y + x)
        return linear(p[-1][0], x.mean((1, 2))), new

    return p, s, forward


def transit(make):
    def branch(kernels):
        p, s, channels = [], [], 1
        for out, kernel in zip(TRANSIT_CHANNELS, kernels):
            p.append([make.conv((kernel,), channels, out), make.norm(out)])
            s.append(make.statistics(out))
            channels = out
        return p, s

    (p1, s1), (p2, s2) = branch(TRANSIT_GLOBAL_KERNELS), branch(TRANSIT_LOCAL_KERNELS)
    features = 2 * TRANSIT_CHANNELS[-1]
    head = [make.norm(features), make.linear(features, TRANSIT_HIDDEN), make.linear(TRANSIT_HIDDEN, 1)]

    def forward(p, s, inputs, key):
        means, new = [], []
        for q, t, x in zip(p[:2], s, inputs):
            new.append([])
            for (convolution, norm), statistics in zip(q, t):
                x, changed = batch_norm(norm, statistics, conv(convolution, x), key is not None)
                x = max_pool(jax.nn.relu(x))
                new[-1].append(changed)
            means.append(x.mean(1))
        x = jax.nn.relu(linear(p[2][1], layer_norm(p[2][0], jnp.concatenate(means, 1))))
        return linear(p[2][2], dropout(x, TRANSIT_DROPOUT, key)).reshape(-1), new

    return [p1, p2, head], [s1, s2], forward


def gpt(make, form):
    def block():
        w = form.width
        weights = {"project": (w, 3 * w), "result": (w, w), "up": (w, 4 * w), "down": (4 * w, w)}
        p = {name: {"w": make.normal(*shape), "b": numpy.zeros(shape[1], "f")} for name, shape in weights.items()}
        return {**p, "norm1": make.norm(w), "norm2": make.norm(w)}

    p = {
        "tokens": make.normal(form.vocabulary, form.width),
        "positions": make.normal(form.context, form.width),
        "blocks": [block() for _ in range(form.layers)],
        "norm": make.norm(form.width),
    }

    def forward(p, s, inputs, key):
        keys = [None] * (1 + 2 * form.layers) if key is None else list(jax.random.split(key, 1 + 2 * form.layers))
        ids = inputs[0]
        n, t = ids.shape
        x = dropout(p["tokens"][ids] + p["positions"][:t], form.dropout, keys[0])
        for i, q in enumerate(p["blocks"]):
            heads = linear(q["project"], layer_norm(q["norm1"], x)).reshape(n, t, 3, form.heads, -1)
            y = jax.nn.dot_product_attention(heads[:, :, 0], heads[:, :, 1], heads[:, :, 2], is_causal=True)
            x = x + dropout(linear(q["result"], y.reshape(n, t, -1)), form.dropout, keys[1 + 2 * i])
            y = jax.nn.gelu(linear(q["up"], layer_norm(q["norm2"], x)), approximate=True)
            x = x + dropout(linear(q["down"], y), form.dropout, keys[2 + 2 * i])
        return layer_norm(p["norm"], x) @ p["tokens"].T, s

    return p, [], forward


def make_batch(workload):
    random = numpy.random.default_rng(2)
    n = workload.batch
    if workload.gpt:
        shape = (n, workload.gpt.context)
        ids, target = (random.integers(workload.gpt.vocabulary, size=shape).astype("int32") for _ in range(2))
        return (ids,), target
    if workload.name == "transit":
        views = (random.standard_normal((n, points, 1), "f") for points in (TRANSIT_GLOBAL, TRANSIT_LOCAL))
        return tuple(views), random.integers(2, size=n).astype("f")
    images = random.uniform(-1, 1, (n, *workload.image)).astype("f")
    return (images,), random.integers(IMAGE_CLASSES, size=n).astype("int32")


def loss_of(workload, output, target):
    if workload.name == "transit":
        return optax.sigmoid_binary_cross_entropy(output, target).mean()
    return optax.softmax_cross_entropy_with_integer_labels(output, target).mean()


class Jax(Session):
    def __init__(self, workload):
        super().__init__("jax", jax.__version__, workload)
        inputs, target = make_batch(workload)
        self.batch = jax.block_until_ready((tuple(map(jnp.asarray, inputs)), jnp.asarray(target)))

    def make(self, mode):
        workload, (inputs, target) = self.workload, self.batch
        models = {"mlp": mlp, "cnn": cnn, "resnet20": resnet20, "transit": transit}
        p, s, forward = gpt(Maker(), workload.gpt) if workload.gpt else models[workload.name](Maker())
        p, s = jax.tree.map(jnp.asarray, (p, s))
        count = sum(leaf.size for leaf in jax.tree.leaves(p))
        if mode == "infer":
            infer = jax.jit(lambda p, s, inputs: forward(p, s, inputs, None)[0])
            return (lambda: infer(p, s, inputs)), count

        adamw = optax.adamw(RATE, *workload.betas, weight_decay=workload.weight_decay)
        optimizer = optax.chain(optax.clip_by_global_norm(workload.clip), adamw) if workload.clip else adamw

        def train(p, s, o, key, inputs, target):
            key, now = jax.random.split(key)

            def loss(p):
                output, new = forward(p, s, inputs, now)
                return loss_of(workload, output, target), new

            (value, s), gradients = jax.value_and_grad(loss, has_aux=True)(p)
            updates, o = optimizer.update(gradients, o, p)
            return optax.apply_updates(p, updates), s, o, key, value

        train = jax.jit(train, donate_argnums=(0, 1, 2, 3))
        held = [p, s, jax.jit(optimizer.init)(p), jax.random.key(3)]
        del p, s

        def step():
            *held[:], value = train(*held, inputs, target)
            return value

        return step, count

    def wait(self, handle):
        jax.block_until_ready(handle)

    def loss_of(self, handle):
        return float(handle) if handle.ndim == 0 else None


sys.exit(serve(options, Jax(WORKLOADS[options.workload])))
