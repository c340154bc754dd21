"""What open_sizes.py puts in the place of constants. A recipe has a Value (size_trials.py) and writes its nodes."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from size_trials import Atom, Value, product


class Writer:
    """New nodes and constants; equal ones are made once. `finish` puts them into a graph in an order that works."""

    def __init__(self, model):
        self.nodes = []
        self.constants = []
        self.made = {}
        taken = [name for node in model.graph.node for name in node.output] + [t.name for t in model.graph.initializer]
        self.prefix = "sizes/"
        while any(name.startswith(self.prefix) for name in taken):
            self.prefix = "_" + self.prefix

    def constant(self, array):
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.made:
            self.made[key] = f"{self.prefix}{len(self.made)}"
            self.constants.append(numpy_helper.from_array(array, self.made[key]))
        return self.made[key]

    def numbers(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def node(self, operator, *inputs, **attributes):
        key = (operator, inputs, repr(attributes))
        if key not in self.made:
            self.made[key] = f"{self.prefix}{len(self.made)}"
            self.nodes.append(helper.make_node(operator, list(inputs), [self.made[key]], **attributes))
        return self.made[key]

    def extent(self, factors, scalar=False):
        """A product as a tensor of one element."""
        result = None
        for factor in factors:
            place = self.constant(np.array(factor.axis if scalar else [factor.axis], np.int64)) if isinstance(
                factor, Atom) else None
            term = (self.node("Gather", self.node("Shape", factor.value), place, axis=0) if place
                    else self.constant(np.array(factor if scalar else [factor], np.int64)))
            result = self.node("Mul", result, term) if result else term
        return result

    def shape(self, entries):
        """A shape of these entries, each of them factors."""
        parts, run = [], []
        for dim in [*entries, None]:
            if dim is not None and not any(isinstance(factor, Atom) for factor in dim):
                run.append(product(dim))
                continue
            parts += [self.numbers(*run)] if run else []
            parts += [self.extent(dim)] if dim is not None else []
            run = []
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def finish(self, graph, nodes):
        """The graph with these nodes and the new ones, without what nobody reads."""
        producers = {name: node for node in [*self.nodes, *nodes] for name in node.output if name}
        ordered, done = [], set()
        stack = [(node, False) for node in reversed(nodes)]
        needed = self.needed(producers, [value.name for value in graph.output])
        while stack:
            node, ready = stack.pop()
            if id(node) in done or id(node) not in needed:
                continue
            if ready:
                done.add(id(node))
                ordered.append(node)
                continue
            stack.append((node, True))
            stack += [(producers[name], False) for name in reads(node) if name in producers]
        tensors = [*graph.initializer, *self.constants]
        read = {name for node in ordered for name in reads(node)} | {value.name for value in graph.output}
        for field, rows in ((graph.node, ordered), (graph.initializer, [t for t in tensors if t.name in read])):
            rows = list(rows)
            del field[:]
            field.extend(rows)
        del graph.value_info[:]

    def needed(self, producers, outputs):
        found, names = set(), list(outputs)
        while names:
            node = producers.get(names.pop())
            if node is not None and id(node) not in found:
                found.add(id(node))
                names += reads(node)
        return found


def reads(node):
    """The values that a node and its inner graphs read."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            names += [name for inner in graph.node for name in reads(inner)] + [value.name for value in graph.output]
    return names


def extents_of(factors, count):
    return tuple(product(factors, trial) for trial in range(count))


@dataclass(eq=True, frozen=True)
class Shaped:
    """A shape, or one number."""

    entries: tuple
    count: int
    scalar: bool = False

    def value(self):
        rows = [[product(dim, trial) for dim in self.entries] for trial in range(self.count)]
        arrays = [np.array(row[0] if self.scalar else row, np.int64) for row in rows]
        return Value(TensorProto.INT64, [(n,) * self.count for n in arrays[0].shape], arrays)

    def write(self, writer, _):
        return writer.extent(self.entries[0], scalar=True) if self.scalar else writer.shape(self.entries)


