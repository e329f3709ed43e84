"""Every command with faults in memory, in the file layer, in threads, and with signals at any moment: see fault_case.py.

usage: test_faults_command.py [CLASS]     (with HARTSIFT_FAULTS_LIBRARY and HARTSIFT_COMMAND set)
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_case import FaultCase, Scenario, fault_text  # noqa: E402
from batch_case import blots  # noqa: E402
from command_case import main  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "images")
PICTURES = ("jpeg_colour.jpg", "png_gray8.png", "bmp_24.bmp", "pam_rgb.pam", "tiff_lzw.tif", "webp_alpha.webp")
FORMATS = ("npz", "csv", "json", "bin", "lowe", "vlfeat", "opencv", "openmvg", "colmap", "visualsfm", "oxford")
SCENES = ONE, TWO, THREE = "@scene:60x45:1", "@scene:61x47:2", "@scene:52x47:3"
# Files that an unfinished batch may leave.
BATCH_LEFT = ("out/manifest.journal", "out/.hartsift-batch", "out/manifest.csv")


class Pictures(FaultCase):
    """One picture at a time."""

    @classmethod
    def prepare(cls):
        for name in PICTURES:
            shutil.copy(os.path.join(FOLDER, name), cls.start)

    def test_formats(self):
        for name in FORMATS:
            ending = "feat" if name == "openmvg" else name
            self.sweep(Scenario(name, ("extract", ONE, "--format", name, "-o", f"f.{ending}")))

    def test_pictures(self):
        for name in PICTURES:
            # libtiff 4.5 and libwebp 1.2 crash if some of their own allocations fail.
            without = ("memory",) if name.startswith(("tiff", "webp")) else ()
            self.sweep(Scenario(name, ("extract", name, "-o", "f.bin", "--format", "bin"), without=without))

    def test_standard_streams(self):
        with open(os.path.join(FOLDER, "jpeg_gray.jpg"), "rb") as picture:
            self.sweep(Scenario("streams", ("extract", "-", "--format", "csv"), stdin=picture.read()))

    def test_folder(self):
        self.sweep(Scenario("folder", ("extract", ONE, TWO, "-o", "out/"), left=("out/",)))

    def test_primitives(self):
        self.sweep(Scenario("stats", ("stats", "png_gray8.png", "--tile", "8x8", "-o", "s.csv")))
        self.sweep(Scenario("hist", ("hist", "png_gray8.png", "--equalize", "e.png", "-o", "h.json")))

    def test_info(self):
        # info reports its findings: without memory, that nothing can be opened.
        self.sweep(Scenario("info", ("info",), without=("memory", "stat", "open", "read")))


class Pairs(FaultCase):
    """Two pictures, and a drawing of them."""

    @classmethod
    def prepare(cls):
        for number, scene in enumerate((ONE, TWO)):
            for ending in ("npz", "csv", "json"):
                cls.command("extract", scene, "-o", f"{number}.{ending}")
        cls.command("match", ONE, TWO, "-o", "m.json")

    def test_files(self):
        for ending in ("npz", "csv", "json"):
            self.sweep(Scenario(ending, ("match", f"0.{ending}", f"1.{ending}", "-o", "f.csv")))

    def test_pictures(self):
        self.sweep(Scenario("verified", ("match", ONE, TWO, "--verify", "fundamental", "--guided", "-o", "f.json")))
        self.sweep(Scenario("text", ("match", ONE, TWO, "--format", "colmap")))

    def test_drawings(self):
        for ending in ("png", "jpg", "ppm"):
            self.sweep(Scenario(f"keypoints {ending}", ("draw", ONE, "0.npz", "-o", f"d.{ending}")))
        self.sweep(Scenario("matches", ("draw", ONE, TWO, "m.json", "0.npz", "1.npz", "-o", "d.png")))


class Databases(FaultCase):
    """COLMAP's."""

    @classmethod
    def prepare(cls):
        for name in ("given.db", "raw.db"):
            cls.command("batch", "-", "-o", name, stdin="\n".join(SCENES).encode())
        cls.command("match", "--database", "raw.db", "--no-verify", "--ratio", "0")

    def test_extract(self):
        self.sweep(Scenario("extract", ("extract", ONE, TWO, "-o", "d.db"), left=("d.db",)))

    def test_match(self):
        self.sweep(Scenario("match", ("match", "--database", "given.db"), left=("given.db",)))

    def test_verification(self):
        self.sweep(Scenario("verification", ("match", "--database", "raw.db"), left=("raw.db",)))

    def test_retrieval(self):
        self.sweep(Scenario("retrieval", ("match", "--database", "given.db", "--pairs", "retrieval:1"), left=("given.db",)))


