"""Work in several threads at once, for tests."""

import threading


def in_threads(work, count=4):
    """work(0), work(1), ... side by side."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
