"""The workloads of `samebytes bench`, as numbers: what every peer builds its model from and is checked against.

Models: engine/nn/models_*.cpp; batches, rates and the rest of AdamW: examples/workloads/*.cpp.
"""

from dataclasses import dataclass

IMAGE_CLASSES = 10
TRANSIT_GLOBAL, TRANSIT_LOCAL = 2001, 201  # points of the two views of a light curve
TRANSIT_CHANNELS = (32, 32, 64)
TRANSIT_GLOBAL_KERNELS, TRANSIT_LOCAL_KERNELS = (7, 5, 5), (5, 3, 3)
TRANSIT_HIDDEN, TRANSIT_DROPOUT = 128, 0.3
GPT_DEVIATION = 0.02  # of the initial weights

# The rate of every peer's AdamW. It changes no operation, but with the workload's own rate thousands of steps on one
# batch of noise would learn it by heart, and gradients that fade into denormal numbers would slow the peer down.
RATE = 1e-6


@dataclass(frozen=True)
class Gpt:
    """GPT-2's architecture: layers of width `width`, windows of `context` tokens, the output tied to the embedding."""

    vocabulary: int
    context: int
    layers: int
    heads: int
    width: int
    dropout: float


@dataclass(frozen=True)
class Workload:
    """One row of the comparison."""

    name: str
    ours: tuple  # what `samebytes bench` is told
    batch: int
    parameters: int  # of our model; a peer with another number is refused
    weight_decay: float = 1e-2
    betas: tuple = (0.9, 0.999)
    clip: float = 0.0  # largest norm of all gradients together; 0: not clipped
    image: tuple = ()  # height, width, channels
    gpt: Gpt = None


WORKLOADS = {
    w.name: w
    for w in (
        Workload("mlp", ("mlp",), 64, 535818, image=(28, 28, 1)),
        Workload("cnn", ("cnn",), 64, 421642, image=(28, 28, 1)),
        Workload("resnet20", ("resnet20",), 64, 272474, weight_decay=5e-2, image=(32, 32, 3)),
        Workload("transit", ("transit",), 64, 42625),
        Workload(
            "gpt-nano",
            ("gpt", "--size", "nano"),
            64,
            809856,
            weight_decay=0.1,
            betas=(0.9, 0.99),
            clip=1.0,
            gpt=Gpt(vocabulary=65, context=64, layers=4, heads=4, width=128, dropout=0.0),
        ),
        Workload(
            "gpt-small",
            ("gpt", "--size", "small", "--context", "128"),
            4,
            123751680,
            weight_decay=0.1,
            betas=(0.9, 0.95),
            clip=1.0,
            gpt=Gpt(vocabulary=50257, context=128, layers=12, heads=12, width=768, dropout=0.1),
        ),
    )
}
