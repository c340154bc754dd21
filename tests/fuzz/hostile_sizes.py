"""Hostile models that are small and ask for much: memory, time, or arithmetic beyond 64 bits."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile_case import case, info, integers, model, node, save

FAR = 1 << 30
NODE = helper.make_node


def scalar(name, value, kind=np.int64):
    return numpy_helper.from_array(np.array(value, kind), name)


def strings(name, values, dims=None):
    return helper.make_tensor(name, TensorProto.STRING, dims or [len(values)], [value.encode() for value in values])


def sparse(name, dims, kind=np.float32):
    tensor = onnx.SparseTensorProto(dims=dims)
    tensor.values.CopyFrom(numpy_helper.from_array(np.ones(1, kind), name))
    tensor.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64), "i"))
    return tensor


def constant_of(name, dims, value=1, kind=np.float32):
    """Two nodes that make a constant of any size."""
    return [NODE("Constant", [], [f"{name}_dims"], value=integers("v", dims)),
            NODE("ConstantOfShape", [f"{name}_dims"], [name], value=numpy_helper.from_array(np.array([value], kind)))]


def alone(name, nodes, may_succeed=True, **parts):
    case("size", name, save(model(nodes, **parts)), may_succeed)


def add_window_cases():
    cube = [info("x", (1, 1, 4, 4, 4))]
    alone("max_pool_indices_of_a_padded_map_of_2_96", [
        NODE("MaxPool", ["x"], ["y", "i"], kernel_shape=[1] * 3, strides=[2 * FAR] * 3, pads=[2 * FAR] * 6)],
        may_succeed=False, inputs=cube)
    alone("max_pool_indices_of_a_padded_map_of_2_90", [
        NODE("MaxPool", ["x"], ["y", "i"], kernel_shape=[1] * 3, strides=[FAR] * 3, pads=[FAR - 1] * 6)],
        may_succeed=False, inputs=cube)
    alone("max_unpool_of_no_batch", [node("MaxUnpool", ["x", "x"], kernel_shape=[1], strides=[FAR])], inputs=[
        info("x", (0, 1, 1 << 61), TensorProto.INT64)], may_succeed=False)
    alone("average_pool_same_of_no_batch", [node("AveragePool", ["x"], kernel_shape=[FAR], dilations=[FAR],
                                                 auto_pad="SAME_UPPER")], inputs=[info("x", (0, 1, 1 << 61))], may_succeed=False)
    filters = [numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")]
    image = [info("x", (1, 4, 8, 8))]
    for name, wanted in {"short": [9], "negative": [-(1 << 63), 9], "huge": [(1 << 63) - 1, 9]}.items():
        alone(f"conv_transpose_output_shape_{name}", [node("ConvTranspose", ["x", "w"], output_shape=wanted)], inputs=image,
              weights=filters, may_succeed=False)
    for name, extents in {"huge": [(1 << 63) - 1, 4], "negative": [-9, 4], "wide": [FAR, FAR]}.items():
        alone(f"col2im_image_{name}", [node("Col2Im", ["x", "image", "block"], pads=[FAR] * 4, strides=[FAR] * 2)],
              inputs=[info("x", (1, 1, 9))], weights=[integers("image", extents), integers("block", [1, 1])], may_succeed=False)
    alone("deform_conv_of_no_channels", [node("DeformConv", ["x", "w", "o"], pads=[FAR - 1] * 4)], inputs=[
        info("x", (1, 0, 8, 8)), info("w", (0, 0, 1 << 20, 1 << 20)), info("o", (1, 0, 8, 8))], may_succeed=False)
    alone("grid_sample_of_12_axes", [node("GridSample", ["x", "g"], mode="linear")], inputs=[
        info("x", (1, 1) + (2,) * 12), info("g", (1,) * 13 + (12,))], may_succeed=False)
    alone("lrn_of_65536_channels", [node("LRN", ["x"], size=65_536)], inputs=[info("x", (1, 65_536, 2, 2))])
    alone("lrn_of_65536", [node("LRN", ["x"], size=65_536)], inputs=[info("x", (1, 3, 2, 2))])
    for name, roi in {"nan": np.nan, "infinite": np.inf}.items():
        alone(f"resize_roi_{name}", [node("Resize", ["x", "roi", "scales"], coordinate_transformation_mode="tf_crop_and_resize")],
              inputs=image, weights=[numpy_helper.from_array(np.full(8, roi, np.float32), "roi"),
                                     numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")], may_succeed=False)
    alone("resize_not_smaller_beyond_2_63", [node("Resize", ["x", "", "", "sizes"], keep_aspect_ratio_policy="not_smaller")],
          inputs=[info("x", (1, 1 << 31))], weights=[integers("sizes", [1 << 62, 1])], may_succeed=False)
    alone("mel_of_nan", [node("MelWeightMatrix", ["a", "b", "c", "d", "e"])], weights=[
        scalar("a", 4), scalar("b", 8), scalar("c", 0), scalar("d", np.nan, np.float32), scalar("e", 1e38, np.float32)],
        may_succeed=False)


def add_table_cases():
    grids = [NODE("AffineGrid", ["theta", "size"], [f"g{i}"], align_corners=i % 2) for i in range(8)]
    alone("eight_grids_of_2_24", grids + [node("Sum", [f"g{i}" for i in range(8)])], inputs=[info("theta", (1, 2, 3))],
          weights=[integers("size", [1, 1, 2300, 2300])])
    windows = [NODE("HannWindow", ["size"], [f"w{i}"], periodic=i % 2) for i in range(8)]
    alone("eight_windows_of_2_26", windows + [node("Sum", [f"w{i}" for i in range(8)])], weights=[scalar("size", 1 << 26)])
    proto = model([node("Sum", [f"s{i}" for i in range(12)])])
    proto.graph.sparse_initializer.extend(sparse(f"s{i}", [1 << 26]) for i in range(12))
    case("size", "twelve_sparse_weights_of_256_mb", save(proto), True)
    proto = model(constant_of("c", [1 << 24]) + [NODE("Transpose", [f"t{i}" if i else "r"], [f"t{i + 1}" if i < 39 else "y"])
                                                 for i in range(40)])
    proto.graph.node.insert(2, NODE("Reshape", ["c", "shape"], ["r"]))
    proto.graph.initializer.append(integers("shape", [1 << 12, 1 << 12]))
    case("size", "forty_transposes_of_64_mb", save(proto), True)
    for name, kind in {"floats": np.float32, "bytes": np.int8}.items():
        big = constant_of("c", [1 << (24 if kind == np.float32 else 26)], kind=kind)
        alone(f"non_zero_of_64_mb_of_{name}", big + [node("NonZero", ["c"])])
        alone(f"unique_of_64_mb_of_{name}", big + [node("Unique", ["c"])])
        alone(f"compress_by_64_mb_of_{name}", big + [NODE("Cast", ["c"], ["b"], to=TensorProto.BOOL), node("Compress", ["c", "b"])])
    alone("unique_of_a_long_range", [NODE("Range", ["a", "b", "s"], ["r"]), node("Unique", ["r"])], weights=[
        scalar("a", 0, np.float32), scalar("b", 1 << 24, np.float32), scalar("s", 1, np.float32)])
    alone("boxes_that_all_stay", constant_of("b", [1, 1 << 20, 4], 0) + constant_of("s", [1, 1, 1 << 20]) +
          [node("NonMaxSuppression", ["b", "s", "most"])], weights=[scalar("most", 1 << 62)])
    alone("product_of_constants", constant_of("c", [1 << 12, 1 << 12]) + [node("MatMul", ["c", "c"])])
    alone("attention_of_constants", constant_of("c", [1, 1, 1 << 14, 64]) + [node("Attention", ["c", "c", "c"])], opset=23)
    alone("labels_of_64_mb", constant_of("c", [1 << 23], kind=np.int64) + [
        NODE("LabelEncoder", ["c"], ["y"], domain="ai.onnx.ml", keys_int64s=[1], values_int64s=[2])])
    trees = dict(nodes_featureids=[0], nodes_modes=numpy_helper.from_array(np.array([6], np.uint8)), tree_roots=[0],
                 nodes_truenodeids=[0], nodes_falsenodeids=[0], nodes_trueleafs=[1], nodes_falseleafs=[1], n_targets=1,
                 nodes_splits=numpy_helper.from_array(np.ones(1, np.float32)), leaf_targetids=[0],
                 leaf_weights=numpy_helper.from_array(np.ones(1, np.float32)))
    ensemble = NODE("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **trees)
    ensemble.attribute.append(onnx.AttributeProto(name="membership_values", type=onnx.AttributeProto.SPARSE_TENSOR,
                                                  sparse_tensor=sparse("m", [1 << 26])))
    alone("tree_with_a_set_of_2_26", [ensemble])


def add_text_cases():
    names = ["s"] + [f"t{i}" for i in range(60)]
    double = [NODE("StringConcat", [names[i], names[i]], [names[i + 1]]) for i in range(60)]
    alone("string_that_doubles", double + [NODE("Equal", ["t59", "t59"], ["y"])], weights=[strings("s", ["a" * 100])])
    columns = [NODE("StringSplit", ["b"], ["c", "n"]), NODE("StringConcat", ["a", "b"], ["ab"]),
               NODE("StringConcat", ["ab", "c"], ["abc"]), NODE("Equal", ["abc", "abc"], ["y"])]
    alone("strings_that_broadcast_to_2_30", columns, weights=[strings("a", ["a"] * 1024), strings("b", ["a"] * 1024, [1024, 1])])
    alone("string_of_3000_parts_among_3000", [NODE("StringSplit", ["s"], ["c", "y"], delimiter="-")],
          weights=[strings("s", ["-" * 3000] + [""] * 3000)])
    for name, pattern in {"long": "(.*a?){5000}", "nested": "((a{300}){300})", "deep": "(" * 499 + "a" + ")" * 499,
                          "open": "{{{{((((", "wide": "(a?){10000}"}.items():
        alone(f"regex_{name}", [NODE("RegexFullMatch", ["s"], ["y"], pattern=pattern)], weights=[strings("s", ["a" * 4000])])

    def count(dims, longest, skip, pool):
        return constant_of("w", dims, kind=np.int64) + [NODE(
            "TfIdfVectorizer", ["w"], ["y"], mode="TF", min_gram_length=1, max_gram_length=longest, max_skip_count=skip,
            ngram_counts=[0] * pool, ngram_indexes=[0], pool_int64s=[1] * pool)]
    alone("n_grams_of_3000_words", count([3000], 1 << 62, 1 << 62, 1000))
    alone("n_grams_of_no_words", count([1 << 30, 0], 9, 9, 1))
    alone("n_grams_of_2_20_documents", count([1 << 20, 1], 9, 9, 1))


def add_unrolled_cases():
    for kind, gates in {"RNN": 1, "GRU": 3, "LSTM": 4}.items():
        weights = [numpy_helper.from_array(np.ones((1, gates * 2, 2), np.float32), name) for name in "wr"]
        for steps in (20_000, 100_000):
            alone(f"{kind.lower()}_of_{steps}_steps", [node(kind, ["x", "w", "r"], hidden_size=2)],
                  inputs=[info("x", (steps, 1, 2))], weights=weights)
    body = helper.make_graph([NODE("Add", ["s", "v"], ["t"]), NODE("Identity", ["t"], ["o"])], "body", [info("s", (2,)), info("v", (2,))],
                             [info("t", (2,)), info("o", (2,))])
    alone("scan_of_16000", [NODE("Scan", ["z", "x"], ["u", "y"], num_scan_inputs=1, body=body)],
          inputs=[info("z", (2,)), info("x", (16_000, 2))])
    alone("scan_of_2_30", [NODE("Scan", ["z", "x"], ["u", "y"], num_scan_inputs=1, body=body)],
          inputs=[info("z", (2,)), info("x", (1 << 30, 2))])
    grow = helper.make_graph([NODE("SequenceInsert", ["s", "x"], ["t"])], "body", [
        info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), helper.make_tensor_sequence_value_info("s", 1, [2, 3])], [
        info("go", (), TensorProto.BOOL), helper.make_tensor_sequence_value_info("t", 1, [2, 3])])
    alone("sequence_that_grows", [NODE("SequenceConstruct", ["x"], ["e"]), NODE("Loop", ["trips", "", "e"], ["q"], body=grow),
                                  NODE("ConcatFromSequence", ["q"], ["y"], axis=0)], weights=[scalar("trips", 24_000)])
    dead = helper.make_graph([NODE("Relu", [f"d{i}" if i else "x"], [f"d{i + 1}"]) for i in range(200)], "dead", [], [info("d200")])
    short = helper.make_graph([NODE("Relu", ["s"], ["r"])], "short", [], [info("r")])
    choice = helper.make_graph([NODE("If", ["go"], ["t"], then_branch=short, else_branch=dead)], "body", [
        info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("s")], [info("go", (), TensorProto.BOOL), info("t")])
    alone("loop_over_a_dead_branch", [NODE("Loop", ["trips", "", "x"], ["y"], body=choice)], weights=[scalar("trips", 12_000)])
    alone("split_into_60000_and_joined", [NODE("SplitToSequence", ["x"], ["q"]), NODE("ConcatFromSequence", ["q"], ["y"], axis=0)],
          inputs=[info("x", (60_000, 2))])
    parts = [NODE("SplitToSequence", ["x"], [f"q{i}"]) for i in range(9)]
    alone("split_into_540000", parts + [node("ConcatFromSequence", ["q8"], axis=0)], inputs=[info("x", (60_000, 2))])
    alone("regions_that_take_as_many_samples_as_they_need", constant_of("r", [8_000, 4]) + constant_of("b", [8_000], 0, np.int64) + [
        node("RoiAlign", ["x", "r", "b"])], inputs=[info("x", (1, 1, 4, 4))])
    alone("linear_attention_of_30000", [NODE("LinearAttention", ["x", "x", "x"], ["y", "s"], q_num_heads=1, kv_num_heads=1,
                                             update_rule="linear")], inputs=[info("x", (1, 30_000, 2))], opset=27)
    for name, op in {"if": "If", "loop": "Loop"}.items():
        condition = numpy_helper.from_array(np.zeros(0, bool), "none")
        nodes = [NODE("If", ["none"], ["y"], then_branch=short_branch(), else_branch=short_branch())] if op == "If" else [
            NODE("Loop", ["trips", "none", "x"], ["y"], body=grow)]
        alone(f"{name}_of_an_empty_condition", nodes, weights=[condition, scalar("trips", 1)], may_succeed=False)
    default = numpy_helper.from_array(np.zeros(0, np.int64), "d")
    alone("label_default_of_none", [NODE("LabelEncoder", ["n"], ["y"], domain="ai.onnx.ml", keys_int64s=[1], values_tensor=integers(
        "v", [2]), default_tensor=default)], weights=[integers("n", [1, 2])], may_succeed=False)


def short_branch():
    return helper.make_graph([NODE("Relu", ["x"], ["r"])], "short", [], [info("r")])


def add_size_cases():
    for add in (add_window_cases, add_table_cases, add_text_cases, add_unrolled_cases):
        add()
