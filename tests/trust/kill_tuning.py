#!/usr/bin/env python3
"""Tuning runs and sweeps that share a database, killed and starved at random: nothing may be lost, nothing poisoned.

usage: kill_tuning.py SYLVITE [--kills 1000] [--model MODEL.onnx] [--seed 0] [--budget 5s] [--keep FOLDER] [--verbose]

Four processes at a time, each `tune` or `sweep`. A random signal ends one (SIGKILL, SIGINT, SIGTERM), stops it for a while
(SIGSTOP), or kills or stops one of its workers; some run without a temporary folder or a writable cache, or with few
files, processes or bytes of memory or file, or stand on a full disk. Then, with all well again:
- every trial and winner that was seen before a signal is still there, and PRAGMA integrity_check says ok;
- no message of a failure of the machine stands in the database, no winner is a `reference` schedule, and every candidate
  that was refused is refused again;
- no command ended by a signal that nobody sent, or with code 1; no worker is left over;
- sweeps end with every item done;
- the model is right (--check interpreter) and, in turns, at most 3 % slower than with default schedules.
Exits with 0 only when all of this holds.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from small_model import write_small_model

SLOTS = 4
SLOWER_ALLOWED = 1.03
MARK = "SYLVITE_KILL_TEST"  # in the environment of all that is started here
MACHINE_FAILURES = re.compile(
    "No space left|quota exceeded|Read-only file|Input/output error|File too large|Too many open files|temporarily "
    "unavailable|IO failure|temp_directory_path|temporary file|allocate memory|bad_alloc|ut of memory|killed by signal "
    "(1|2|9|15) ")
ANOTHER_USER = 61234


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def few_processes(count):
    def prepare():
        if os.geteuid() == 0:  # no limit holds for root
            os.setgroups([])
            os.setgid(ANOTHER_USER)
            os.setuid(ANOTHER_USER)
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
    return prepare


def conditions(world):
    """Name, environment, what the child does before it starts, further words."""
    own_cache = ["--cache-dir", os.path.join(world.folder, "other-objects")]
    table = [
        ("no temporary folder", {"TMPDIR": "/nonexistent"}, None, []),
        ("a file as temporary folder", {"TMPDIR": world.model}, None, []),
        ("no cache", {}, None, ["--cache-dir", world.model + "/objects"]),
        ("files of 16 kB", {}, limit(resource.RLIMIT_FSIZE, 16 << 10), own_cache),
        ("files of 300 kB", {}, limit(resource.RLIMIT_FSIZE, 300 << 10), own_cache),
        ("12 open files", {}, limit(resource.RLIMIT_NOFILE, 12), []),
        ("20 open files", {}, limit(resource.RLIMIT_NOFILE, 20), []),
        ("700 MB of addresses", {}, limit(resource.RLIMIT_AS, 700 << 20), []),
        ("one process", {}, few_processes(1), own_cache + ["--set", "cache.enabled=false"]),
        ("three processes", {}, few_processes(3), own_cache + ["--set", "cache.enabled=false"]),
    ]
    if world.full_disk:
        table.append(("a full disk", {"TMPDIR": world.full_disk}, None, ["--cache-dir", world.full_disk + "/objects"]))
    return table


class World:
    """The folder with the model, the database and two sweeps over it."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.model = options.model or write_small_model(os.path.join(folder, "small.onnx"))
        self.db = os.path.join(folder, "trials.db")
        self.full_disk = None
        self.random = random.Random(options.seed)
        self.sweeps = []
        for name, modes, threads in (("one", "max-autotune, default", "1"), ("two", "max-autotune", "1, 2")):
            path = os.path.join(folder, name + ".ini")
            with open(path, "w") as file:
                file.write(f"[sweep]\nmodels = {os.path.abspath(self.model)}\nmodes = {modes}\nthreads = {threads}\n"
                           f"budget = {options.budget}\n[tune]\ncompile_jobs = 1\nextend = true\n"
                           "[import]\nrandom_weights = 0\n")
            self.sweeps.append(path)
        self.conditions = []

    def words(self, verb, *more):
        return [self.options.sylvite, verb, *more, "--db", self.db, "--progress", "none"]

    def tune(self, threads, *more):
        return self.words("tune", self.model, "--threads", threads, "--random-weights", "0", "--set", "tune.compile_jobs=1",
                          *more)

    def environment(self, **more):
        return {**os.environ, "XDG_CACHE_HOME": self.folder, MARK: str(os.getpid()), **more}

    def quietly(self, words):
        return subprocess.run(words, env=self.environment(), capture_output=True, text=True)


@contextlib.contextmanager
def full_disk(folder):
    """A file system without room, where this user may make one."""
    path = os.path.join(folder, "full")
    os.mkdir(path)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", path], capture_output=True).returncode == 0
    try:
        if made:
            with contextlib.suppress(OSError), open(os.path.join(path, "filler"), "wb", buffering=0) as file:
                file.write(bytes(16 << 10))
        yield path if made else None
    finally:
        if made:
            subprocess.run(["umount", "-l", path], check=True)


