"""What every extent of an ONNX graph is at several sizes at once, which is all that open_sizes.py knows of operators.

An extent is a tuple of numbers, one for each trial; trial 0 has the sizes that the model was exported with. Extents that
are the same at every trial are constant. The others are told apart by their numbers, and written as factors: numbers, and
Atoms, each of which is an extent of some value (`Shape` of `value` at `axis` gives it when the model runs).
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

MOST_DATA = 1 << 18  # elements of a value that is computed here
MOST_SHAPE = 64  # elements of a value that may be a shape
# What the rules in onnx let pass: input and axis, and the input and axis that it must be equal to.
EQUAL_AXES = {
    "Conv": [(0, 1, 1, 1)],
    "Gemm": [(0, 1, 1, 0)],
    "RNN": [(5, 1, 0, 1)],
    "GRU": [(5, 1, 0, 1)],
    "LSTM": [(5, 1, 0, 1), (6, 1, 0, 1)],
}


class Unfit(Exception):
    """A node does not fit at one of the trials."""


class Atom(NamedTuple):
    extent: tuple
    value: str
    axis: int
    name: str


class Value(NamedTuple):
    """`shape`: an extent for each axis, or None. `data`: an array for each trial, or None."""

    element: int
    shape: list | None
    data: list | None = None


def is_constant(extent):
    return len(set(extent)) == 1


def product(factors, trial=0):
    return math.prod(factor.extent[trial] if isinstance(factor, Atom) else factor for factor in factors)


class Extents:
    """The factors of every extent that was met."""

    def __init__(self, count):
        self.count = count
        self.atoms = []
        self.known = {}

    def constant(self, number):
        return (int(number),) * self.count

    def of(self, factors):
        """The extent of these factors, which are remembered for it."""
        extent = tuple(product(factors, trial) for trial in range(self.count))
        if not is_constant(extent):
            self.known[extent] = tuple(factors)
        return extent

    def add(self, extent, value, axis, name=""):
        self.atoms.append(Atom(extent, value, axis, name))
        self.known.setdefault(extent, (self.atoms[-1],))

    def factors(self, extent, value="", axis=0):
        """Atoms and at most one number; an extent that is no product of known ones is one of `value`."""
        if is_constant(extent):
            return (extent[0],)
        if extent not in self.known:
            found = self.find_product(extent)
            if found:
                self.known[extent] = found
            elif value:
                self.add(extent, value, axis)
            else:
                raise Unfit(f"an extent of {extent[0]} that no value has")
        return self.known[extent]

    def find_product(self, extent):
        for count in (1, 2, 3):
            for atoms in itertools.combinations(self.atoms, count):
                divisors = [math.prod(atom.extent[trial] for atom in atoms) for trial in range(self.count)]
                ratio = extent[0] // max(divisors[0], 1)
                if all(ratio * divisor == number for divisor, number in zip(divisors, extent)):
                    return (*atoms, ratio) if ratio != 1 else atoms
        return None


def arrangements(factors, target):
    """All ways to split `factors` (numbers and atoms, in order) over extents that are `target` at trial 0, best first.

    An atom that was 1 may stand alone where the target has a 1, begin a dimension, or end one: in that order.
    """

    def walk(i, rest, left, dims, cost):
        j = len(dims) - 1
        if i == len(factors):
            if left == 1 and all(extent == 1 for extent in target[j + 1:]):
                yield cost, [*dims, *([()] * (len(target) - j - 1))]
            return
        if left == 1 and j + 1 < len(target):
            yield from walk(i, rest, target[j + 1], [*dims, ()], cost)
        following = factors[i + 1] if i + 1 < len(factors) else 1
        if isinstance(rest, Atom):
            size = rest.extent[0]
            if left % size == 0:
                more = 2 if dims[j] else 0 if target[j] == size else 1
                yield from walk(i + 1, following, left // size, [*dims[:j], (*dims[j], rest)], cost + more)
        elif left % rest == 0:
            yield from walk(i + 1, following, left // rest, [*dims[:j], (*dims[j], rest)], cost)
        elif left > 1 and rest % left == 0:
            yield from walk(i, rest // left, 1, [*dims[:j], (*dims[j], left)], cost)

    factors = [factor for factor in factors if factor != 1]
    if not target or not all(extent > 0 for extent in target):
        return []
    found = sorted(itertools.islice(walk(0, factors[0] if factors else 1, target[0], [()], 0), 200), key=lambda f: f[0])
    return [dims for _, dims in found]


def constant_value(tensor, count):
    """An initializer; its data where it has any and is no large table."""
    shape = [(dim,) * count for dim in tensor.dims]
    if tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > MOST_DATA:
        return Value(tensor.data_type, shape)
    return Value(tensor.data_type, shape, [numpy_helper.to_array(tensor)] * count)


def tensor_type(value, trial):
    shape = None if value.shape is None else [extent[trial] for extent in value.shape]
    return helper.make_tensor_type_proto(value.element, shape)


class Rules:
    """The type rules and the meaning of operators, from the onnx package."""

    def __init__(self, model, count):
        self.count = count
        self.opsets = list(model.opset_import)
        self.versions = {opset.domain: opset.version for opset in self.opsets}
        self.ir_version = model.ir_version
        self.kept = {}

    def infer(self, node, values):
        """The outputs of a node by name; a name that is left out has no tensor type."""
        if any(name and name not in values for name in node.input):
            return {}
        inputs = {name: values[name] for name in node.input if name}
        data = {name: value.data for name, value in inputs.items() if value.data and value.data[0].size <= MOST_SHAPE}
        key = (node.SerializeToString(), repr([value[:2] for value in inputs.values()]), repr(data))
        if key not in self.kept:
            self.kept[key] = self.infer_trials(node, inputs, data)
        if isinstance(self.kept[key], Unfit):
            raise self.kept[key]
        return self.with_data(node, inputs, self.kept[key])

    def infer_trials(self, node, inputs, data):
        try:
            check_equal_axes(node, inputs)
            schema = onnx.defs.get_schema(node.op_type, self.versions[node.domain], node.domain)
            trials = [onnx.shape_inference.infer_node_outputs(
                schema, node, {name: tensor_type(value, trial) for name, value in inputs.items()},
                {name: numpy_helper.from_array(arrays[trial], name) for name, arrays in data.items()},
                opset_imports=self.opsets, ir_version=self.ir_version) for trial in range(self.count)]
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, Unfit) as error:
            return Unfit(f"{node.op_type} '{node.output[0]}': {str(error).strip()}")
        return {name: joined(types) for name, types in joined_names(trials) if types[0].HasField("tensor_type")}

    def with_data(self, node, inputs, outputs):
        """The same with data where all inputs have it and there is little of it."""
        small = all(value.shape is not None and product([extent[0] for extent in value.shape]) <= MOST_DATA
                    for value in outputs.values())
        if node.op_type == "Shape" and inputs[node.input[0]].shape is not None:
            arrays = self.shapes_of(node, inputs[node.input[0]].shape)
        elif small and outputs and all(value.data for value in inputs.values()) and not has_graphs(node):
            arrays = self.evaluate(node, inputs)
        else:
            return outputs
        if arrays is None:
            return outputs
        return {name: value._replace(data=list(data), shape=[tuple(dims) for dims in zip(*(a.shape for a in data))])
                for (name, value), data in zip(outputs.items(), zip(*arrays))}

    def shapes_of(self, node, shape):
        bounds = {attribute.name: attribute.i for attribute in node.attribute}
        kept = shape[bounds.get("start", 0):bounds.get("end", len(shape))]
        return [[np.array([extent[trial] for extent in kept], np.int64)] for trial in range(self.count)]

    def evaluate(self, node, inputs):
        graph = helper.make_graph(
            [node], "node", [helper.make_value_info(name, tensor_type(value, 0)) for name, value in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in node.output])
        runner = ReferenceEvaluator(helper.make_model(graph, opset_imports=self.opsets, ir_version=self.ir_version))
        same = all(array is value.data[0] for value in inputs.values() for array in value.data)
        try:
            runs = [[np.asarray(array) for array in runner.run(None, {k: v.data[i] for k, v in inputs.items()})]
                    for i in range(1 if same else self.count)]
        except Exception:  # the evaluator lacks some meanings; without data a value is only known by its shape
            return None
        return runs * self.count if same else runs


def has_graphs(node):
    return any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute)


def joined_names(trials):
    return [(name, [trial[name] for trial in trials]) for name in trials[0] if all(name in t for t in trials)]


def joined(types):
    """One Value of the types of an output at every trial; without a shape where one is not known or ranks differ."""
    tensors = [value.tensor_type for value in types]
    shapes = [[dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim] for tensor in tensors]
    known = all(tensor.HasField("shape") for tensor in tensors) and all(None not in shape for shape in shapes)
    if known and len({len(shape) for shape in shapes}) > 1:
        raise Unfit("its rank depends on sizes")
    return Value(tensors[0].elem_type, [tuple(dims) for dims in zip(*shapes)] if known else None)


def equal_axes(node, shapes):
    """(input, axis, input, axis) of those in EQUAL_AXES that the node has; `shapes`: of its inputs."""
    numbers = {attribute.name: attribute.i for attribute in node.attribute}
    if numbers.get("layout"):
        return
    for one, axis, other, other_axis in EQUAL_AXES.get(node.op_type, []):
        if max(one, other) < len(shapes) and shapes[one] is not None and shapes[other] is not None:
            yield one, axis - numbers.get("transA", 0), other, other_axis + numbers.get("transB", 0)


def check_equal_axes(node, inputs):
    shapes = [inputs[name].shape if name else None for name in node.input]
    group = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
    for one, axis, other, other_axis in equal_axes(node, shapes):
        if any(a != b * group for a, b in zip(shapes[one][axis], shapes[other][other_axis])):
            raise Unfit(f"{shapes[one][axis]} does not match {shapes[other][other_axis]} of '{node.input[other]}'")
