"""Cases of ai.onnx.ml for make_contrib_cases.py."""
import statistics

import numpy as np
from onnx import TensorProto, helper

f32 = np.float32


def floats(rng, *dims):
    return rng.standard_normal(dims).astype(f32)


def ml(name, op, inputs, outputs=("y",), **more):
    return dict(name=name, op=op, inputs=inputs, outputs=outputs, domain="ai.onnx.ml", **more)


def forest(trees, depth, features, targets, prefix, mode="BRANCH_LEQ", seed=0, positive=False, tracks=False, single=None,
           every=False):
    """Attributes of random trees; some branches end early. `single`: the only target; `every`: leaves weigh all targets."""
    rng = np.random.default_rng(seed)
    a = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                         "missing_value_tracks_true")}
    w = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    modes = mode if isinstance(mode, list) else [mode]

    def leaf_weights(tree, node):
        ids = range(targets) if every else [single if single is not None else int(rng.integers(targets))]
        for target in ids:
            weight = float(f32(rng.uniform(0 if positive else -1, 1) / trees))
            for key, value in zip(w, (tree, node, target, weight)):
                w[key].append(value)

    for tree in range(trees):
        count = 0

        def grow(level):
            nonlocal count
            node = count
            count += 1
            at = len(a["nodeids"])
            is_leaf = level == depth or (level > 0 and rng.random() < 0.2)
            chosen = "LEAF" if is_leaf else modes[int(rng.integers(len(modes)))]
            value = 0.0 if is_leaf else float(rng.integers(-1, 2)) if "EQ" == chosen[-2:] and chosen[7:] in (
                "EQ", "NEQ") else float(f32(rng.normal()))
            row = (tree, node, 0 if is_leaf else int(rng.integers(features)), value, chosen, 0, 0, int(rng.integers(2)))
            for key, item in zip(a, row):
                a[key].append(item)
            if is_leaf:
                leaf_weights(tree, node)
            else:
                a["truenodeids"][at] = grow(level + 1)
                a["falsenodeids"][at] = grow(level + 1)
            return node
        grow(0)
    if not tracks:
        del a["missing_value_tracks_true"]
    return {"nodes_" + k: v for k, v in a.items()} | {f"{prefix}_{k}": v for k, v in w.items()}


