"""The programs Sylvite is compared with, each at its best settings for latency: load(path, ...) gives a function that
runs the model once on a dict of inputs and returns the outputs in graph order."""
import importlib.metadata

import numpy as np


def load_onnxruntime(path, threads, precision):
    """Computes f32 whatever `precision` is: the CPU provider has no lower one for a float model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def load_openvino(path, threads, precision):
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
    })
    request = compiled.create_infer_request()
    outputs = list(compiled.outputs)

    def run(inputs):
        results = request.infer(inputs, share_inputs=True, share_outputs=True)
        return [results[output] for output in outputs]

    return run


LOADERS = {"onnxruntime": load_onnxruntime, "openvino": load_openvino}


def version(peer):
    return importlib.metadata.version(peer)


def draw_inputs(path):
    """Inputs with a fixed seed: floats standard normal, integers below 100; open dimensions are 1."""
    import onnx

    rng = np.random.default_rng(0)
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in weights:
            continue
        dims = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        inputs[value.name] = (rng.standard_normal(dims) if is_float else rng.integers(0, 100, dims)).astype(dtype)
    return inputs
