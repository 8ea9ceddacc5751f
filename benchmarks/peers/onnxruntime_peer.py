"""ONNX Runtime on the CPU: inference of the networks that PyTorch exported (networks.py).

Words of a variant: passive (threads of the session that wait do not spin); streams (a session of one thread for each
core, as many batches at once, instead of one that uses all cores for one batch).
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from worker import Session, parse, serve
from workloads import WORKLOADS

options = parse(__doc__)

import numpy  # noqa: E402,F401  (loaded with the framework, not with the model)
import onnxruntime  # noqa: E402
from networks import Expected  # noqa: E402


class OnnxRuntime(Session):
    def __init__(self, workload):
        super().__init__("onnxruntime", onnxruntime.__version__, workload)
        self.expected = Expected(options.networks, workload.name)
        self.inputs = self.expected.inputs()

    def make(self, mode):
        if mode != "infer":
            raise ValueError("ONNX Runtime is measured in inference only")
        streams = options.threads if "streams" in options.words else 1
        chosen = onnxruntime.SessionOptions()
        chosen.intra_op_num_threads = options.threads // streams
        chosen.inter_op_num_threads = 1
        chosen.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        if "passive" in options.words:
            chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = os.path.join(options.networks, self.workload.name + ".onnx")
        session = onnxruntime.InferenceSession(path, chosen, providers=["CPUExecutionProvider"])
        bindings = []  # memory of inputs and outputs, one for each batch that is under way
        for _ in range(streams):
            binding = session.io_binding()
            for i, value in enumerate(self.inputs):
                binding.bind_cpu_input(f"input{i}", value)
            binding.bind_output("output")
            bindings.append(binding)
        if streams == 1:

            def step():
                session.run_with_iobinding(bindings[0])
                return bindings[0]

        else:
            pool = ThreadPoolExecutor(streams)
            under_way = []

            def run(binding):
                session.run_with_iobinding(binding)
                return binding

            def step():
                binding = bindings.pop() if bindings else under_way.pop(0).result()
                under_way.append(pool.submit(run, binding))
                return under_way[-1]

        return step, self.expected.parameters()

    def wait(self, handle):
        if hasattr(handle, "result"):
            handle.result()

    def output_error(self, handle):
        binding = handle.result() if hasattr(handle, "result") else handle
        return self.expected.error(lambda stride: binding.get_outputs()[0].numpy().reshape(-1)[::stride])


if __name__ == "__main__":
    sys.exit(serve(options, OnnxRuntime(WORKLOADS[options.workload])))