class Batches(FaultCase):
    """Many pictures, and merged batches."""

    @classmethod
    def prepare(cls):
        for number in range(4):
            cls.write_picture(f"in/{number}.pgm", number)
        for shard in (1, 2):
            cls.command("batch", "in", "-o", "shards", "--format", "bin", "--shard", f"{shard}/2")
            cls.command("batch", "in", "-o", f"s{shard}.db", "--shard", f"{shard}/2")
            cls.command("match", "--database", f"s{shard}.db", "--ratio", "0")

    @classmethod
    def write_picture(cls, name, number):
        path = os.path.join(cls.start, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(blots(50 + number, 41, number))

    def test_folder(self):
        command = ("batch", "in", "-o", "out", "--format", "bin", "--jobs", "2", "--threads", "2")
        self.sweep(Scenario("batch", command, (*command, "--resume"), left=BATCH_LEFT))

    def test_database(self):
        command = ("batch", "in", "-o", "d.db", "--jobs", "2", "--threads", "2")
        self.sweep(Scenario("batch database", command, (*command, "--resume"), left=("d.db",)))

    def test_merge(self):
        self.sweep(Scenario("merge", ("merge", "shards", "-o", "out"), left=("out/",)))
        self.sweep(Scenario("merge databases", ("merge", "s1.db", "s2.db", "-o", "d.db"), left=("d.db",)))


class Disk(FaultCase):
    """The disk under a database is full from some write on. The run ends there and reports once what was kept."""

    SCENES = [f"@scene:320x240:{number}" for number in range(1, 15)]  # more than SQLite caches

    @classmethod
    def prepare(cls):
        cls.command("batch", "-", "-o", "given.db", stdin="\n".join(cls.SCENES[:6]).encode())
        for shard in ("1/2", "2/2"):
            cls.command("batch", "-", "-o", f"s{shard[0]}.db", "--shard", shard, stdin="\n".join(cls.SCENES).encode())

    def fill(self, *arguments, stdin=b"", name="d.db"):
        """Runs with a disk that is full from the first write on, and from two later ones on."""
        self.fresh()
        before = self.content().get(name)
        whole = self.run_with(arguments, stdin=stdin)
        self.assertEqual(whole.status, 0, whole.errors)
        writes = whole.counts["write"]
        for at in sorted({1, writes // 3, writes // 2}):
            self.fresh()
            with self.subTest(arguments=arguments[0], at=at):
                found = self.run_with(arguments, fault_text("write", at, "ENOSPC,on"), stdin)
                self.assertEqual(found.status, 1, found.errors)
                if name not in found.tree or found.tree[name] == before:
                    self.assertLessEqual(len(found.errors.splitlines()), 3, found.errors)
                if "the open transaction" in found.errors:
                    self.assertEqual(found.errors.count("nothing of the open transaction was kept"), 1, found.errors)
                    self.told.add(arguments[0])
                self.assertNotIn("an earlier failure", found.errors)
                after = self.run_with((*arguments, "--resume") if arguments[0] == "batch" else arguments, stdin=stdin)
                self.assertEqual(after.status, 0, after.errors)
                self.assertEqual(after.tree[name], whole.tree[name])

    def test_every_command(self):
        self.told = set()
        self.fill("extract", *self.SCENES, "-o", "d.db", "-q")
        self.fill("batch", "-", "-o", "d.db", "-q", stdin="\n".join(self.SCENES).encode())
        self.fill("match", "--database", "given.db", "-q", name="given.db")
        self.fill("merge", "s1.db", "s2.db", "-o", "d.db", "-q")
        self.assertEqual(self.told, {"extract", "batch", "match", "merge"})


if __name__ == "__main__":
    main()
