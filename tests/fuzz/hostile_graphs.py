"""Hostile models whose nodes are wrong: how they hang together, and what single operators are asked for."""
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from hostile_case import OPSET, case, changed, floats, info, integers, model, node, save


def chain(count, op="Identity"):
    names = ["x"] + [f"t{i}" for i in range(count - 1)] + ["y"]
    return [helper.make_node(op, [names[i]], [names[i + 1]]) for i in range(count)]


def function(name, nodes, inputs=("a",), outputs=("c",)):
    return helper.make_function("local", name, list(inputs), list(outputs), nodes,
                                [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)])


def call(name, source, target):
    return helper.make_node(name, [source], [target], domain="local")


def if_node(condition, then_branch, else_branch):
    return node("If", [condition], then_branch=then_branch, else_branch=else_branch)


def branch(nodes, output):
    return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info(output)])


def nested_ifs(depth):
    graph = branch([helper.make_node("Relu", ["x"], ["r"])], "r")
    for i in range(depth):
        inner = helper.make_node("If", ["flag"], [f"r{i}"], then_branch=graph, else_branch=graph)
        graph = branch([inner], f"r{i}")
    return graph


def loop(trips, body_nodes, condition=""):
    body = helper.make_graph(body_nodes, "body", [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("s")],
                             [info("go", (), TensorProto.BOOL), helper.make_empty_tensor_value_info("t")])
    return model([node("Loop", ["trips", condition, "x"], body=body)], weights=[numpy_helper.from_array(np.array(trips), "trips")])