class Run:
    """One tuning or sweep under way."""

    def __init__(self, world):
        self.random = world.random
        name, environment, prepare, more = "all well", {}, None, []
        if self.random.random() < 0.4:
            name, environment, prepare, more = self.random.choice(world.conditions)
        if self.random.random() < 0.5:
            words = world.tune(self.random.choice("12"), "--budget", world.options.budget, *more)
        else:
            more = [word for word in more if word not in ("--set", "cache.enabled=false")]
            words = world.words("sweep", self.random.choice(world.sweeps), *more)
            if self.random.random() < 0.5:
                words.append("--restart")
        self.name = f"{words[1]}, {name}"
        self.is_well = name == "all well"
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, env=world.environment(**environment), preexec_fn=prepare,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)
        self.sent = set()
        self.resume = []  # (when, process id)
        self.next_signal = time.monotonic() + self.random.uniform(0.05, 5)

    def send(self, number, process=None):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process or self.process.pid, number)

    def disturb(self):
        """What is done to it, by a word; "" when there is nothing to do it to."""
        kind = self.random.choices(["kill", "interrupt", "end", "stop", "kill a worker", "stop a worker"],
                                   [40, 12, 8, 15, 15, 10])[0]
        now = time.monotonic()
        self.next_signal = now + self.random.uniform(0.5, 4)
        pause = now + self.random.choices([0.3, 1, 3, 12], [4, 4, 2, 1])[0]
        if kind in ("kill", "interrupt", "end"):
            number = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "end": signal.SIGTERM}[kind]
            self.sent.add(number)
            self.send(number)
            if kind != "kill":
                self.next_signal = now + 6  # then for good
                self.sent.add(signal.SIGKILL)
            return kind
        if kind == "stop":
            self.send(signal.SIGSTOP)
            self.resume.append((pause, self.process.pid))
            return kind
        workers = children_of(self.process.pid)
        if not workers:
            return ""
        worker = self.random.choice(workers)
        self.send(signal.SIGKILL if kind == "kill a worker" else signal.SIGSTOP, worker)
        if kind == "stop a worker":
            self.resume.append((pause, worker))
        return kind

    def wake(self, all_of_them=False):
        for when, process in list(self.resume):
            if all_of_them or time.monotonic() >= when:
                self.send(signal.SIGCONT, process)
                self.resume.remove((when, process))

    def problem(self):
        """What is wrong with how it ended; "" when nothing is."""
        code = self.process.returncode
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        expected = code in (0, 6, 130, 143) or (code < 0 and -code in self.sent)
        cannot_load = code == 127 or (not self.is_well and "error while loading shared libraries" in text)
        return "" if expected or cannot_load else f"{self.name}: ended with {code}: {text.strip()[-500:]}"


def children_of(process):
    with contextlib.suppress(OSError), open(f"/proc/{process}/task/{process}/children") as file:
        return [int(word) for word in file.read().split()]
    return []