class Filled:
    """`first` along some axes, which have these extents (by axis; without any, 1)."""

    def __init__(self, element, first, extents, count):
        self.element, self.first, self.extents, self.count = element, first, extents, count

    def __eq__(self, other):
        return (isinstance(other, Filled) and self.extents == other.extents and self.first.dtype == other.first.dtype
                and np.array_equal(self.first, other.first))

    __hash__ = None

    def value(self):
        shape = [extents_of(self.extents.get(axis, (extent,)), self.count) for axis, extent in enumerate(self.first.shape)]
        return Value(self.element, shape, None if self.extents else [self.first] * self.count)

    def write(self, writer, _):
        first = writer.constant(self.first)
        if not self.extents:
            return first
        return writer.node("Expand", first, writer.shape(
            [self.extents.get(axis, (1,)) for axis in range(self.first.ndim)]))


@dataclass(eq=True, frozen=True)
class Count:
    """start, start + step, ... along one axis; `rank` axes, the others of extent 1."""

    element: int
    start: int
    step: int
    axis: int
    rank: int
    factors: tuple
    count: int

    @staticmethod
    def of(element, data, axis, factors, count):
        line = data.reshape(-1)
        step = int(line[1]) - int(line[0]) if line.size > 1 else 1
        if line.size != data.shape[axis] or not np.array_equal(line, line[0] + step * np.arange(line.size)):
            return None
        return Count(element, int(line[0]), step, axis, data.ndim, factors, count)

    def value(self):
        one = (1,) * self.count
        return Value(self.element, [extents_of(self.factors, self.count) if axis == self.axis else one
                                    for axis in range(self.rank)])

    def write(self, writer, _):
        places = writer.node("Range", writer.constant(np.int64(0)), writer.extent(self.factors, scalar=True),
                             writer.constant(np.int64(1)))
        if self.step != 1:
            places = writer.node("Mul", places, writer.constant(np.int64(self.step)))
        if self.start != 0:
            places = writer.node("Add", places, writer.constant(np.int64(self.start)))
        if self.element != TensorProto.INT64:
            places = writer.node("Cast", places, to=self.element)
        if self.rank == 1:
            return places
        return writer.node("Reshape", places, writer.numbers(*(-1 if axis == self.axis else 1
                                                              for axis in range(self.rank))))


@dataclass(eq=True, frozen=True)
class Stairs:
    """`low` below the diagonal of two axes, `high` above it, and one of them (`low` if `low_on`) on it."""

    element: int
    low: object
    high: object
    low_on: bool
    axes: tuple
    rank: int
    factors: tuple
    count: int

    @staticmethod
    def of(element, data, axes, factors, count):
        rows = data.shape[axes[0]]
        if data.size != rows * rows or rows < 2:
            return None
        square = data.reshape(rows, rows)
        low, high, low_on = square[1, 0], square[0, 1], bool(square[0, 0] == square[1, 0])
        if not np.array_equal(np.where(np.tri(rows, k=0 if low_on else -1, dtype=bool), low, high), square):
            return None
        return Stairs(element, low, high, low_on, tuple(axes), data.ndim, factors, count)

    def value(self):
        one, extent = (1,) * self.count, extents_of(self.factors, self.count)
        return Value(self.element, [extent if axis in self.axes else one for axis in range(self.rank)])

    def write(self, writer, _):
        row, column = (Count(TensorProto.INT64, 0, 1, axis, self.rank, self.factors, self.count).write(writer, "")
                       for axis in self.axes)
        low, high = writer.constant(self.low), writer.constant(self.high)
        if self.low_on:
            return writer.node("Where", writer.node("Less", row, column), high, low)
        return writer.node("Where", writer.node("Less", column, row), low, high)


class Cut:
    """The first rows of a table, along some axes."""

    def __init__(self, element, table, shape, factors, count):
        self.element, self.table, self.shape, self.factors, self.count = element, table, shape, factors, count

    def __eq__(self, other):
        return isinstance(other, Cut) and (self.table, self.factors) == (other.table, other.factors)

    __hash__ = None

    def value(self):
        return Value(self.element, [extents_of(self.factors[axis], self.count) if axis in self.factors else extent
                                    for axis, extent in enumerate(self.shape)])

    def write(self, writer, _):
        axes = sorted(self.factors)
        return writer.node("Slice", self.table, writer.numbers(*([0] * len(axes))),
                           writer.shape([self.factors[axis] for axis in axes]), writer.numbers(*axes))