def add_graph_cases():
    def rename(index, kind, at, name):
        return changed(lambda p: getattr(p.graph.node[index], kind).__setitem__(at, name))
    case("graph", "cycle", rename(0, "input", 0, "c"))
    case("graph", "reads_itself", rename(1, "input", 0, "b"))
    case("graph", "missing_input", rename(1, "input", 1, "nothing"))
    case("graph", "two_producers", rename(1, "output", 0, "a"))
    case("graph", "shadows_an_input", rename(1, "output", 0, "x"))
    case("graph", "shadows_a_weight", rename(1, "output", 0, "weight"))
    case("graph", "unnamed_output", rename(1, "output", 0, ""))
    case("graph", "no_output_of_that_name", changed(lambda p: setattr(p.graph.output[0], "name", "z")))
    case("graph", "no_outputs", changed(lambda p: p.graph.ClearField("output")))
    case("graph", "no_graph", changed(lambda p: p.ClearField("graph")))
    case("graph", "no_nodes", changed(lambda p: p.graph.ClearField("node")))
    case("graph", "no_opset", changed(lambda p: p.ClearField("opset_import")))
    case("graph", "opset_negative", changed(lambda p: setattr(p.opset_import[0], "version", -5)))
    case("graph", "opset_of_the_future", changed(lambda p: setattr(p.opset_import[0], "version", 1 << 40)))
    case("graph", "ir_of_the_future", changed(lambda p: setattr(p, "ir_version", 1 << 40)))
    case("graph", "unknown_operator", changed(lambda p: setattr(p.graph.node[0], "op_type", "Frobnicate")))
    case("graph", "unknown_domain", changed(lambda p: setattr(p.graph.node[0], "domain", "com.evil")))
    case("graph", "operator_without_name", changed(lambda p: setattr(p.graph.node[0], "op_type", "")))
    case("graph", "name_of_a_megabyte", changed(lambda p: setattr(p.graph.node[0], "op_type", "A" * (1 << 20))))
    case("graph", "control_characters", changed(lambda p: setattr(p.graph.node[0], "op_type", "\x1b[2J\x07")))
    case("graph", "two_inputs_of_one_name", changed(lambda p: p.graph.input.append(p.graph.input[0])))
    case("graph", "two_weights_of_one_name", changed(lambda p: p.graph.initializer.append(p.graph.initializer[0])))
    case("graph", "input_is_a_sequence", save(model([node("Relu", ["x"])], inputs=[
        helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])])), may_succeed=True)  # refused when it runs
    case("graph", "input_without_type", save(model([node("Relu", ["x"])], inputs=[onnx.ValueInfoProto(name="x")])))
    case("graph", "chain_of_300000", save(model(chain(300_000))), may_succeed=True)
    case("graph", "chain_of_20000_sums", save(model([
        helper.make_node("Add", [f"t{i}" if i else "x", "x"], [f"t{i + 1}" if i < 19_999 else "y"]) for i in range(20_000)])),
        may_succeed=True)
    case("graph", "doubling", save(model([
        helper.make_node("Concat", [f"t{i}" if i else "x"] * 2, [f"t{i + 1}" if i < 59 else "y"], axis=0) for i in range(60)])))
    double = [helper.make_node("Add", [f"t{i}" if i else "w", f"t{i}" if i else "w"], [f"t{i + 1}" if i < 59 else "y"])
              for i in range(60)]
    case("graph", "doubling_constants", save(model(double, weights=[floats("w", (2, 3))])), may_succeed=True)
    case("graph", "input_read_20000_times", save(model([node("Sum", ["x"] * 20_000)])), may_succeed=True)
    case("graph", "function_calls_itself", save(model([call("f", "x", "y")], functions=[function("f", [call("f", "a", "c")])])))
    case("graph", "functions_call_each_other", save(model([call("f", "x", "y")], functions=[
        function("f", [call("g", "a", "c")]), function("g", [call("f", "a", "c")])])))
    bombs = [function(f"f{i}", [call(f"f{i + 1}", "a", "b"), call(f"f{i + 1}", "b", "c")]) for i in range(40)]
    bombs.append(function("f40", [helper.make_node("Relu", ["a"], ["c"])]))
    case("graph", "functions_that_double", save(model([call("f0", "x", "y")], functions=bombs)))
    case("graph", "function_twice", save(model([call("f", "x", "y")], functions=[
        function("f", [helper.make_node("Relu", ["a"], ["c"])])] * 2)))
    case("graph", "function_without_output", save(model([call("f", "x", "y")], functions=[
        function("f", [helper.make_node("Relu", ["a"], ["b"])])])))
    case("graph", "function_with_too_many_inputs", save(model([helper.make_node("f", ["x", "x", "x"], ["y"], domain="local")],
                                                             functions=[function("f", [helper.make_node("Relu", ["a"], ["c"])])])))
    flag = [numpy_helper.from_array(np.array(True), "flag")]
    for depth in (10, 13):
        graph = nested_ifs(depth)
        case("graph", f"ifs_nested_{depth}", save(model([if_node("flag", graph, graph)], weights=flag)), may_succeed=True)
        case("graph", f"ifs_nested_{depth}_at_run_time", save(model([if_node("flag", graph, graph)], inputs=[
            info("x"), info("flag", (), TensorProto.BOOL)])), may_succeed=True)
    case("graph", "loop_of_2_60_trips", save(loop(1 << 60, [helper.make_node("Relu", ["s"], ["t"])])))
    case("graph", "loop_of_negative_trips", save(loop(-1, [helper.make_node("Relu", ["s"], ["t"])])), may_succeed=True)
    case("graph", "loop_of_big_work", save(loop(100_000, [helper.make_node("MatMul", ["s", "s"], ["t"])])))
    case("graph", "loop_without_body", save(model([node("Loop", ["", "", "x"])])))
    case("graph", "scan_without_inputs", save(model([node("Scan", ["x"], num_scan_inputs=99, body=branch(chain(1), "y"))])))
    case("graph", "if_without_branches", save(model([node("If", ["x"])])))