def left_over():
    """Processes of this test, by its mark."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if f"{MARK}={os.getpid()}".encode() in file.read().split(b"\0") and int(name) != os.getpid():
                found.append(int(name))
    return found


def rows(db, query):
    with contextlib.closing(sqlite3.connect(db, timeout=60)) as connection:
        return connection.execute(query).fetchall()


class Memory:
    """All that was ever seen in the database."""

    def __init__(self, db):
        self.db = db
        self.seen = set()

    def look(self):
        """Rows that were there and are gone."""
        if not os.path.exists(self.db):
            return set()
        now = {("trial", *row) for row in rows(self.db, "SELECT kernel, key, candidate FROM trials")}
        now |= {("winner", *row) for row in rows(self.db, "SELECT kernel, key, '' FROM winners")}
        lost = self.seen - now
        self.seen |= now
        return lost


def kill_all(world, problems):
    """The runs and the signals; how often each was sent."""
    counts = collections.Counter()
    memory = Memory(world.db)
    runs = []
    start = time.monotonic()
    while counts.total() < world.options.kills:
        while len(runs) < SLOTS:
            runs.append(Run(world))
        for run in list(runs):
            run.wake()
            if run.process.poll() is not None:
                runs.remove(run)
                problems += filter(None, [run.problem()])
                continue
            if time.monotonic() < run.next_signal:
                continue
            lost = memory.look()
            if lost:
                problems.append(f"{len(lost)} rows are lost, seen before {run.name}: {sorted(lost)[0]}")
            kind = run.disturb()
            if kind:
                counts[kind] += 1
            if world.options.verbose:
                print(f"{time.monotonic() - start:6.1f} s {counts.total()} {run.name}: {kind}; {len(memory.seen)} rows", flush=True)
        time.sleep(0.02)
    for run in runs:
        run.wake(all_of_them=True)
        run.send(signal.SIGKILL)
        run.process.wait()
    lost = memory.look()
    if lost:
        problems.append(f"{len(lost)} rows are lost at the end: {sorted(lost)[0]}")
    print(f"{counts.total()} signals ({', '.join(f'{count} x {kind}' for kind, count in sorted(counts.items()))}), "
          f"{len(memory.seen)} rows seen")
    return memory


def check_rows(world, problems):
    for (result,) in rows(world.db, "PRAGMA integrity_check"):
        if result != "ok":
            problems.append(f"integrity_check: {result}")
    refused = rows(world.db, "SELECT kernel, key, candidate, verdict, message FROM trials WHERE verdict <> 'ok'")
    for _, _, candidate, verdict, message in refused:
        if MACHINE_FAILURES.search(message):
            problems.append(f"a failure of the machine is stored as {verdict}: {message}: {candidate}")
    for kernel, origin in rows(world.db, "SELECT kernel, origin FROM winners WHERE origin = 'reference'"):
        problems.append(f"the winner of {kernel} is a {origin} schedule")
    asides = [name for name in os.listdir(world.folder) if ".corrupt-" in name]
    if asides:
        problems.append(f"the database was set aside: {asides}")
    return refused


def check_refusals(world, refused, problems):
    """Refused candidates are tried again in a copy without their rows, until none is open or the time is up."""
    if not refused:
        print("no candidate was refused")
        return
    copy = os.path.join(world.folder, "again.db")
    shutil.copy(world.db, copy)
    with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DELETE FROM trials WHERE verdict <> 'ok'")
        connection.execute("DELETE FROM winners")
    for threads in "12":
        world.quietly([copy if word == world.db else word for word in world.tune(threads, "--budget", "30s")])
    again = {tuple(row[:3]): row[3] for row in rows(copy, "SELECT kernel, key, candidate, verdict FROM trials")}
    tried = [row for row in refused if row[:3] in again]
    for *place, verdict, message in tried:
        if again[tuple(place)] == "ok":
            problems.append(f"refused as {verdict} ({message}), and now right: {place[2]}")
    counts = collections.Counter(row[3] for row in refused)
    print(f"refused: {dict(counts)}; {len(tried)} of {len(refused)} tried again")


def slowdown(world, problems):
    """Medians of whole runs over those with default schedules, in turns; the middle one of five rounds counts."""
    ratios = []
    report = os.path.join(world.folder, "bench.json")
    for _ in range(5):
        done = world.quietly(world.words("bench", world.model, "--random-weights", "0", "--threads", "1", "--baseline", "default",
                                         "--no-profile", "--warmup", "0.3s", "--duration", "1.2s", "--json", report))
        if done.returncode != 0:
            problems.append(f"bench: {done.stderr.strip()}")
            return
        with open(report) as file:
            document = json.load(file)
        ratios.append(document["latency_ms"]["median"] / document["baselines"][0]["latency_ms"]["median"])
    print("time with stored winners over time with default schedules:", ", ".join(f"{ratio:.3f}" for ratio in ratios))
    if statistics.median(ratios) > SLOWER_ALLOWED:
        problems.append(f"the tuned model takes {statistics.median(ratios):.3f} of the default's time")


def check_end(world, problems):
    for sweep in world.sweeps:
        done = world.quietly(world.words("sweep", sweep))
        if done.returncode != 0 or " 0 failed" not in done.stdout:
            problems.append(f"sweep {sweep}: {done.returncode}: {done.stdout}{done.stderr}")
    done = world.quietly(world.words("run", world.model, "--random-weights", "0", "--threads", "1", "--check", "interpreter"))
    if done.returncode != 0:
        problems.append(f"run --check: {done.stderr.strip()}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--model", help="its missing weights are random; default: a small one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", default="5s", help="of each run")
    parser.add_argument("--keep", help="folder to leave everything in")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.sylvite = os.path.abspath(options.sylvite)
    return options


def main():
    options = parse_options()
    folder = options.keep or tempfile.mkdtemp(prefix="kill_tuning_")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    problems = []
    world = World(options, os.path.abspath(folder))
    with full_disk(world.folder) as disk:
        world.full_disk = disk
        world.conditions = conditions(world)
        world.quietly(world.words("db", "stats"))
        os.umask(0)  # another user writes to the database, too
        sqlite3.connect(world.db).close()
        os.chmod(world.db, 0o666)
        memory = kill_all(world, problems)
    time.sleep(0.5)
    for process in left_over():
        problems.append(f"process {process} is left over")
    refused = check_rows(world, problems)
    slowdown(world, problems)
    check_end(world, problems)
    lost = memory.look()
    if lost:
        problems.append(f"{len(lost)} rows are lost at the end: {sorted(lost)[0]}")
    check_rows(world, problems)
    check_refusals(world, refused, problems)
    for problem, count in collections.Counter(problems).items():
        print(f"{count} x {problem}")
    if not options.keep:
        shutil.rmtree(folder)
    print("nothing lost, nothing poisoned" if not problems else f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
