"""Memory of results: it comes back when torch frees them, and not before."""

import threading
import unittest

import torch
from with_torch import WithTorch


def many(x):
    return tuple(x * float(i) for i in range(40))


def largest_of_small(x):
    return x[:16384] + 1, x[:16385] + 2, x[:0] * 2, x.sum()


class MemoryOfResults(WithTorch):
    def test_what_is_kept_stays(self):
        for function, numbers in ((many, 30), (largest_of_small, 20000)):
            torch._dynamo.reset()
            compiled = self.compiled(function, freeze=False)
            inputs = [torch.randn(numbers) for _ in range(12)]
            kept = [compiled(x) for x in inputs]
            for x, results in zip(inputs, kept):
                self.assert_same(results, function(x))
            del kept[3:9]
            kept += [compiled(x) for x in inputs[3:9]]
            for x, results in zip(inputs[:3] + inputs[9:] + inputs[3:9], kept):
                self.assert_same(results, function(x))

    def test_blocks_come_back(self):
        compiled, x = self.compiled(many), torch.randn(30)
        places = {compiled(x)[7].data_ptr() for _ in range(50)}
        self.assertLess(len(places), 5)

    def test_results_outlive_what_made_them(self):
        compiled, x = self.compiled(many), torch.randn(30)
        results = compiled(x)
        del compiled
        torch._dynamo.reset()
        self.assert_same(results, many(x))

    def test_they_are_freed_by_other_threads(self):
        compiled, x = self.compiled(many), torch.randn(30)
        wanted, given = many(x), []

        def free():
            while given:
                self.assert_same(given.pop(), wanted)

        for _ in range(20):
            given += [compiled(x) for _ in range(10)]
            threads = [threading.Thread(target=free) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(10):
                self.assert_same(compiled(x), wanted)
            for thread in threads:
                thread.join()

    def test_one_value_twice_and_written(self):
        def function(x, total):
            y = x * 2
            total.add_(y)
            return y, y, y.view(2, -1), y.view(2, -1)[0], total

        compiled = self.compiled(function)
        x, totals = torch.randn(8), [torch.zeros(8), torch.zeros(8)]
        for _ in range(4):
            self.assert_same(compiled(x, totals[0]), function(x, totals[1]))


if __name__ == "__main__":
    unittest.main()