def add_operator_cases():
    image = [info("x", (1, 4, 8, 8))]

    def bad(name, op, weights=(), inputs=None, may_succeed=False, nodes_inputs=None, **attributes):
        names = nodes_inputs or ["x"] + [w.name for w in weights]
        case("operator", name, save(model([node(op, names, **attributes)], inputs=inputs, weights=weights)), may_succeed)
    for axis in (99, -99, 1 << 62):
        bad(f"softmax_axis_{axis}", "Softmax", axis=axis)
    bad("gather_beyond", "Gather", [integers("i", [7])], may_succeed=True)
    bad("gather_far_beyond", "Gather", [integers("i", [1 << 62])], may_succeed=True)
    bad("gather_nd_beyond", "GatherND", [integers("i", [[9, 9]])], may_succeed=True)
    bad("gather_elements_beyond", "GatherElements", [integers("i", [[-9, 9, 9]])], may_succeed=True)
    bad("scatter_beyond", "ScatterElements", [integers("i", [[9, 9, 9]]), floats("u", (1, 3))], may_succeed=True)
    bad("scatter_nd_beyond", "ScatterND", [integers("i", [[9, 9]]), floats("u", (1,))], may_succeed=True)
    bad("scatter_shapes", "ScatterND", [integers("i", [[0]]), floats("u", (7, 7, 7))])
    bad("slice_huge", "Slice", [integers("s", [-(1 << 63)]), integers("e", [(1 << 63) - 1])], may_succeed=True)
    bad("slice_step_0", "Slice", [integers("s", [0]), integers("e", [2]), integers("a", [0]), integers("t", [0])])
    bad("slice_step_huge", "Slice", [integers("s", [-1]), integers("e", [-(1 << 63)]), integers("a", [0]),
                                     integers("t", [-(1 << 63)])], may_succeed=True)
    bad("slice_axis_twice", "Slice", [integers("s", [0, 0]), integers("e", [1, 1]), integers("a", [0, 0])], may_succeed=True)
    bad("reshape_two_unknown", "Reshape", [integers("s", [-1, -1])])
    bad("reshape_overflow", "Reshape", [integers("s", [1 << 32, 1 << 32, 6])])
    bad("reshape_negative", "Reshape", [integers("s", [-2, -3])])
    bad("reshape_unknown_of_none", "Reshape", [integers("s", [-1, 0])], inputs=[info("x", (0, 3))], allowzero=1)
    bad("transpose_not_a_permutation", "Transpose", perm=[0, 0])
    bad("transpose_short", "Transpose", perm=[0])
    bad("expand_huge", "Expand", [integers("s", [1 << 40, 2, 3])])
    bad("expand_negative", "Expand", [integers("s", [-1, 3])])
    bad("tile_huge", "Tile", [integers("r", [1 << 40, 1])])
    bad("tile_overflow", "Tile", [integers("r", [1 << 62, 1 << 62])])
    bad("pad_huge", "Pad", [integers("p", [1 << 40, 0, 0, 0])])
    bad("pad_away", "Pad", [integers("p", [-9, 0, 0, 0])])
    bad("pad_reflect_beyond", "Pad", [integers("p", [50, 0, 50, 0])], mode="reflect", may_succeed=True)
    bad("pad_overflow", "Pad", [integers("p", [(1 << 63) - 1, 0, (1 << 63) - 1, 0])])
    bad("split_beyond", "Split", [integers("s", [99, -97])])
    bad("split_into_million", "Split", num_outputs=1_000_000)
    bad("range_huge", "Range", [numpy_helper.from_array(np.array(v), n) for n, v in (("a", 0), ("b", 1 << 60), ("c", 1))],
        nodes_inputs=["a", "b", "c"])
    bad("range_step_0", "Range", [numpy_helper.from_array(np.array(v), n) for n, v in (("a", 0), ("b", 9), ("c", 0))],
        nodes_inputs=["a", "b", "c"])
    bad("range_nan", "Range", [numpy_helper.from_array(np.array(v, np.float32), n)
                               for n, v in (("a", 0), ("b", np.nan), ("c", 1))], nodes_inputs=["a", "b", "c"], may_succeed=True)
    bad("constant_of_shape_huge", "ConstantOfShape", [integers("s", [1 << 40])], nodes_inputs=["s"])
    case("operator", "sum_of_a_constant_of_4_gb", save(model([
        helper.make_node("ConstantOfShape", ["s"], ["c"]), node("ReduceSum", ["c"])], weights=[integers("s", [1 << 30])])),
        may_succeed=True)
    bad("constant_of_shape_negative", "ConstantOfShape", [integers("s", [-5])], nodes_inputs=["s"])
    bad("one_hot_huge", "OneHot", [integers("d", [1 << 40]), floats("v", (2,))], inputs=[info("x", (2,), TensorProto.INT64)])
    bad("eye_like_of_vector", "EyeLike", inputs=[info("x", (5,))])
    bad("top_k_beyond", "TopK", [integers("k", [99])])
    bad("top_k_negative", "TopK", [integers("k", [-1])])
    bad("resize_huge", "Resize", [numpy_helper.from_array(np.array([1, 1, 1e9, 1e9], np.float32), "s")], inputs=image,
        nodes_inputs=["x", "", "s"])
    bad("resize_nan", "Resize", [numpy_helper.from_array(np.array([1, 1, np.nan, 1], np.float32), "s")], inputs=image,
        nodes_inputs=["x", "", "s"])
    bad("resize_negative", "Resize", [integers("s", [1, 4, -8, 8])], inputs=image, nodes_inputs=["x", "", "", "s"])
    filters = [floats("w", (4, 4, 3, 3))]
    bad("conv_stride_0", "Conv", filters, inputs=image, strides=[0, 0])
    bad("conv_stride_negative", "Conv", filters, inputs=image, strides=[-1, -1])
    bad("conv_dilation_huge", "Conv", filters, inputs=image, dilations=[1 << 62, 1])
    bad("conv_pads_huge", "Conv", filters, inputs=image, pads=[1 << 62, 0, 1 << 62, 0])
    bad("conv_pads_negative", "Conv", filters, inputs=image, pads=[-9, -9, -9, -9])
    bad("conv_groups_0", "Conv", filters, inputs=image, group=0)
    bad("conv_groups_3", "Conv", filters, inputs=image, group=3)
    bad("conv_groups_negative", "Conv", filters, inputs=image, group=-4)
    bad("conv_kernel_empty", "Conv", [floats("w", (4, 4, 0, 0))], inputs=image, may_succeed=True)
    bad("conv_of_scalar", "Conv", filters, inputs=[info("x", ())])
    bad("conv_transpose_huge", "ConvTranspose", [floats("w", (4, 4, 3, 3))], inputs=image, strides=[1 << 40, 1 << 40])
    bad("pool_kernel_0", "MaxPool", inputs=image, kernel_shape=[0, 0])
    bad("pool_kernel_huge", "AveragePool", inputs=image, kernel_shape=[1 << 40, 1], pads=[1 << 40, 0, 1 << 40, 0])
    bad("pool_kernel_missing", "MaxPool", inputs=image)
    bad("depth_to_space_0", "DepthToSpace", inputs=image, blocksize=0)
    bad("depth_to_space_huge", "DepthToSpace", inputs=image, blocksize=1 << 32)
    bad("lrn_huge", "LRN", inputs=image, size=1 << 40)
    bad("group_norm_0", "GroupNormalization", [floats("s", (4,)), floats("b", (4,))], inputs=image, num_groups=0)
    bad("einsum_garbage", "Einsum", equation="->->,,..i...")
    bad("einsum_megabyte", "Einsum", equation="ij->" + "i" * (1 << 20))
    bad("einsum_outer", "Einsum", nodes_inputs=["x"] * 14, may_succeed=True,
        equation=",".join(chr(97 + i) + chr(65 + i) for i in range(14)) + "->" + "".join(map(chr, range(97, 111))))
    bad("lstm_hidden_huge", "LSTM", [floats("w", (1, 8, 3)), floats("r", (1, 8, 2))], inputs=[info("x", (4, 1, 3))],
        hidden_size=1 << 40)
    bad("lstm_of_nothing", "LSTM")
    bad("attention_heads", "Attention", nodes_inputs=["x", "x", "x"], inputs=[info("x", (1, 4, 6))], q_num_heads=5, kv_num_heads=0)
    bad("matmul_shapes", "MatMul", [floats("w", (7, 7))])
    bad("gemm_of_rank_3", "Gemm", [floats("w", (3, 3, 3))])
    bad("dft_length_huge", "DFT", [numpy_helper.from_array(np.array(1 << 50), "n")], inputs=[info("x", (1, 8, 1))])
    bad("mel_huge", "MelWeightMatrix", [numpy_helper.from_array(np.array(v, t), n) for n, v, t in (
        ("a", 1 << 30, np.int64), ("b", 1 << 30, np.int64), ("c", 8000, np.int64), ("d", 0, np.float32), ("e", 4000, np.float32))],
        nodes_inputs=["a", "b", "c", "d", "e"])
    bad("quantize_zero_scale", "QuantizeLinear", [numpy_helper.from_array(np.array(0, np.float32), "s")], may_succeed=True)
    bad("quantize_axis", "QuantizeLinear", [floats("s", (77,))], axis=1)
    bad("cast_nowhere", "Cast", to=12345)
    bad("attribute_of_wrong_type", "Softmax", axis="last")
    bad("attribute_unknown", "Relu", teleport=1, may_succeed=True)
    bad("too_many_inputs", "Relu", nodes_inputs=["x", "x", "x"], may_succeed=True)
    bad("no_inputs", "Add", nodes_inputs=[""])
    bad("mixed_types", "Add", nodes_inputs=["x", "z"], inputs=[info("x"), info("z", (2, 3), TensorProto.INT32)])
    bad("not_of_floats", "Not")
    big = floats("w", (1 << 11, 1 << 11))
    bad("constant_product", "MatMul", [big], nodes_inputs=["w", "w"], may_succeed=True)
    reference = helper.make_node("Softmax", ["x"], ["y"])
    reference.attribute.append(AttributeProto(name="axis", ref_attr_name="ghost", type=AttributeProto.INT))
    case("operator", "reference_outside_a_function", save(model([reference])), may_succeed=True)
