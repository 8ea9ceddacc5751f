"""PyTorch: the workloads eager and compiled, in its own layout and with channels last.

Words of a variant: eager or compile; channels_last; freezing (inductor's, of weights, in inference).
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
torch.set_float32_matmul_precision("highest")  # f32 throughout
COMPILED = "compile" in options.words
CHANNELS_LAST = "channels_last" in options.words


class Torch(Session):
    def __init__(self, workload):
        super().__init__("torch", torch.__version__, workload)
        self.inputs, self.target = make_batch(workload, CHANNELS_LAST)
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
        model = make_model(workload, CHANNELS_LAST)
        parameters = list(model.parameters())
        count = sum(p.numel() for p in parameters)
        model.train(mode == "train")

        def loss(inputs, target):
            return loss_of(workload, model(*inputs), target)

        compiled = torch.compile if COMPILED else (lambda f: f)
        if mode == "train":
            optimizer = torch.optim.AdamW(
                parameters, lr=RATE, betas=workload.betas, weight_decay=workload.weight_decay, fused=True
            )
            forward = compiled(loss)

            def step():
                optimizer.zero_grad()
                value = forward(self.inputs, self.target)
                value.backward()
                if workload.clip:
                    nn.utils.clip_grad_norm_(parameters, workload.clip)
                optimizer.step()
                return value.detach()

        else:
            del parameters  # freezing lets go of what it has folded
            forward = compiled(model)

            def step():
                with torch.no_grad():
                    return forward(*self.inputs)

        return step, count

    def loss_of(self, handle):
        return float(handle) if handle.ndim == 0 else None

    def output_error(self, handle):
        return self.expected.error(lambda stride: handle.reshape(-1)[::stride].numpy())


if __name__ == "__main__":
    sys.exit(serve(options, Torch(WORKLOADS[options.workload])))