def regressors():
    x = lambda rng: {"x": floats(rng, 5, 4)}
    small = dict(trees=3, depth=3, features=4)
    yield ml("tree_regressor", "TreeEnsembleRegressor", x, n_targets=1, **forest(**small, targets=1, prefix="target"))
    for mode in ("BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
        yield ml("tree_regressor_" + mode[7:].lower(), "TreeEnsembleRegressor", x, n_targets=1,
                 **forest(**small, targets=1, prefix="target", mode=mode, seed=2))
    whole = lambda rng: {"x": rng.integers(-1, 2, (6, 4)).astype(f32)}
    yield ml("tree_regressor_mixed", "TreeEnsembleRegressor", whole, n_targets=2, **forest(
        **small, targets=2, prefix="target", mode=["BRANCH_EQ", "BRANCH_NEQ", "BRANCH_LEQ", "BRANCH_GT"], seed=3))
    for aggregate in ("AVERAGE", "MIN", "MAX"):
        yield ml("tree_regressor_" + aggregate.lower(), "TreeEnsembleRegressor", x, n_targets=2, aggregate_function=aggregate,
                 base_values=[0.5, -0.25], **forest(**small, targets=2, prefix="target", seed=4, every=True))
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield ml("tree_regressor_" + transform.lower(), "TreeEnsembleRegressor", x, n_targets=3, post_transform=transform,
                 **forest(**small, targets=3, prefix="target", seed=5))

    def holes(rng):
        x = floats(rng, 6, 4)
        x[rng.random(x.shape) < 0.4] = np.nan
        return {"x": x}
    yield ml("tree_regressor_missing", "TreeEnsembleRegressor", holes, n_targets=1,
             **forest(**small, targets=1, prefix="target", seed=6, tracks=True))
    yield ml("tree_regressor_f64", "TreeEnsembleRegressor", lambda rng: {"x": rng.standard_normal((5, 4))}, n_targets=1,
             **forest(**small, targets=1, prefix="target", seed=7))
    yield ml("tree_regressor_deep", "TreeEnsembleRegressor", x, n_targets=1,
             **forest(1, 6, 4, 1, "target", seed=8))
    yield ml("tree_regressor_leaf_only", "TreeEnsembleRegressor", x, n_targets=1,
             **forest(2, 0, 4, 1, "target", seed=9))


def classifiers():
    x = lambda rng: {"x": floats(rng, 6, 4)}
    small = dict(trees=3, depth=3, features=4, prefix="class")
    out = ("label", "scores")
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield ml("tree_classifier_" + transform.lower(), "TreeEnsembleClassifier", x, out, post_transform=transform,
                 classlabels_int64s=[3, 1, 2], **forest(**small, targets=3, seed=1, every=True))
    yield ml("tree_classifier_base", "TreeEnsembleClassifier", x, out, classlabels_int64s=[3, 1, 2],
             base_values=[0.1, 0.2, -0.3], **forest(**small, targets=3, seed=2, every=True))
    for transform in ("NONE", "LOGISTIC"):
        for positive in (False, True):
            name = f"tree_classifier_binary_{transform.lower()}_{'positive' if positive else 'mixed'}"
            yield ml(name, "TreeEnsembleClassifier", x, out, post_transform=transform, classlabels_int64s=[5, 7],
                     **forest(**small, targets=2, seed=3, positive=positive, single=0))
    yield ml("tree_classifier_binary_base", "TreeEnsembleClassifier", x, out, post_transform="LOGISTIC",
             classlabels_int64s=[0, 1], base_values=[0.2], **forest(**small, targets=2, seed=4, single=0))
    yield ml("tree_classifier_second", "TreeEnsembleClassifier", x, out, classlabels_int64s=[0, 1],
             **forest(**small, targets=2, seed=5, single=1))
    yield ml("tree_classifier_names", "TreeEnsembleClassifier", x, out, classlabels_strings=["a", "b", "c"],
             **forest(**small, targets=3, seed=6, every=True))


def linear():
    x = lambda rng: {"x": floats(rng, 5, 3)}
    rng = np.random.default_rng(5)
    rows = [float(v) for v in floats(rng, 9)]
    out = ("label", "scores")
    yield ml("linear_regressor", "LinearRegressor", x, coefficients=rows[:3], intercepts=[0.5])
    yield ml("linear_regressor_targets", "LinearRegressor", x, coefficients=rows[:6], intercepts=[0.5, -1.0], targets=2)
    yield ml("linear_regressor_integers", "LinearRegressor", lambda rng: {"x": rng.integers(-3, 4, (4, 3)).astype(np.float32)},
             coefficients=rows[:3])
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield ml("linear_classifier_" + transform.lower(), "LinearClassifier", x, out, coefficients=rows,
                 intercepts=[0.1, 0.2, 0.3], classlabels_ints=[4, 5, 6], post_transform=transform)
        yield ml("linear_classifier_binary_" + transform.lower(), "LinearClassifier", x, out, coefficients=rows[:3],
                 intercepts=[0.1], classlabels_ints=[0, 1], post_transform=transform)
    # ONNX Runtime writes the second class's score only, into both columns' memory.
    inverse_normal = np.vectorize(statistics.NormalDist().inv_cdf)
    shares = lambda rng: {"x": rng.uniform(0.05, 0.95, (5, 1)).astype(f32)}
    yield ml("linear_classifier_binary_probit", "LinearClassifier", shares, out, coefficients=[1.0], intercepts=[0.0],
             classlabels_ints=[0, 1], post_transform="PROBIT", tolerances={"atol": 0.01},
             expected=lambda i: [np.ones(5, np.int64), inverse_normal(np.hstack([1 - i["x"], i["x"]])).astype(f32)])
    yield ml("linear_classifier_surplus", "LinearClassifier", x, out, coefficients=[*rows, *rows[:3]], intercepts=[0.1, 0.2, 0.3],
             classlabels_ints=[4, 5, 6], post_transform="LOGISTIC")
    yield ml("linear_classifier_names", "LinearClassifier", x, out, coefficients=rows, intercepts=[0.1, 0.2, 0.3],
             classlabels_strings=["a", "b", "c"], multi_class=1)


def vectors():
    rng = np.random.default_rng(9)
    x = lambda rng: {"x": floats(rng, 6, 3)}
    support = [float(v) for v in floats(rng, 7 * 3)]
    coefficients = [float(v) for v in floats(rng, 2 * 7)]
    out = ("label", "scores")
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        parameters = dict(kernel_type=kernel, kernel_params=[0.3, 0.5, 2.0])
        yield ml("svm_regressor_" + kernel.lower(), "SVMRegressor", x, n_supports=7, support_vectors=support,
                 coefficients=coefficients[:7], rho=[0.2], **parameters)
        yield ml("svm_classifier_" + kernel.lower(), "SVMClassifier", x, out, vectors_per_class=[3, 2, 2],
                 support_vectors=support, coefficients=coefficients, rho=[0.1, -0.2, 0.3], classlabels_ints=[2, 4, 6],
                 **parameters)
    yield ml("svm_regressor_one_class", "SVMRegressor", x, n_supports=7, support_vectors=support, one_class=1,
             coefficients=coefficients[:7], rho=[0.2], kernel_type="RBF", kernel_params=[0.3, 0.0, 0.0])
    far = [value + 2000 for value in support]
    yield ml("svm_regressor_far", "SVMRegressor", lambda rng: {"x": floats(rng, 6, 3) + f32(2000)}, n_supports=7,
             support_vectors=far, coefficients=coefficients[:7], rho=[0.2], kernel_type="RBF", kernel_params=[0.3, 0.0, 0.0],
             tolerances={"atol": 1e-4})
    yield ml("svm_regressor_linear_model", "SVMRegressor", x, coefficients=coefficients[:3], rho=[0.2],
             kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
    binary = dict(vectors_per_class=[3, 4], support_vectors=support, coefficients=coefficients[:7], kernel_type="RBF",
                  kernel_params=[0.3, 0.0, 0.0], classlabels_ints=[0, 1])
    yield ml("svm_classifier_binary", "SVMClassifier", x, out, rho=[0.1], **binary)
    yield ml("svm_classifier_shares", "SVMClassifier", x, out, rho=[0.1], prob_a=[-1.2], prob_b=[0.1], **binary)
    three = dict(vectors_per_class=[3, 2, 2], support_vectors=support, coefficients=coefficients, kernel_type="RBF",
                 kernel_params=[0.3, 0.0, 0.0], rho=[0.1, -0.2, 0.3], classlabels_ints=[2, 4, 6])
    yield ml("svm_classifier_three_shares", "SVMClassifier", x, out, prob_a=[-1.2, -0.7, -2.0], prob_b=[0.1, -0.2, 0.3],
             **three)
    yield ml("svm_classifier_linear_model", "SVMClassifier", x, out, coefficients=coefficients[:9], rho=[0.1],
             classlabels_ints=[1, 2, 3], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])


def features():
    x = lambda rng: {"x": floats(rng, 3, 4)}
    yield ml("scaler", "Scaler", x, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 1.0, 2.0, 3.0])
    yield ml("scaler_one", "Scaler", lambda rng: {"x": rng.integers(0, 9, (3, 4), np.int64)}, offset=[1.0], scale=[0.5])
    for norm in ("MAX", "L1", "L2"):
        yield ml("normalizer_" + norm.lower(), "Normalizer", lambda rng: {"x": np.abs(floats(rng, 3, 4))}, norm=norm)
    yield ml("imputer_nan", "Imputer", lambda rng: {"x": np.array([[1, np.nan], [np.nan, 2]], f32)},
             imputed_value_floats=[5.0, 6.0], replaced_value_float=float("nan"))
    yield ml("imputer_integer", "Imputer", lambda rng: {"x": np.array([[1, -1], [-1, 2]], np.int64)},
             imputed_value_int64s=[7], replaced_value_int64=-1)
    yield ml("one_hot", "OneHotEncoder", lambda rng: {"x": np.array([[1, 5], [3, 2]], np.int64)}, cats_int64s=[1, 2, 3],
             zeros=1)
    yield ml("one_hot_names", "OneHotEncoder", lambda rng: {"x": np.array(["b", "a", "z"])}, cats_strings=["a", "b"], zeros=1)
    yield ml("one_hot_known", "OneHotEncoder", lambda rng: {"x": np.array([[1, 3], [3, 2]], np.int64)}, cats_int64s=[1, 2, 3],
             zeros=0)
    yield ml("one_hot_known_names", "OneHotEncoder", lambda rng: {"x": np.array(["b", "a"])}, cats_strings=["a", "b"], zeros=0)
    yield ml("feature_vectorizer", "FeatureVectorizer", lambda rng: {"a": floats(rng, 2, 3), "b": floats(rng, 2, 1)},
             inputdimensions=[3, 1])
    yield ml("category_mapper_names", "CategoryMapper", lambda rng: {"x": np.array(["b", "a", "z"])}, cats_strings=["a", "b"],
             cats_int64s=[10, 20], default_int64=-7)
    yield ml("category_mapper_numbers", "CategoryMapper", lambda rng: {"x": np.array([20, 10, 5], np.int64)},
             cats_strings=["a", "b"], cats_int64s=[10, 20], default_string="none")
    yield ml("label_encoder_first_names", "LabelEncoder", lambda rng: {"x": np.array(["b", "a", "z"])}, classes_strings=["a", "b"],
             default_int64=-7, ml_opset=1)
    yield ml("label_encoder_first_numbers", "LabelEncoder", lambda rng: {"x": np.array([1, 0, 5], np.int64)},
             classes_strings=["a", "b"], default_string="none", ml_opset=1)
    encoded = dict(keys_int64s=[3, 5, 9], values_floats=[0.5, 1.5, 2.5], default_float=-1.0)
    yield ml("label_encoder_places", "LabelEncoder", lambda rng: {"x": np.array([[9, 4], [3, -1]], np.int64)}, **encoded)
    yield ml("label_encoder_far", "LabelEncoder", lambda rng: {"x": np.array([7, 10**12, -10**15, 3], np.int64)},
             keys_int64s=[10**12, 7, -10**15], values_int64s=[1, 2, 3], default_int64=-4)
    yield ml("label_encoder_reals", "LabelEncoder", lambda rng: {"x": np.array([0.5, np.nan, -2.0, 0.25, 9.0], f32)},
             keys_floats=[0.5, -2.0, float("nan"), 0.25], values_int64s=[1, 2, 3, 4], ml_opset=4,
             default_tensor=helper.make_tensor("default", TensorProto.INT64, [1], [-4]))
    yield ml("label_encoder_names", "LabelEncoder", lambda rng: {"x": np.array([5, 1, 6], np.int64)}, keys_int64s=[5, 6],
             values_strings=["five", "six"], default_string="none")
    yield ml("zip_map", "ZipMap", x, classlabels_int64s=[0, 1, 2, 3], expected=lambda i: [i["x"]])


def cases():
    for family in (regressors, classifiers, linear, vectors, features):
        yield from family()
