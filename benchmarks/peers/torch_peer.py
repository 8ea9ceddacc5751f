"""PyTorch: the workloads eager and compiled, in its own layout and with channels last.

Words of a variant: eager, compile or graphs (compiled, and replayed as CUDA graphs); channels_last; freezing
(inductor's, of weights, in inference); cuda (model and batch on the GPU); bf16 (autocast around forward pass and loss,
parameters in f32).
"""

import sys

from worker import Session, parse, serve
from workloads import RATE, WORKLOADS

options = parse(__doc__, "eager")

import torch  # noqa: E402  (threads and devices are set before)
import torch.nn as nn  # noqa: E402
from networks import Expected  # noqa: E402
from torch_models import loss_of, make_batch, make_model  # noqa: E402

torch.set_num_threads(options.threads)
torch.set_float32_matmul_precision("highest")  # f32 throughout, no TF32
torch.backends.cudnn.allow_tf32 = False
DEVICE = "cuda" if "cuda" in options.words else "cpu"
BF16 = "bf16" in options.words
GRAPHS = "graphs" in options.words
COMPILED = GRAPHS or "compile" in options.words
CHANNELS_LAST = "channels_last" in options.words


def in_precision(function):
    """The function in bf16 where the variant says so."""

    def run(*arguments):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return function(*arguments)

    return run if BF16 else function


def compiled(function):
    if not COMPILED:
        return function
    return torch.compile(function, mode="reduce-overhead" if GRAPHS else None)


def enqueued(value):
    """The handle of a step: its result, and on the GPU the event of its end."""
    end = None
    if DEVICE == "cuda":
        end = torch.cuda.Event()
        end.record()
    return value, end


class Torch(Session):
    def __init__(self, workload):
        super().__init__("torch", torch.__version__, workload)
        inputs, target = make_batch(workload, CHANNELS_LAST)
        self.inputs, self.target = tuple(x.to(DEVICE) for x in inputs), target.to(DEVICE)
        self.expected = Expected(options.networks, workload.name)

    def load(self, mode):
        if mode == "train" or COMPILED:  # what the first optimizer or the first compilation would import
            import torch._dynamo
        if COMPILED:
            import torch._inductor.compile_fx
            import torch._inductor.config

            torch._inductor.config.freezing = "freezing" in options.words

    def make(self, mode):
        workload = self.workload
        model = make_model(workload, CHANNELS_LAST).to(DEVICE)
        parameters = list(model.parameters())
        count = sum(p.numel() for p in parameters)
        model.train(mode == "train")

        def loss(inputs, target):
            return loss_of(workload, model(*inputs), target)

        if mode == "train":
            optimizer = torch.optim.AdamW(
                parameters, lr=RATE, betas=workload.betas, weight_decay=workload.weight_decay, fused=True
            )
            forward = compiled(in_precision(loss))

            def step():
                optimizer.zero_grad()
                value = forward(self.inputs, self.target)
                value.backward()
                if workload.clip:
                    nn.utils.clip_grad_norm_(parameters, workload.clip)
                optimizer.step()
                return enqueued(value.detach())

        else:
            del parameters  # freezing lets go of what it has folded
            forward = compiled(in_precision(model))

            def step():
                with torch.no_grad():
                    return enqueued(forward(*self.inputs))

        return step, count

    def before_turn(self):
        torch.backends.cudnn.benchmark = True  # not earlier: it times kernels, perhaps while other peers are made

    def wait(self, handle):
        _, end = handle
        if end is not None:
            end.synchronize()

    def loss_of(self, handle):
        value, _ = handle
        return float(value) if value.ndim == 0 else None

    def output_error(self, handle):
        value, _ = handle
        if BF16:
            return None  # what is expected is f32's
        return self.expected.error(lambda stride: value.reshape(-1)[::stride].cpu().numpy())


if __name__ == "__main__":
    sys.exit(serve(options, Torch(WORKLOADS[options.workload])))
