"""Follows a graph at several sizes at once, and mends it where it does not fit: the work of open_sizes.py."""

import copy
import itertools
import math
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto

from size_trials import Atom, Extents, Rules, Unfit, Value, arrangements, constant_value, equal_axes, is_constant
from size_writer import Count, Cut, Filled, Shaped, Stairs, Writer

BROADCASTING = {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
                "Where", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Min", "Max", "Sum", "Mean", "PRelu"}
# Of uniform inputs these make uniform outputs.
PLAIN = BROADCASTING | {"Cast", "Gather", "GatherElements", "Identity", "Not", "Transpose", "Unsqueeze"}
# Inputs whose elements are extents.
EXTENT_INPUTS = {"Reshape": (1,), "Expand": (1,), "ConstantOfShape": (0,), "Tile": (1,), "Slice": (1, 2), "Resize": (3,),
                 "Range": (0, 1, 2), "Split": (1,)}
STATEFUL = {"RNN", "GRU", "LSTM"}  # with states of the batch
MOST_KNOBS = 4
MOST_TRIES = 2000
TO_THE_END = (1 << 63) - 1


class Limited(Exception):
    """A size can only be as large as a table that has just so many rows."""

    def __init__(self, name, rows, table):
        super().__init__(name)
        self.name, self.rows, self.table = name, rows, table


class Choice(NamedTuple):
    """One of the meanings that a Reshape may have; `edits`: those made before it."""

    candidates: list
    picked: int
    edits: tuple


class Opening:
    """`named`: names or numbers of the inputs' dimensions; `trials`: the sizes of every name at each trial."""

    def __init__(self, model, named, trials):
        self.model, self.named, self.trials = model, named, trials
        self.nodes = list(model.graph.node)
        self.count = len(next(iter(trials.values()), (0,)))
        self.rules = Rules(model, self.count)
        self.initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self.producers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.consumers = {}
        for i, node in enumerate(self.nodes):
            for name in node.input:
                self.consumers.setdefault(name, []).append(i)
        self.inputs = {}  # (node, input) -> a made value that it reads instead
        self.made = {}  # name -> recipe of size_writer.py
        self.choices = {}  # Reshape node -> Choice
        self.limits = {}  # name of a size -> (most, table)

    # Following

    def begin(self):
        """The values that no node makes."""
        self.extents = Extents(self.count)
        self.values = {name: constant_value(tensor, self.count) for name, tensor in self.initializers.items()}
        element = {value.name: value.type.tensor_type.elem_type for value in self.model.graph.input}
        for value, dims in self.named.items():
            shape = [self.trials[dim] if isinstance(dim, str) else self.extents.constant(dim) for dim in dims]
            self.values[value] = Value(element[value], shape)
            for axis, (dim, extent) in enumerate(zip(dims, shape)):
                if isinstance(dim, str) and extent not in self.extents.known:
                    self.extents.add(extent, value, axis, dim)
        self.values.update({name: recipe.value() for name, recipe in self.made.items()})

    def follow(self):
        """Until every node fits at every trial."""
        index, tries, farthest = 0, 0, (-1, None)
        self.begin()
        while index < len(self.nodes):
            try:
                self.visit(index)
                index += 1
            except Unfit as error:
                tries += 1
                farthest = max(farthest, (index, error), key=lambda found: found[0])
                if tries > MOST_TRIES or not (self.mend(index) or self.step_back(index)):
                    raise farthest[1]  # what the best of all tries came to
                index = 0
                self.begin()
        self.check_outputs()

    def node(self, index):
        """A node with the inputs that it reads now."""
        changed = {i: name for (at, i), name in self.inputs.items() if at == index}
        if not changed:
            return self.nodes[index]
        node = copy.deepcopy(self.nodes[index])
        for i, name in changed.items():
            node.input[i] = name
        return node

    def visit(self, index):
        node = self.node(index)
        for name in node.output:
            self.values.pop(name, None)
        if node.op_type == "Reshape" and self.is_open(node.input[0]) and self.constant_data(node.input[1]) is not None:
            self.reshape(index, node)
            return
        if node.op_type in ("Slice", "Resize"):
            node = self.with_open_entries(index, node)
        for name, value in self.rules.infer(node, self.values).items():
            self.values[name] = value
            for axis, extent in enumerate(value.shape or []):
                self.extents.factors(extent, name, axis)

    def shape(self, name):
        return self.values[name].shape if name in self.values else None

    def is_open(self, name):
        return any(not is_constant(extent) for extent in self.shape(name) or [])

    def constant_data(self, name):
        """The array of a value that is the same at every trial, where it is known."""
        data = self.values[name].data if name in self.values else None
        same = data and all(array is data[0] or np.array_equal(array, data[0]) for array in data)
        return data[0] if same else None

    def reshape(self, index, node):
        value = self.values[node.input[0]]
        target = self.reshape_target(node, [extent[0] for extent in value.shape])
        factors = [factor for extent in value.shape for factor in self.extents.factors(extent)]
        candidates = arrangements(factors, target)
        if not candidates:
            raise Unfit(f"Reshape '{node.output[0]}' to {target} tears sizes apart")
        choice = self.choices.get(index)
        if choice is None or choice.candidates != candidates:
            choice = Choice(candidates, 0, (dict(self.inputs), dict(self.made), dict(self.limits)))
            self.choices[index] = choice
        shape = [self.extents.of(dim) for dim in choice.candidates[choice.picked]]
        self.values[node.output[0]] = Value(value.element, shape)

    def reshape_target(self, node, shape):
        target = [int(entry) for entry in self.constant_data(node.input[1])]
        if not any(attribute.name == "allowzero" and attribute.i for attribute in node.attribute):
            target = [shape[i] if entry == 0 else entry for i, entry in enumerate(target)]
        known = math.prod(entry for entry in target if entry != -1)
        return [math.prod(shape) // max(known, 1) if entry == -1 else entry for entry in target]

    def step_back(self, index):
        """The next meaning of the last Reshape before `index` that has one."""
        for at in sorted((at for at in self.choices if at < index), reverse=True):
            choice = self.choices[at]
            if choice.picked + 1 < len(choice.candidates):
                self.choices[at] = choice._replace(picked=choice.picked + 1)
                self.choices = {i: kept for i, kept in self.choices.items() if i <= at}
                self.inputs, self.made, self.limits = (dict(kept) for kept in choice.edits)
                return True
        return False

    def check_outputs(self):
        for value in self.model.graph.output:
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            shape = self.shape(value.name)
            if shape is not None and all(dims) and dims != [extent[0] for extent in shape]:
                raise Unfit(f"output '{value.name}' would be {[e[0] for e in shape]} at the exported sizes, not {dims}")

    # Mending

    def with_open_entries(self, index, node):
        """Slice to the very end of an open axis, and Resize of open axes: their numbers follow the axes."""
        at = 2 if node.op_type == "Slice" else 3
        shape = self.shape(node.input[0])
        entries = self.constant_data(node.input[at]) if at < len(node.input) and node.input[at] else None
        if shape is None or entries is None or entries.size == 0 or (index, at) in self.inputs:
            return node
        axes = range(len(shape)) if at == 3 else self.slice_axes(node, len(entries))
        if axes is None:
            return node
        new = [self.open_entry(node.op_type, int(entry), shape[axis]) for entry, axis in zip(entries, axes)]
        if all(is_constant(extent) and extent[0] == entry for extent, entry in zip(new, entries)):
            return node
        self.make(index, at, Shaped(tuple(self.extents.factors(extent) for extent in new), self.count))
        return self.node(index)

    def slice_axes(self, node, count):
        axes = self.constant_data(node.input[3]) if len(node.input) > 3 and node.input[3] else np.arange(count)
        return None if axes is None else [int(axis) for axis in axes]

    def open_entry(self, operator, entry, extent):
        if is_constant(extent):
            return self.extents.constant(entry)
        if operator == "Slice":
            return self.extents.constant(TO_THE_END if entry >= extent[0] else entry)
        if entry == extent[0]:
            return extent
        # Of values with so many pixels, the one that grows most like this axis: height and width are often equal.
        likes = [(self.unlikeness(atom.extent, extent), i) for i, atom in enumerate(self.extents.atoms)
                 if atom.extent[0] == entry]
        if likes:
            return self.extents.atoms[min(likes)[1]].extent
        if entry % extent[0] == 0:
            return self.extents.of((*self.extents.factors(extent), entry // extent[0]))
        return self.extents.constant(entry)

    @staticmethod
    def unlikeness(extent, other):
        """0 where two extents are in proportion."""
        return max(abs(a * other[0] / (b * extent[0]) - 1) for a, b in zip(extent, other))

    def mend(self, index):
        """Opens the constants that keep a node from fitting; False, and nothing changed, where that is no help."""
        node = self.node(index)
        wants = {}
        for i, axis, extent in self.clashes(node):
            wants.setdefault(i, {})[axis] = extent
        kept = (dict(self.inputs), dict(self.made), dict(self.limits))
        may_narrow = node.op_type in BROADCASTING
        for i, axes in wants.items():
            if not ((may_narrow and self.open(index, i, axes, True)) or self.open(index, i, axes, False)):
                self.inputs, self.made, self.limits = kept
                return False
        return bool(wants)

    def clashes(self, node):
        """(input, axis, extent): axes whose number must become that extent for the node to fit."""
        shapes = [self.shape(name) for name in node.input]
        for one, axis, other, other_axis in equal_axes(node, shapes):
            pair = shapes[one][axis], shapes[other][other_axis]
            if node.op_type in STATEFUL and is_constant(pair[0]) and pair[0][0] == pair[1][0]:
                yield one, axis, pair[1]
        if any(shape is None for name, shape in zip(node.input, shapes) if name):
            return
        if node.op_type in BROADCASTING:
            yield from self.clashes_of(shapes, 2)
        elif node.op_type == "Concat":
            axis = node.attribute[0].i % len(shapes[0])
            rest = [[extent if i != axis else None for i, extent in enumerate(shape)] for shape in shapes]
            yield from self.clashes_of(rest, 1)
        elif node.op_type == "MatMul" and min(len(shape) for shape in shapes) > 1:
            rows = [[*shapes[0][:-2], None, shapes[0][-1]], [*shapes[1][:-2], None, shapes[1][-2]]]
            for i, axis, extent in self.clashes_of(rows, 2):
                yield i, axis - (i == 1 and axis == len(shapes[1]) - 1), extent
        elif node.op_type == "Expand" and self.constant_data(node.input[1]) is not None:
            entries = [self.extents.constant(entry) for entry in self.constant_data(node.input[1])]
            yield from ((i, axis, extent) for i, axis, extent in self.clashes_of([shapes[0], entries], 2))

    def clashes_of(self, shapes, least):
        """Of shapes that are aligned at their ends; numbers below `least` fit everything."""
        rank = max(len(shape) for shape in shapes)
        for axis in range(rank):
            column = {i: shape[axis - rank] for i, shape in enumerate(shapes) if len(shape) >= rank - axis}
            column = {i: extent for i, extent in column.items() if extent is not None}
            growing = next((extent for extent in column.values() if self.is_pure(extent)), None)
            for i, extent in column.items():
                if growing and is_constant(extent) and extent[0] >= least and extent[0] == growing[0]:
                    yield i, axis - (rank - len(shapes[i])), growing

    def is_pure(self, extent):
        return not is_constant(extent) and all(isinstance(factor, Atom) for factor in self.extents.factors(extent))

    def open(self, index, i, axes, narrow):
        """Gives input `i` of a node these extents, or, to narrow it, an extent of 1 along them."""
        node = self.node(index)
        name = node.input[i]
        if node.op_type == "Expand" and i == 1:
            return self.open_target(index, node, axes)
        data = self.constant_data(name)
        if data is not None:
            recipe = self.recipe(name, data, axes, narrow)
            if recipe:
                return self.make(index, i, recipe)
        producer = self.producers.get(name)
        if producer is not None and self.nodes[producer].op_type != "Constant":
            return self.open_through(producer, name, axes, narrow)
        if narrow or (producer is None and name not in self.initializers):
            return False
        return self.cut(index, i, name, axes)

    def open_target(self, index, node, axes):
        """Of an Expand: equal entries where the input has one row are taken for the same size, as masks have it twice."""
        entries, shape = self.constant_data(node.input[1]), self.shape(node.input[0])
        rows = [1] * (len(entries) - len(shape)) + [extent[0] if is_constant(extent) else 0 for extent in shape]
        sizes = {extent[0]: self.extents.factors(extent) for extent in axes.values()}
        factors = [(1,) if axis in axes else sizes.get(int(entry), (int(entry),)) if rows[axis] == 1 else (int(entry),)
                   for axis, entry in enumerate(entries)]
        return self.make(index, 1, Shaped(tuple(factors), self.count))

    def recipe(self, name, data, axes, narrow):
        """What makes an array of other extents with the pattern that `data` has; None without a pattern."""
        element = self.values[name].element
        first = data
        for axis in axes:
            first = first.take([0], axis)
        if np.array_equal(np.broadcast_to(first, data.shape), data):
            extents = {} if narrow else {axis: self.extents.factors(extent) for axis, extent in axes.items()}
            return Filled(element, first, extents, self.count)
        if narrow:
            return None
        factors = [self.extents.factors(extent) for extent in axes.values()]
        if len(set(factors)) > 1:
            return None
        found = None
        if len(axes) == 1 and element in (TensorProto.INT64, TensorProto.INT32):
            found = Count.of(element, data, *axes, factors[0], self.count)
        rows = [axis for axis, extent in enumerate(data.shape) if extent == data.shape[min(axes)]]
        if found is None and len(rows) == 2 and set(axes) <= set(rows):
            found = Stairs.of(element, data, rows, factors[0], self.count)
        return found

    def cut(self, index, i, name, axes):
        """A table with as many rows as a size of an input: its first rows."""
        factors = {axis: self.extents.factors(extent) for axis, extent in axes.items()}
        shape = self.shape(name)
        for axis, (atom, *others) in factors.items():
            if others or not atom.name or atom.name == "batch":
                return False
            self.check_rows(atom, shape[axis][0], name)
        return self.make(index, i, Cut(self.values[name].element, name, shape, factors, self.count))

    def limit(self, size, rows, table):
        self.limits[size] = min(self.limits.get(size, (rows, table)), (rows, table))

    def make(self, index, i, recipe):
        """The input reads what the recipe makes."""
        name = next((name for name, made in self.made.items() if made == recipe), f"open_sizes/{len(self.made)}")
        self.made[name] = recipe
        self.values[name] = recipe.value()
        self.inputs[index, i] = name
        node = self.nodes[index]
        if isinstance(recipe, Count) and node.op_type == "Gather" and len(recipe.factors) == 1:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            self.limit(recipe.factors[0].name, self.shape(node.input[0])[axis][0], node.input[0])
        return True

    def open_through(self, index, name, axes, narrow):
        """Opens inputs of the node that makes a value: the fewest that give the value those extents and no others."""
        node = self.node(index)
        readers = [self.nodes[at].op_type for at in self.consumers[name]]
        if narrow and not (node.op_type in PLAIN and BROADCASTING.issuperset(readers)):
            return False
        wanted = [axes.get(axis, extent) for axis, extent in enumerate(self.shape(name))]
        if node.op_type == "Slice":
            self.limit_to_table(node, axes)
        if narrow:
            wanted = [self.extents.constant(1) if axis in axes else extent for axis, extent in enumerate(wanted)]
        knobs = self.knobs(node, {extent[0] for extent in axes.values()})
        choices = list(dict.fromkeys([self.extents.constant(1)] if narrow else axes.values()))
        for count in range(1, min(len(knobs), MOST_KNOBS) + 1):
            for turned in itertools.combinations(knobs, count):
                for extents in itertools.product(choices, repeat=count):
                    if self.shape_with(node, name, turned, extents) == wanted:
                        return self.turn(index, turned, extents, narrow)
        return False

    def limit_to_table(self, node, axes):
        """A Slice has no more rows than what it cuts."""
        for axis, extent in axes.items():
            rows, (atom, *_) = self.shape(node.input[0])[axis], self.extents.factors(extent)
            if is_constant(rows) and isinstance(atom, Atom) and atom.name:
                self.check_rows(atom, rows[0], node.input[0])

    def check_rows(self, atom, rows, table):
        if max(atom.extent) > rows:
            raise Limited(atom.name, rows, table)
        self.limit(atom.name, rows, table)

    def knobs(self, node, numbers):
        """(input, axis, is an entry): the extents and elements of inputs that are one of the numbers."""
        found = []
        for i, name in enumerate(node.input):
            if i in EXTENT_INPUTS.get(node.op_type, ()):
                data = self.constant_data(name) if name else None
                entries = [] if data is None else data.reshape(-1)
                found += [(i, k, True) for k, entry in enumerate(entries) if entry in numbers]
            else:
                shape = self.shape(name) or []
                found += [(i, k, False) for k, extent in enumerate(shape) if is_constant(extent) and extent[0] in numbers]
        return found

    def shape_with(self, node, name, turned, extents):
        values = dict(self.values)
        for (i, k, is_entry), extent in zip(turned, extents):
            value = values[node.input[i]]
            if is_entry:
                arrays = [array.copy() for array in value.data]
                for trial, array in enumerate(arrays):
                    array.reshape(-1)[k] = extent[trial]
                values[node.input[i]] = value._replace(data=arrays)
            else:
                shape = [extent if axis == k else old for axis, old in enumerate(value.shape)]
                values[node.input[i]] = value._replace(shape=shape, data=None)
        try:
            return self.rules.infer(node, values)[name].shape
        except (Unfit, KeyError):
            return None

    def turn(self, index, turned, extents, narrow):
        node = self.node(index)
        for i in dict.fromkeys(i for i, _, _ in turned):
            wants = {k: extent for (at, k, _), extent in zip(turned, extents) if at == i}
            if any(at == i and is_entry for at, _, is_entry in turned):
                entries = self.constant_data(node.input[i])
                factors = tuple(self.extents.factors(wants[k]) if k in wants else (int(entry),)
                                for k, entry in enumerate(entries.reshape(-1)))
                self.make(index, i, Shaped(factors, self.count, entries.ndim == 0))
            elif not self.open(index, i, wants, narrow):
                return False
        return True

    # Writing

    def written(self):
        """The model with what was found."""
        result = copy.deepcopy(self.model)
        writer = Writer(self.model)
        names = {name: recipe.write(writer, name) for name, recipe in self.made.items()}
        nodes = []
        for index in range(len(self.nodes)):
            node = copy.deepcopy(self.node(index))
            for i, name in enumerate(node.input):
                node.input[i] = names.get(name, name)
            if index in self.choices:
                self.write_reshape(writer, node, self.choices[index])
            nodes.append(node)
        writer.finish(result.graph, nodes)
        for value in result.graph.input:
            for dim, name in zip(value.type.tensor_type.shape.dim, self.named.get(value.name, [])):
                if isinstance(name, str):
                    dim.dim_param = name
        for value in result.graph.output:
            self.write_output(value)
        return result

    def write_reshape(self, writer, node, choice):
        old = self.shape(node.input[0])
        factors = choice.candidates[choice.picked]
        new = self.shape(node.output[0])
        entries = [(0,) if i < len(old) and old[i] == extent and not is_constant(extent) else dim or (1,)
                   for i, (extent, dim) in enumerate(zip(new, factors))]
        growing = [i for i, dim in enumerate(entries) if any(isinstance(factor, Atom) for factor in dim)]
        if growing:  # one of them needs no words: the longest
            entries[max(growing, key=lambda i: len(entries[i]))] = (-1,)
        node.input[1] = writer.shape(entries)
        for i, attribute in reversed(list(enumerate(node.attribute))):
            if attribute.name == "allowzero":
                del node.attribute[i]

    def write_output(self, value):
        shape = self.shape(value.name)
        value.type.tensor_type.ClearField("shape")
        if shape is None:
            return
        for extent in shape:
            dim = value.type.tensor_type.shape.dim.add()
            factors = self.extents.factors(extent)
            if is_constant(extent):
                dim.dim_value = extent[0]
            elif len(factors) == 1 and factors[0].name:
                dim.dim_param = factors[0].name

    def unknown(self):
        """The first value whose shape is not known; what the exporter wrote behind it stays."""
        names = (name for node in self.nodes for name in node.output if name)
        return next((name for name in names if self.shape(name) is None), None)

    def outputs_without(self, size):
        """Outputs that have no factor of this name."""
        if size not in self.trials:
            return []
        return [value.name for value in self.model.graph.output if self.shape(value.name) is not None and not any(
            isinstance(factor, Atom) and factor.name == size
            for extent in self.shape(value.name) for factor in self.extents.factors(extent))]

    def verify(self, result):
        """Types of the new model at every trial, by onnx alone."""
        for trial in range(self.count):
            model = copy.deepcopy(result)
            for value in model.graph.input:
                for dim in value.type.tensor_type.shape.dim:
                    if dim.dim_param in self.trials:
                        dim.dim_value = self.trials[dim.dim_param][trial]
            for value in model.graph.output:
                value.type.tensor_type.ClearField("shape")
            for value in onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph.output:
                shape = self.shape(value.name)
                dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
                known = shape is not None and value.type.tensor_type.HasField("shape") and all(dims)
                if known and dims != [extent[trial] for extent in shape]:
                    raise Unfit(f"output '{value.name}' is {dims}, not {[extent[trial] for extent in shape]}")
