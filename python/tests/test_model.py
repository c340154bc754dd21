"""The package without torch: ONNX models on NumPy arrays and DLPack tensors."""

import copy
import gc
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnx.helper as oh
from threads import in_threads

import sylvite


def save(folder, nodes, inputs, outputs, initializers=(), name="model.onnx"):
    """A model of one graph; inputs and outputs are (name, type, shape)."""
    graph = oh.make_graph(
        nodes, "g", [oh.make_tensor_value_info(*i) for i in inputs], [oh.make_tensor_value_info(*o) for o in outputs],
        list(initializers))
    path = pathlib.Path(folder) / name
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), path)
    return path


F32, I64, BOOL, F16, BF16, TEXT = (
    getattr(onnx.TensorProto, n) for n in ("FLOAT", "INT64", "BOOL", "FLOAT16", "BFLOAT16", "STRING"))
OPTIONS = {"compile.threads": 2}


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def compile(self, *model, **keywords):
        return sylvite.compile(save(self.folder.name, *model), options=OPTIONS, **keywords)

    def adder(self, **keywords):
        return self.compile([oh.make_node("Sub", ["a", "b"], ["c"])], [("a", F32, [2, 3]), ("b", F32, [2, 3])],
                            [("c", F32, [2, 3])], **keywords)


