"""Hostile models of com.microsoft and ai.onnx.ml: wrong ranks, absurd sizes, trees that lead back, indices beyond tables."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from hostile_case import case, floats, info, model, save


def of_domain(domain):
    def bad(name, op, weights=(), inputs=None, nodes_inputs=None, may_succeed=False, outputs=("y",), **attributes):
        names = nodes_inputs or [i.name for i in inputs or [info("x")]] + [w.name for w in weights]
        node = helper.make_node(op, names, outputs, domain=domain, **attributes)
        case("domain", name, save(model([node], inputs=inputs, weights=weights)), may_succeed)
    return bad


def numbers(name, *values, kind=np.int32):
    return numpy_helper.from_array(np.array(values[0] if len(values) == 1 else values, kind), name)


def packed(*dims):
    return numpy_helper.from_array(np.zeros(dims, np.uint8), "b")


def add_contrib_cases():
    bad = of_domain("com.microsoft")
    row = [info("x", (1, 3, 32))]
    blocks = [packed(4, 1, 16), floats("s", (4, 1))]
    for name, size in (("0", 0), ("odd", 33), ("negative", -32), ("huge", 1 << 62)):
        bad(f"bits_block_{name}", "MatMulNBits", blocks, row, K=32, N=4, block_size=size)
    for name, k, n in (("0", 0, 4), ("huge", 1 << 62, 1 << 62), ("negative", -32, 4), ("other", 64, 4)):
        bad(f"bits_size_{name}", "MatMulNBits", blocks, row, K=k, N=n, block_size=32)
    bad("bits_of_a_scalar", "MatMulNBits", blocks, [info("x", ())], K=32, N=4, block_size=32)
    bad("bits_scales_missing", "MatMulNBits", [blocks[0], floats("s", (4, 7))], row, K=32, N=4, block_size=32)
    bad("bits_zero_points_short", "MatMulNBits", blocks + [numbers("z", 1, kind=np.uint8)], row, K=32, N=4, block_size=32)
    def experts(name, first=(4, 6, 8), second=(4, 8, 6), tokens=1, **attributes):
        bad(f"experts_{name}", "MoE", [floats("first", first), floats("second", second)],
            [info("x", (tokens, 8)), info("scores", (1, 4))], nodes_inputs=["x", "scores", "first", "", "second"], **attributes)
    for name, k in (("0", 0), ("negative", -1), ("many", 5), ("huge", 1 << 62)):
        experts(name, k=k)
    experts("scores_short", tokens=3)
    experts("other_columns", first=(4, 6, 9))
    experts("one_missing", second=(3, 8, 6))
    experts("odd_gates", first=(4, 5, 8), activation_type="swiglu", swiglu_fusion=1)
    experts("unknown_fusion", activation_type="swiglu", swiglu_fusion=9)
    experts("unknown_activation", activation_type="step")
    maps = [info("x", (1, 1, 4, 4)), info("m", (1, 1, 4, 4), TensorProto.INT32)]
    for name, kernel in (("0", [0, 1]), ("huge", [1, 1 << 62]), ("short", [2])):
        bad(f"masked_pool_{name}", "MaxpoolWithMask", inputs=maps, kernel_shape=kernel)
    bad("masked_pool_other_mask", "MaxpoolWithMask", inputs=[maps[0], info("m", (1, 1, 4, 5), TensorProto.INT32)], kernel_shape=[2, 2])
    for name, pads in (("short", [1, 1]), ("negative", [-1, 0, 0, 0]), ("huge", [1 << 62] * 4)):
        bad(f"transposed_pads_{name}", "ConvTransposeWithDynamicPads", [floats("w", (1, 1, 2, 2)), numbers("p", pads, kind=np.int64)],
            maps[:1], ["x", "w", "p"])
    bad("alignment_of_a_list", "DynamicTimeWarping", [], [info("x", (4,))])
    bad("hash_of_bytes", "MurmurHash3", [], [info("x", (2,), TensorProto.UINT8)])
    table = [packed(4, 16), info("x", (2,), TensorProto.INT32)]
    for name, size in (("0", 0), ("huge", 1 << 40), ("odd", 17)):
        bad(f"gather_block_{name}", "GatherBlockQuantized", [table[0], floats("s", (4, 1))], table[1:], ["b", "x", "s"],
            block_size=size)
    bad("gather_scales", "GatherBlockQuantized", [table[0], floats("s", (4, 1))], table[1:], ["b", "x", "s"], block_size=16)
    bad("attention_of_rank_1", "Attention", [floats("w", (6, 12))], [info("x", (6,))], num_heads=2)
    bad("attention_heads_0", "Attention", [floats("w", (6, 12))], [info("x", (1, 3, 6))], num_heads=0)
    bad("attention_sizes_negative", "Attention", [floats("w", (6, 12))], [info("x", (1, 3, 6))], num_heads=2,
        qkv_hidden_sizes=[-4, 12, 4])
    bad("attention_sizes_huge", "Attention", [floats("w", (6, 12))], [info("x", (1, 3, 6))], num_heads=2,
        qkv_hidden_sizes=[1 << 62, 1 << 62, 1 << 62])
    bad("attention_past_of_rank_1", "Attention", nodes_inputs=["x", "w", "", "", "p"], num_heads=2,
        weights=[floats("w", (6, 12)), floats("p", (4,))], inputs=[info("x", (1, 3, 6))])
    bad("multi_head_of_one_input", "MultiHeadAttention", inputs=[info("x", (1, 3, 6))], num_heads=2)
    bad("multi_head_rank_5", "MultiHeadAttention", inputs=[info("x", (1, 3, 2, 1, 6))], num_heads=2)
    query = [info(n, (1, 2, 8)) for n in "qkv"]

    def grouped(name, lengths, total, inputs=query, heads=2, kv_heads=2, **attributes):
        names = [i.name for i in inputs] + ["", "", "l", "t"]
        bad("grouped_" + name, "GroupQueryAttention", [numbers("l", lengths), numbers("t", total)], inputs, names,
            num_heads=heads, kv_num_heads=kv_heads, **attributes)
    grouped("total_huge", [1], 1 << 30)
    grouped("total_negative", [1], -5)
    grouped("total_0", [1], 0)
    grouped("lengths_empty", np.zeros(0, np.int32), 2)
    grouped("lengths_beyond", [1 << 30], 5)
    grouped("heads_0", [1], 2, kv_heads=0)
    grouped("heads_negative", [1], 2, heads=-2, kv_heads=-1)
    grouped("other_tokens", [1], 2, inputs=[info("q", (1, 2, 8)), info("k", (1, 7, 8)), info("v", (1, 7, 8))])
    grouped("no_batch", np.zeros(0, np.int32), 2, inputs=[info(n, (0, 2, 8)) for n in "qkv"])
    bad("rotary_cache_of_rank_1", "RotaryEmbedding", [numbers("p", 0, kind=np.int64), floats("c", (4,)), floats("s", (4,))],
        [info("x", (1, 3, 8))])
    bad("rotary_beyond", "RotaryEmbedding", [numbers("p", [1 << 40], kind=np.int64), floats("c", (4, 4)), floats("s", (4, 4))],
        [info("x", (1, 3, 8))], may_succeed=True)
    bad("embed_words_beyond", "EmbedLayerNormalization", [
        floats("w", (2, 4)), floats("p", (2, 4)), floats("g", (4,)), floats("b", (4,))],
        [info("x", (1, 9), TensorProto.INT32)], ["x", "", "w", "p", "", "g", "b"])
    bad("group_norm_of_a_scalar", "GroupNorm", [floats("g", (4,)), floats("b", (4,))], [info("x", ())], groups=2, activation=0)
    bad("skip_group_norm_of_a_scalar", "SkipGroupNorm", [floats("g", (4,)), floats("b", (4,)), floats("s", (1, 4))],
        [info("x", ())], groups=2, activation=0)
    bad("qlinear_concat_of_two", "QLinearConcat", axis=0)
    bad("qlinear_scales", "QLinearSigmoid", [floats("a", (3,)), numbers("z", 0, kind=np.uint8), floats("s", (3,))],
        [info("x", (2, 3), TensorProto.UINT8)])
    bad("lstm_parameters", "DynamicQuantizeLSTM", nodes_inputs=["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"],
        inputs=[info("x", (2, 1, 3))], weights=[
            numpy_helper.from_array(np.zeros((1, 3, 8), np.int8), "w"), numpy_helper.from_array(np.zeros((1, 2, 8), np.int8), "r"),
            floats("s", (7,)), numpy_helper.from_array(np.zeros(7, np.int8), "z")], hidden_size=2)
    bad("inverse_huge", "Inverse", inputs=[info("x", (1 << 20, 1 << 20))])
    bad("expand_dims_beyond", "ExpandDims", [numbers("a", 1 << 30)])
    bad("fused_matmul_of_scalars", "FusedMatMul", nodes_inputs=["x", "x"], inputs=[info("x", ())], transBatchA=1, transA=1)
    bad("conv_last_of_rank_2", "NhwcConv", [floats("w", (4, 4, 3, 3))])
    bad("attribute_unknown_in_domain", "Gelu", teleport=1)


def tree(**changes):
    lists = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3,
             "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0],
             "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
             "target_weights": [1.0, 2.0], "n_targets": 1}
    return lists | changes


def add_ml_cases():
    bad = of_domain("ai.onnx.ml")

    def trees(name, **changes):
        bad("trees_" + name, "TreeEnsembleRegressor", **tree(**changes))
    trees("lead_to_themselves", nodes_truenodeids=[0, 0, 0])
    inner = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]
    trees("lead_back", nodes_modes=inner, nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 2, 0], target_nodeids=[2, 2])
    trees("lead_nowhere", nodes_truenodeids=[77, 0, 0])
    trees("lead_below_0", nodes_falsenodeids=[-1, 0, 0])
    trees("feature_beyond", nodes_featureids=[3, 0, 0])
    trees("feature_negative", nodes_featureids=[-1, 0, 0])
    trees("two_of_a_number", nodes_nodeids=[0, 1, 1])
    trees("short_list", nodes_values=[0.5])
    trees("unknown_mode", nodes_modes=["BRANCH_WILD", "LEAF", "LEAF"])
    trees("target_beyond", target_ids=[0, 9])
    trees("targets_huge", n_targets=1 << 60)
    trees("targets_0", n_targets=0)
    trees("weight_of_no_leaf", target_nodeids=[0, 2])
    bad("trees_of_nothing", "TreeEnsembleRegressor", n_targets=1)
    count = 3000  # a chain deeper than anyone grows
    trees("deep", nodes_treeids=[0] * (count + 1), nodes_nodeids=list(range(count + 1)), nodes_featureids=[0] * (count + 1),
          nodes_values=[0.0] * (count + 1), nodes_modes=["BRANCH_LEQ"] * count + ["LEAF"],
          nodes_truenodeids=list(range(1, count + 1)) + [0], nodes_falsenodeids=[count] * (count + 1), target_treeids=[0],
          target_nodeids=[count], target_ids=[0], target_weights=[1.0])
    bad("tree_classes_without_labels", "TreeEnsembleClassifier", outputs=("l", "y"), **{
        key.replace("target", "class"): value for key, value in tree().items() if key != "n_targets"})
    bad("linear_rows", "LinearRegressor", coefficients=[1.0, 2.0])
    bad("linear_without_coefficients", "LinearClassifier", outputs=("l", "y"), classlabels_ints=[0, 1])
    bad("svm_vectors_huge", "SVMClassifier", outputs=("l", "y"), coefficients=[1.0] * 4, support_vectors=[1.0] * 12, rho=[0.1],
        classlabels_ints=[0, 1], vectors_per_class=[1 << 62, 1 << 62])
    bad("svm_vectors_negative", "SVMClassifier", outputs=("l", "y"), coefficients=[1.0] * 4, support_vectors=[1.0] * 12,
        rho=[0.1], classlabels_ints=[0, 1], vectors_per_class=[-4, 8])
    bad("svm_many_classes", "SVMClassifier", outputs=("l", "y"), coefficients=[1.0] * 4, support_vectors=[1.0] * 12, rho=[0.1],
        classlabels_ints=list(range(65_000)), vectors_per_class=[0] * 65_000)
    bad("svm_without_rho", "SVMRegressor", coefficients=[1.0] * 3, n_supports=0)
    bad("scaler_of_another_width", "Scaler", offset=[1.0] * 7)
    bad("imputer_without_values", "Imputer")
    bad("one_hot_huge", "OneHotEncoder", inputs=[info("x", (1 << 20, 1 << 10), TensorProto.INT64)], cats_int64s=list(range(9999)))
    bad("zip_map_labels", "ZipMap", classlabels_int64s=[0])
    bad("cast_map", "CastMap", map_form="SPARSE", max_map=-1)
    bad("dict_vectorizer", "DictVectorizer", int64_vocabulary=[1])


def add_domain_cases():
    add_contrib_cases()
    add_ml_cases()
