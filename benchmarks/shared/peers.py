"""The programs Sylvite is compared with, each at its best settings for latency: load(path, ...) gives a function that
runs the model once on a dict of inputs and returns the outputs in graph order."""
import importlib.metadata
import os
import tempfile

import numpy as np


def quantized_dynamically(path, folder):
    """The model as ONNX Runtime's own quantiser writes it: weights i8, activations u8, a scale for each tensor of them."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    result = os.path.join(folder, "dynamic.onnx")
    quantize_dynamic(path, result, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
    return result


def load_onnxruntime(path, threads, precision):
    """Computes f32 for every `precision` but int8-dynamic: the CPU provider has no lower one for a float model."""
    import onnxruntime

    if precision == "int8-dynamic":
        with tempfile.TemporaryDirectory() as folder:
            return load_onnxruntime(quantized_dynamically(path, folder), threads, "f32")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def load_openvino(path, threads, precision):
    import openvino

    if precision == "int8-dynamic":
        raise ValueError("OpenVINO quantises with another package: --peers onnxruntime")
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


def load_inductor(path, threads, precision, mode="default"):
    """torch.compile with frozen weights. Transformers run as plain modules, where attention is one call."""
    import torch
    import torch._inductor.config

    import torch_graph
    import torch_models

    if precision != "f32":
        raise ValueError(f"torch is compared in f32 only, not {precision}")
    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True
    name = os.path.splitext(os.path.basename(path))[0]
    is_plain = name in torch_models.MODELS and name != "resnet50"
    compiled = torch.compile(torch_models.load(name, path) if is_plain else torch_graph.load(path), mode=mode)

    def run(inputs):
        with torch.inference_mode():
            result = compiled(*[torch.from_numpy(array) for array in inputs.values()])
        return [value.numpy() for value in (result if isinstance(result, tuple) else [result])]

    return run


def load_inductor_autotune(path, threads, precision):
    return load_inductor(path, threads, precision, "max-autotune")


LOADERS = {"onnxruntime": load_onnxruntime, "openvino": load_openvino, "inductor": load_inductor,
           "inductor_autotune": load_inductor_autotune}


def version(peer):
    return importlib.metadata.version("torch" if peer.startswith("inductor") else peer)


def draw_inputs(path, seed=0):
    """The same inputs for the same seed: floats standard normal, integers below 100; open dimensions are 1."""
    import onnx

    rng = np.random.default_rng(seed)
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
