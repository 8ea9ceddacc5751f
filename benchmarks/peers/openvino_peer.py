"""OpenVINO on the CPU: inference, in f32, of the networks that PyTorch exported (networks.py).

Words of a variant: latency or throughput (the performance hint; throughput has as many batches under way as it asks
for); converted (its own conversion of the PyTorch model, instead of the ONNX file).
"""

import os
import sys

from worker import Session, parse, serve
from workloads import WORKLOADS

options = parse(__doc__, "latency")

import numpy  # noqa: E402,F401  (loaded with the framework, not with the model)
import openvino  # noqa: E402
from networks import Expected  # noqa: E402


class OpenVino(Session):
    def __init__(self, workload):
        super().__init__("openvino", openvino.__version__.split("-")[0], workload)
        self.expected = Expected(options.networks, workload.name)
        self.inputs = self.expected.inputs()
        self.core = openvino.Core()
        self.core.get_versions("CPU")  # loads the plugin, which is of the framework

    def make(self, mode):
        if mode != "infer":
            raise ValueError("OpenVINO is measured in inference only")
        ending = ".xml" if "converted" in options.words else ".onnx"
        settings = {
            "PERFORMANCE_HINT": "THROUGHPUT" if "throughput" in options.words else "LATENCY",
            "INFERENCE_NUM_THREADS": options.threads,
            # Where the processor has bf16, it would be taken, and the outputs would be other ones.
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY",
        }
        path = os.path.join(options.networks, self.workload.name + ending)
        network = self.core.compile_model(self.core.read_model(path), "CPU", settings)
        # run_steps has two steps under way, and each of them a batch.
        wanted = min(2, network.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        requests = []
        for _ in range(wanted):
            requests.append(network.create_infer_request())
            for i, value in enumerate(self.inputs):
                requests[-1].set_input_tensor(i, openvino.Tensor(value, shared_memory=True))
        under_way = []

        def step():
            if len(under_way) == len(requests):
                under_way[0].wait()
                request = under_way.pop(0)
            else:
                request = requests[len(under_way)]
            under_way.append(request)
            request.start_async()
            return request

        return step, self.expected.parameters()

    def wait(self, handle):
        handle.wait()

    def output_error(self, handle):
        return self.expected.error(lambda stride: handle.get_output_tensor(0).data.reshape(-1)[::stride])


if __name__ == "__main__":
    sys.exit(serve(options, OpenVino(WORKLOADS[options.workload])))