class Calls(WithFolder):
    def test_by_position_by_name_and_by_mapping(self):
        model = self.adder()
        self.assertEqual((model.input_names, model.output_names), (["a", "b"], ["c"]))
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
        for results in (model(a, b), model(b=b, a=a), model(a, b=b), model({"a": a, "b": b})):
            self.assertEqual(len(results), 1)
            np.testing.assert_array_equal(results[0], a - b)

    def test_strides_and_odd_addresses(self):
        model = self.adder()
        big = np.arange(48, dtype=np.float32).reshape(6, 8)
        odd = np.frombuffer(b"x" * 4 + np.ones(6, np.float32).tobytes(), np.float32, offset=4).reshape(2, 3)
        for a in (big[::3, 1:7:2], big[:3, :2].T, big[1:3, 5:2:-1], np.broadcast_to(big[0, :3], (2, 3))):
            np.testing.assert_array_equal(model(a, odd)[0], a - odd)

    def test_results_outlive_the_model_and_are_writable(self):
        model = self.adder()
        a = np.ones((2, 3), np.float32)
        first, = model(a, a * 3)
        second, = model(a, a)
        del model
        gc.collect()
        np.testing.assert_array_equal(first, np.full((2, 3), -2))
        first += 1
        np.testing.assert_array_equal(second, np.zeros((2, 3)))

    def test_dtypes_in_and_out(self):
        for kind, dtype in ((I64, np.int64), (F16, np.float16), (F32, np.float32)):
            model = self.compile([oh.make_node("Add", ["a", "a"], ["c"])], [("a", kind, [5])], [("c", kind, [5])])
            a = np.arange(5).astype(dtype)
            result, = model(a)
            self.assertEqual(result.dtype, dtype)
            np.testing.assert_array_equal(result, a + a)
        model = self.compile([oh.make_node("Not", ["a"], ["c"])], [("a", BOOL, [])], [("c", BOOL, [])])
        self.assertEqual(model(np.array(True))[0], np.array(False))

    def test_a_type_that_numpy_lacks_is_left_a_tensor(self):
        model = self.compile([oh.make_node("Cast", ["a"], ["c"], to=BF16)], [("a", F32, [4])], [("c", BF16, [4])])
        result, = model(np.ones(4, np.float32))
        self.assertIsInstance(result, sylvite.Tensor)
        self.assertEqual((result.dtype, result.shape), ("bf16", (4,)))

    def test_empty_and_zero_dimensional(self):
        model = self.compile([oh.make_node("ReduceSum", ["a"], ["c"], keepdims=0)], [("a", F32, [0, 3])], [("c", F32, [])])
        np.testing.assert_array_equal(model(np.zeros((0, 3), np.float32))[0], np.float32(0))

    def test_texts(self):
        model = self.compile([oh.make_node("StringConcat", ["a", "b"], ["c"]), oh.make_node("Abs", ["x"], ["y"])],
                             [("a", TEXT, [2, None]), ("b", TEXT, [1]), ("x", F32, [2])], [("c", TEXT, None), ("y", F32, [2])])
        x = np.array([-1, 2], np.float32)
        for a in (np.array([["k", "ö"], ["", "l"]]), np.array([["k", "ö"], ["", "l"]], object), [["k", "ö"], ["", "l"]]):
            joined, y = model(a, ["!"], x)
            self.assertEqual(joined.tolist(), [["k!", "ö!"], ["!", "l!"]])
            np.testing.assert_array_equal(y, [1, 2])
        self.assertRaises(sylvite.InputError, model, x, ["!"], x)

    def test_texts_are_looked_up(self):
        model = self.compile([oh.make_node("Constant", [], ["t"], value_strings=[b"a", b"bc", b"d"]), oh.make_node("Gather", ["t", "i"], ["y"])],
                             [("i", I64, [2, 2])], [("y", TEXT, [2, 2])])
        self.assertEqual(model(np.array([[2, 0], [-2, 1]]))[0].tolist(), [["d", "a"], ["bc", "bc"]])

    def test_sequences(self):
        model = self.compile([oh.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0)], [("x", F32, [3, 2])], [("s", F32, None)])
        x = np.arange(6, dtype=np.float32).reshape(3, 2)
        for part, row in zip(model(x)[0], x, strict=True):
            np.testing.assert_array_equal(part, row)
        graph = oh.make_graph([oh.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)], "g", [oh.make_tensor_sequence_value_info("s", F32, None)],
                              [oh.make_tensor_value_info("y", F32, None)])
        taking = sylvite.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), options=OPTIONS)
        np.testing.assert_array_equal(taking([x, x[:1]])[0], np.concatenate([x, x[:1]]))  # of different lengths
        np.testing.assert_array_equal(taking([x, x])[0], np.concatenate([x, x]))

    def test_results_by_dlpack(self):
        model = self.compile([oh.make_node("Cast", ["a"], ["c"], to=BF16)], [("a", F32, [4])], [("c", BF16, [4])])
        made, = model(np.ones(4, np.float32))
        double = self.compile([oh.make_node("Cast", ["a"], ["c"], to=F32)], [("a", BF16, [4])], [("c", F32, [4])])
        np.testing.assert_array_equal(double(made)[0], np.ones(4))  # a tensor of ours as an input
        self.assertEqual(made.__dlpack_device__(), (1, 0))

        class Odd:
            def __dlpack__(self, **_keywords):
                return 5

            def __dlpack_device__(self):
                return (1, 0)

        self.assertRaisesRegex(sylvite.InputError, "__dlpack__", model, Odd())

    def test_bytes_and_protos(self):
        path = save(self.folder.name, [oh.make_node("Neg", ["x"], ["y"])], [("x", F32, [2])], [("y", F32, [2])])
        for given in (path.read_bytes(), bytearray(path.read_bytes()), onnx.load(path)):
            model = sylvite.compile(given, options=OPTIONS)
            np.testing.assert_array_equal(model(np.float32([1, 2]))[0], [-1, -2])
            own = pathlib.Path(model._path).parent
            self.assertIn("neg", model.explain())
            self.assertIn("library", sylvite.export(given, pathlib.Path(self.folder.name) / "out", options=OPTIONS, name="net"))
            del model
            gc.collect()
            self.assertFalse(own.exists())
        with self.assertRaises(sylvite.ModelError):
            sylvite.compile(b"no model")

    def test_copies_and_pickles(self):
        path = save(self.folder.name, [oh.make_node("Sub", ["a", "b"], ["c"])], [("a", F32, ["n"]), ("b", F32, ["n"])], [("c", F32, ["n"])])
        x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
        for model in (path, path.read_bytes()):
            model = sylvite.compile(model, options=OPTIONS, dims={"n": (1, 64)})
            packed, copied = pickle.dumps(model), copy.deepcopy(model)
            del model
            for again in (pickle.loads(packed), copied, copy.copy(copied)):
                np.testing.assert_array_equal(again(x, y)[0], x - y)

    def test_open_sizes(self):
        model = self.compile([oh.make_node("Add", ["a", "a"], ["c"])], [("a", F32, ["n", 3])], [("c", F32, ["n", 3])],
                             dims={"n": (1, 8)})
        for n in (1, 5, 8):
            a = np.ones((n, 3), np.float32)
            np.testing.assert_array_equal(model(a)[0], a + a)
        with self.assertRaisesRegex(sylvite.InputError, "9"):
            model(np.ones((9, 3), np.float32))

    def test_first_answers(self):
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
        with tempfile.TemporaryDirectory() as cache:
            model = sylvite.compile(
                save(self.folder.name, [oh.make_node("Sub", ["a", "b"], ["c"])],
                     [("a", F32, [2, 3]), ("b", F32, [2, 3])], [("c", F32, [2, 3])]),
                options={**OPTIONS, "cache.dir": cache}, first_answer="fast")
            np.testing.assert_array_equal(model(a, b)[0], a - b)
            self.assertTrue(model.wait())
            np.testing.assert_array_equal(model(a, b)[0], a - b)
            self.assertEqual(model.report["compiled"], 1)
            self.assertGreater(model.report["first_answer_seconds"], 0)
        with self.assertRaisesRegex(sylvite.UsageError, "auto, best, fast"):
            self.adder(first_answer="soon")

    def test_wait_is_for_kernels_behind_calls(self):
        weight = oh.make_tensor("w", F32, [8, 8], np.arange(64, dtype=np.float32))
        with tempfile.TemporaryDirectory() as cache:
            model = sylvite.compile(
                save(self.folder.name, [oh.make_node("MatMul", ["a", "w"], ["b"]), oh.make_node("Softmax", ["b"], ["c"])],
                     [("a", F32, ["n", 8])], [("c", F32, ["n", 8])], [weight]),
                options={**OPTIONS, "cache.dir": cache, "compile.kernels_ahead": "off"}, dims={"n": "1..64@16"},
                first_answer="fast")
            self.assertTrue(model.wait())
            answers = model(np.ones((1, 8), np.float32))[0]
            self.assertTrue(model.is_ready)
            self.assertEqual(model.report["programs"], 1, "it was evaluated")
            self.assertTrue(model.wait())
            np.testing.assert_allclose(model(np.ones((1, 8), np.float32))[0], answers, rtol=1e-6)
            self.assertEqual(model.report["programs"], 2)

    def test_states(self):
        model = self.compile([oh.make_node("Add", ["a", "past"], ["present"]), oh.make_node("Neg", ["present"], ["c"])],
                             [("a", F32, [2]), ("past", F32, [2])], [("c", F32, [2]), ("present", F32, [2])],
                             states={"past": "present"})
        self.assertEqual((model.input_names, model.output_names), (["a"], ["c"]))
        one = np.ones(2, np.float32)
        self.assertEqual([model(one)[0][0] for _ in range(3)], [-1, -2, -3])
        model.reset_states()
        self.assertEqual(model(one)[0][1], -1)
        self.assertIn("--state", sylvite._settings.command_options(model._settings))

    def test_threads_take_turns(self):
        model = self.adder()
        wrong = []

        def work(number):
            a = np.full((2, 3), number, np.float32)
            for _ in range(200):
                if not (model(a, np.zeros_like(a))[0] == a).all():
                    wrong.append(number)

        in_threads(work)
        self.assertEqual(wrong, [])

    def test_inputs_are_released(self):
        model = self.adder()
        a = np.ones((2, 3), np.float32)
        before = sys.getrefcount(a)
        for _ in range(3):
            model(a, np.ones((2, 3), np.float32))
        model(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
        self.assertEqual(sys.getrefcount(a), before)


class Errors(WithFolder):
    def test_calls(self):
        model = self.adder()
        a = np.ones((2, 3), np.float32)
        for call, message in ((lambda: model(a), "'b' is missing"), (lambda: model(a, a, a), "3 inputs"),
                              (lambda: model(a, c=a), "'c'"), (lambda: model(a, a=a), "twice"),
                              (lambda: model(a, a[:1]), r"f32\[1,3\], expected f32\[2,3\]"),
                              (lambda: model(a, a.astype(np.float64)), "f64")):
            with self.assertRaisesRegex(sylvite.InputError, message):
                call()
        with self.assertRaisesRegex(TypeError, "expected a tensor"):
            model(a, 3)
        with self.assertRaisesRegex(sylvite.InputError, r"strings\[1,1\], expected"):
            model(a, np.array([["x"]]))
        with self.assertRaisesRegex(sylvite.InputError, "format"):
            model(a, np.zeros((2, 3), np.complex64))
        with self.assertRaisesRegex(sylvite.InputError, "objects with float"):
            model(a, a.astype(object))

    def test_kinds(self):
        missing = pathlib.Path(self.folder.name) / "missing.onnx"
        with self.assertRaisesRegex(sylvite.IoError, "missing.onnx"):
            sylvite.compile(missing)
        self.assertTrue(issubclass(sylvite.IoError, OSError) and issubclass(sylvite.InputError, ValueError))
        self.assertEqual(sylvite.IoError.code, 6)
        broken = pathlib.Path(self.folder.name) / "broken.onnx"
        broken.write_bytes(b"no model")
        with self.assertRaisesRegex(sylvite.ModelError, "8 bytes do not parse"):
            sylvite.compile(broken)
        with self.assertRaisesRegex(sylvite.UsageError, "compile.thread"):
            sylvite.compile(missing, options={"compile.thread": 1})
        with self.assertRaisesRegex(sylvite.UsageError, "mode"):
            sylvite.compile(missing, mode="fast")
        with self.assertRaisesRegex(sylvite.UsageError, "mode = '3'"):
            sylvite.compile(missing, mode=3)
        with self.assertRaisesRegex(sylvite.IoError, "other.ini"):
            sylvite.compile(missing, config_files="other.ini")
        with self.assertRaisesRegex(sylvite.UsageError, "not a size"):
            self.compile([oh.make_node("Neg", ["x"], ["y"])], [("x", F32, ["n"])], [("y", F32, ["n"])], dims={"n": (1,)})


class Reports(WithFolder):
    def test_report_and_explain(self):
        model = self.adder(mode="default")
        self.assertEqual(model.report["kernels"], 1)
        self.assertEqual(model.report["trials"], 0)
        self.assertIn("== kernels ==", model.explain())
        self.assertIn("f32[2,3]", model.explain("--graph"))
        with self.assertRaisesRegex(sylvite.Error, "--nothing"):
            model.explain("--nothing")

    def test_the_log_says_what_it_is_asked_for(self):
        path = save(self.folder.name, [oh.make_node("Relu", ["x"], ["y"])], [("x", F32, [4])], [("y", F32, [4])])
        program = "import sys, sylvite; sylvite.compile(sys.argv[1], options={'log.level': sys.argv[2]}, first_answer='best')"
        said = {level: subprocess.run([sys.executable, "-c", program, path, level], capture_output=True, text=True,
                                      check=True).stderr for level in ("warning", "info")}
        self.assertEqual(said["warning"], "")
        self.assertIn("sylvite: info: import: ", said["info"])

    def test_the_command(self):
        done = subprocess.run([sys.executable, "-m", "sylvite", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["sylvite", sylvite.__version__])

    def test_tune_save_and_export(self):
        model = self.adder()
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
        self.assertIn("kernel", model.tune("2s"))
        np.testing.assert_array_equal(model(a, b)[0], a - b)
        model.save(pathlib.Path(self.folder.name) / "saved", name="minus")
        sylvite.export(pathlib.Path(self.folder.name) / "model.onnx", pathlib.Path(self.folder.name) / "made", options=OPTIONS)
        for header in ("saved/minus.h", "made/model.h"):
            self.assertTrue((pathlib.Path(self.folder.name) / header).is_file(), header)
        with self.assertRaises(sylvite.UsageError):
            model.save(self.folder.name, name="no identifier")


class Example(WithFolder):
    def test_run_onnx(self):
        weight = onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
        nodes = [oh.make_node("Conv", ["x", "w"], ["c"]), oh.make_node("GlobalAveragePool", ["c"], ["p"]),
                 oh.make_node("Flatten", ["p"], ["scores"])]
        path = save(self.folder.name, nodes, [("x", F32, ["batch", 3, 8, 8])], [("scores", F32, ["batch", 4])], [weight])
        script = pathlib.Path(__file__).parents[2] / "examples" / "python" / "run_onnx.py"
        done = subprocess.run([sys.executable, script, path, "8"], capture_output=True, text=True, check=True)
        self.assertIn("3 images: scores float32[3, 4]", done.stdout)


if __name__ == "__main__":
    unittest.main()
