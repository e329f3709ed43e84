"""The command hartsift merge: merged shards and batches equal a single run; and refusals."""
import contextlib
import hashlib
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, scenes
from command_case import COMMAND, FAILED, USAGE, is_short, main
from exif_segment import orientation, with_exif

TABLES = ("cameras", "images", "keypoints", "descriptors")


class MergeCase(BatchCase):
    def setUp(self):
        super().setUp()
        # One image is broken and one is listed twice. Both fail, in one run as in shards.
        self.write("broken.pgm", b"P5 9 9 255\n")
        self.list_of([*scenes(5), "broken.pgm", *scenes(3, "90x70"), "@scene:60x45:2", "a/../@scene:70x50:1"])

    def shard(self, text, output, *more):
        self.batch("list.txt", "-o", output, "--shard", text, "-q", *more, status=FAILED if self.fails(text) else 0)

    @staticmethod
    def fails(text):
        shard, shards = map(int, text.split("/"))
        return any(place % shards == shard - 1 for place in (5, 9, 10))

    def shards(self, output, *more, count=3):
        """Runs all shards. `output` may have a placeholder for the shard's number."""
        for i in range(1, count + 1):
            self.shard(f"{i}/{count}", output.format(i), *more)

    def merge(self, *arguments, **settings):
        return self.run_it("merge", *arguments, **settings)

    def rows(self, database):
        """Returns the whole content of a database."""
        with sqlite3.connect(self.path(database)) as connection:
            return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}

    def without_reasons(self, database):
        """Returns the manifest of a database without the reasons of failures, because some name a file of features."""
        head = self.read(database + ".manifest.csv").split(b"\n", 2)[:2]
        rows = self.manifest(".", database + ".manifest.csv")
        return head, [{**row, "error": row["error"] != ""} for row in rows]

    def refused(self, *arguments, words=(), status=FAILED):
        before = {name: hashlib.sha256(data).digest() for name, data in self.tree(".").items()}
        _, errors = self.merge(*arguments, status=status)
        for word in ("hartsift merge: ", *words):
            self.assertIn(word, errors)
        self.assertEqual({name: hashlib.sha256(data).digest() for name, data in self.tree(".").items()}, before)


class Shards(MergeCase):
    def test_folders_become_that_of_one_run(self):
        for form in ("npz", "openmvg"):
            self.batch("list.txt", "-o", f"{form}/one", "-q", "--format", form, status=FAILED)
            self.shards(form + "/shard{}", "--format", form)
            # Shards may be merged in any order.
            self.merge(f"{form}/shard2/", f"{form}/shard3", f"{form}/shard1", "-o", f"{form}/merged/")
            self.assertEqual(self.tree(f"{form}/merged"), self.tree(f"{form}/one"))
            # Merges again, over the existing output.
            self.merge(f"{form}/shard2", f"{form}/shard3", f"{form}/shard1", "-o", f"{form}/merged")
            self.assertEqual(self.tree(f"{form}/merged"), self.tree(f"{form}/one"))

    def test_one_folder_gets_its_manifest_without_the_images(self):
        self.batch("list.txt", "-o", "one", "-q", status=FAILED)
        self.shards("out", count=4)
        os.remove(self.path("broken.pgm"))
        _, errors = self.merge("out", "-o", "out")
        self.assertIn("11 images of 4 manifests, 3 of them failed there", errors)
        for i in range(1, 5):
            os.remove(self.path("out", f"manifest-{i}-of-4.csv"))
        self.assertEqual(self.tree("out"), self.tree("one"))
        # A whole batch is a valid input too.
        _, errors = self.merge("out", "-o", "copy")
        self.assertIn("11 images of 1 manifest, 3 of them failed there", errors)
        self.assertEqual(self.tree("copy"), self.tree("one"))

    def test_database_is_that_of_one_run(self):
        self.batch("list.txt", "-o", "one.db", "-q", status=FAILED)
        self.shards("shard{}.db")
        self.shards("files{}", "--no-exif", "--format", "bin")
        self.merge("shard1.db", "shard2.db", "shard3.db", "-o", "of_databases.db")
        self.merge("files1", "files2", "files3", "-o", "of_files.db")
        expected = self.rows("one.db")
        self.assertEqual(len(expected["keypoints"]), 8)
        for made in ("of_databases.db", "of_files.db"):
            self.assertEqual(self.rows(made), expected)
            self.assertEqual(self.without_reasons(made), self.without_reasons("one.db"))
        self.assertEqual(self.read("of_databases.db.manifest.csv"), self.read("one.db.manifest.csv"))
        self.assertEqual(self.read("of_files.db"), self.read("of_databases.db"))
        # The same images, merged from one database or from three, give the same bytes.
        self.merge("one.db", "-o", "of_one.db")
        self.assertEqual(self.read("of_one.db"), self.read("of_databases.db"))

    def test_single_camera(self):
        self.batch("list.txt", "-o", "one.db", "-q", "--single-camera", status=FAILED)
        self.shards("files{}", "--no-exif")
        self.merge("files1", "files2", "files3", "-o", "merged.db", "--single-camera")
        self.assertEqual(self.rows("merged.db"), self.rows("one.db"))
        self.assertEqual(self.without_reasons("merged.db"), self.without_reasons("one.db"))

    def test_cameras_and_positions_of_databases_are_kept(self):
        self.shards("shard{}.db")
        camera = struct.pack("<4d", 50, 30, 22, 0)
        with sqlite3.connect(self.path("shard2.db")) as connection:
            connection.execute("UPDATE cameras SET prior_focal_length = 1, params = ?", [camera])
            connection.execute("UPDATE images SET prior_tx = 50, prior_ty = 8, prior_tz = 300 WHERE image_id = 1")
        connection.close()
        self.merge("shard1.db", "shard2.db", "shard3.db", "-o", "merged.db")
        tables = self.rows("merged.db")
        self.assertEqual(sum(row[4] == camera for row in tables["cameras"]), 3)
        with sqlite3.connect(self.path("merged.db")) as connection:
            positions = connection.execute("SELECT name, prior_tx, prior_ty, prior_tz FROM images "
                                           "WHERE prior_tx IS NOT NULL").fetchall()
        connection.close()
        self.assertEqual(positions, [("scene_60x45_2", 50, 8, 300)])

    def test_manifests_by_name(self):
        self.shards("out")
        self.shards("shard{}.db")
        self.batch("list.txt", "-o", "one", "-q", status=FAILED)
        self.merge(*(f"out/manifest-{i}-of-3.csv" for i in (1, 2, 3)), "-o", "merged")
        self.assertEqual(self.tree("merged"), self.tree("one"))
        self.merge(*(f"shard{i}.db.manifest-{i}-of-3.csv" for i in (1, 2, 3)), "-o", "merged.db")
        self.assertEqual(len(self.rows("merged.db")["images"]), 8)


class Batches(MergeCase):
    def test_of_different_images_are_sorted_by_name(self):
        for name, seeds in (("b", (4, 2)), ("a", (3, 1))):
            self.list_of([f"@scene:60x45:{seed}" for seed in seeds], name + ".txt")
            self.batch(name + ".txt", "-o", name, "-q")
        self.merge("b", "a", "-o", "merged")
        self.merge("a", "b", "-o", "other")
        self.assertEqual([row["image"] for row in self.manifest("merged")], [f"@scene:60x45:{i}" for i in (1, 2, 3, 4)])
        self.assertEqual(self.tree("merged"), self.tree("other"))

    def test_duplicates_are_refused(self):
        self.list_of(scenes(2))
        self.batch("list.txt", "-o", "a", "-q")
        self.list_of(["x/@scene:60x45:2", *scenes(1, "80x80")])
        shutil.copytree(self.path("a"), self.path("b"))
        self.refused("a", "b", "-o", "merged", words=["@scene:60x45:1", "a/manifest.csv", "b/manifest.csv", "once"])


class Matches(MergeCase):
    """Matches and geometry of databases are merged under the numbers that their images get."""

    def make(self, database, names, *more):
        """Extracts scenes in this order and matches them."""
        self.list_of([f"@scene:{name}" for name in names], database + ".txt")
        self.batch(database + ".txt", "-o", database, "-q", *more)
        self.run_it("match", "--database", database, "-q")

    def ask(self, database, sql, *parameters):
        with contextlib.closing(sqlite3.connect(self.path(database))) as connection, connection:
            return connection.execute(sql, parameters).fetchall()

    def pairs(self, database):
        """Returns, by the names of a pair, the lower one first: its matches and verified matches in that order, and the
        model."""
        names = dict(self.ask(database, "SELECT image_id, name FROM images"))
        found = {}
        for number, matches, verified, config, matrix in self.ask(
                database, "SELECT m.pair_id, m.data, g.data, config, coalesce(F, H) FROM matches m JOIN two_view_geometries g"
                " USING (pair_id)"):
            one, other = names[number // 2147483647], names[number % 2147483647]
            step = 1 if one < other else -1
            lists = [[pair[::step] for pair in struct.iter_unpack("<2I", data)] for data in (matches, verified)]
            found[tuple(sorted((one, other)))] = (*lists, config, matrix is not None)
        return found

    def test_rigs_that_are_lost_are_said(self):
        """Two of three images are in a rig of two cameras."""
        self.make("a.db", ["80x60:4", "70x60:4", "90x60:4"])
        with contextlib.closing(sqlite3.connect(self.path("a.db"))) as connection:
            connection.executescript("""CREATE TABLE rigs (rig_id INTEGER PRIMARY KEY, ref_sensor_id INTEGER, ref_sensor_type INTEGER);
                CREATE TABLE rig_sensors (rig_id INTEGER, sensor_id INTEGER, sensor_type INTEGER, sensor_from_rig BLOB);
                CREATE TABLE frames (frame_id INTEGER PRIMARY KEY, rig_id INTEGER);
                CREATE TABLE frame_data (frame_id INTEGER, data_id INTEGER, sensor_id INTEGER, sensor_type INTEGER);
                INSERT INTO rigs VALUES(1, 1, 0), (2, 3, 0); INSERT INTO rig_sensors VALUES(1, 2, 0, NULL);
                INSERT INTO frames VALUES(1, 1), (2, 2); INSERT INTO frame_data VALUES(1, 1, 1, 0), (1, 2, 2, 0), (2, 3, 3, 0)""")
        _, errors = self.merge("a.db", "-o", "merged.db")
        self.assertIn("a.db: rigs and frames are not merged: 2 images are of rigs there", errors)
        self.assertNotIn("rigs", self.merge("merged.db", "-o", "again.db")[1])

    def test_in_another_order(self):
        """Images are numbered by name, so the images of half of the pairs change their order."""
        self.make("a.db", ["80x60:4", "70x60:4", "90x60:4"])
        self.make("b.db", ["85x60:4", "75x60:4"])
        _, errors = self.merge("a.db", "b.db", "-o", "merged.db")
        expected = {**self.pairs("a.db"), **self.pairs("b.db")}
        self.assertEqual(len(expected), 4)
        self.assertIn("the matches of 4 pairs", errors)
        self.assertEqual(self.pairs("merged.db"), expected)
        before = self.read("merged.db")
        self.merge("a.db", "b.db", "-o", "merged.db")
        self.assertEqual(self.read("merged.db"), before)
        # The remaining pairs are matched, and no others.
        _, errors = self.run_it("match", "--database", "merged.db")
        self.assertIn("10 pairs (4 already had matches, 0 failed)", errors)

    def test_without_geometry_and_without_matches(self):
        self.make("a.db", ["80x60:4", "70x60:4", "90x60:4"])
        self.ask("a.db", "DELETE FROM two_view_geometries WHERE pair_id = 2147483649")
        self.ask("a.db", "DELETE FROM matches WHERE pair_id = 2147483650")
        self.merge("a.db", "-o", "merged.db", "-q")
        self.assertEqual(self.ask("merged.db", "SELECT pair_id FROM matches ORDER BY 1"), [(2147483649,), (4294967297,)])
        self.assertEqual(self.ask("merged.db", "SELECT pair_id FROM two_view_geometries ORDER BY 1"),
                         [(2147483650,), (4294967297,)])

    def test_shards_in_one_database(self):
        """Pairs of images of two shards are kept too."""
        self.list_of([f"@scene:{width}x60:4" for width in (90, 80, 70, 75)])
        for shard in ("1/2", "2/2"):
            self.batch("list.txt", "-o", "both.db", "-q", "--shard", shard)
        self.run_it("match", "--database", "both.db", "-q")
        self.merge("both.db", "-o", "merged.db", "-q")
        self.assertEqual(len(self.pairs("merged.db")), 6)
        self.assertEqual(self.pairs("merged.db"), self.pairs("both.db"))

    def test_what_is_left_is_said(self):
        self.make("a.db", ["80x60:4", "70x60:4", "90x60:4"])
        self.extract("@scene:99x60:4", "-o", "a.db", "-q")
        self.run_it("match", "--database", "a.db", "-q")
        self.ask("a.db", "UPDATE matches SET rows = 1, data = ? WHERE pair_id = 2147483650", struct.pack("<2I", 0, 99999))
        _, errors = self.merge("a.db", "-o", "merged.db", "-q")
        self.assertIn("a.db: the matches of 3 pairs with images that its manifest does not list are left out", errors)
        self.assertIn("the matches of pair 2147483650 are of features up to 0 and 99999", errors)
        self.assertIn("the matches of 1 pair are left out: 'hartsift match --database' makes them anew", errors)
        self.assertEqual(self.ask("merged.db", "SELECT pair_id FROM matches ORDER BY 1"), [(2147483649,), (4294967297,)])

    def test_others_that_are_there(self):
        self.make("a.db", ["80x60:4", "70x60:4"])
        self.merge("a.db", "-o", "merged.db", "-q")
        self.ask("merged.db", "UPDATE matches SET rows = 1, data = ?", struct.pack("<2I", 0, 0))
        before = self.read("merged.db")
        _, errors = self.merge("a.db", "-o", "merged.db", status=FAILED)
        self.assertIn("has other matches of images 1 and 2 already", errors)
        self.assertEqual(self.read("merged.db"), before)
        self.merge("a.db", "-o", "merged.db", "--replace", "-q")
        self.assertEqual(self.pairs("merged.db"), self.pairs("a.db"))


class Refused(MergeCase):
    def test_missing_shard(self):
        self.shards("shard{}")
        self.refused("shard1", "shard3", "-o", "merged", words=["shard 2 of 3 is missing"])
        self.refused("shard1", "shard2", "-o", "merged", words=["shard 3 of 3 is missing"])
        self.refused("shard1", "shard2", "shard3", "shard2", "-o", "merged", words=["same shard"])

    def test_unfinished_shard(self):
        self.shards("out")
        shutil.move(self.path("out", "manifest-2-of-3.csv"), self.path("out", "manifest-2-of-3.journal"))
        self.refused("out", "-o", "merged", words=["manifest-2-of-3.journal", "not finished", "--resume"])

    def test_shards_of_different_lists(self):
        self.shards("shard{}")
        self.list_of(scenes(3))
        self.batch("list.txt", "-o", "other", "--shard", "1/3", "-q")
        self.refused("other", "shard2", "shard3", "-o", "merged", words=["do not add up to one list"])

    def test_other_options_and_methods(self):
        self.list_of(scenes(6))
        self.batch("list.txt", "-o", "a", "--shard", "1/2", "-q")
        self.batch("list.txt", "-o", "b", "--shard", "2/2", "-q", "--contrast", "0.03")
        self.refused("a", "b", "-o", "merged", status=USAGE, words=["other options", "contrast=0.03", "contrast=0.04"])
        self.batch("list.txt", "-o", "c", "--shard", "2/2", "-q")
        path = os.path.join("c", "manifest-2-of-2.csv")
        self.write(path, self.read(path).replace(b"# method=", b"# method=1", 1))
        self.refused("a", "c", "-o", "merged", status=USAGE, words=["another method version", "method=1"])
        for shard in ("1/2", "2/2"):
            self.batch("list.txt", "-o", "affine-" + shard[0], "--shard", shard, "-q", "--affine")
        path = os.path.join("affine-2", "manifest-2-of-2.csv")
        self.write(path, self.read(path).replace(b"# method=3 ", b"# method=2 ", 1))
        self.refused("affine-1", "affine-2", "-o", "merged", status=USAGE, words=["another method version", "method=2", "method=3"])

    def test_outputs_that_are_not_what_the_manifest_says(self):
        self.shards("shard{}")
        name = os.path.join("shard2", "scene_60x45_2.npz")
        whole = self.read(name)
        self.write(name, whole[:-1] + bytes([whole[-1] ^ 1]))
        _, errors = self.merge("shard1", "shard2", "shard3", "-o", "merged", status=FAILED)
        self.assertIn(name, errors)
        self.assertIn("--resume", errors)
        self.assertFalse(os.path.exists(self.path("merged", "manifest.csv")))
        os.remove(self.path(name))
        self.merge("shard1", "shard2", "shard3", "-o", "merged", status=FAILED)
        self.write(name, whole)
        self.merge("shard1", "shard2", "shard3", "-o", "merged")

    def test_database_that_is_not_what_the_manifest_says(self):
        self.shards("shard{}.db")
        with sqlite3.connect(self.path("shard2.db")) as connection:
            connection.execute("UPDATE keypoints SET data = zeroblob(0), rows = 0 WHERE image_id = 1")
            connection.execute("UPDATE descriptors SET data = zeroblob(0), rows = 0 WHERE image_id = 1")
        connection.close()
        self.refused("shard1.db", "shard2.db", "shard3.db", "-o", "merged.db", words=["shard2.db", "is not what"])

    def test_damaged_manifest(self):
        self.shards("shard{}")
        path = os.path.join("shard1", "manifest-1-of-3.csv")
        whole = self.read(path)
        for torn in (whole[:-5], whole.replace(b",HS_OK,", b",well,", 1), whole + b"x,1\n"):
            self.write(path, torn)
            self.refused("shard1", "shard2", "shard3", "-o", "merged", words=["manifest-1-of-3.csv", "damaged"])
        self.write(path, b"image,width\n")
        self.refused("shard1", "shard2", "shard3", "-o", "merged", words=["is no manifest"])

    def test_turned_jpegs_for_colmap(self):
        # Lowe's files do not record whether their picture was rotated, so they are not accepted.
        self.shards("lowe{}", "--format", "lowe")
        inputs = ("lowe1", "lowe2", "lowe3")
        self.refused(*inputs, "-o", "merged.db", status=USAGE, words=["EXIF", "--no-exif", "--exif"])
        self.merge(*inputs, "-o", "merged.db", "--exif")
        self.assertEqual(len(self.rows("merged.db")["images"]), 8)

    def test_files_that_say_that_they_were_turned(self):
        os.mkdir(self.path("photos"))
        self.run_it("draw", "@scene:80x60:5", "-o", "photos/a.jpg", "--max-features", "1", "-q")
        self.batch("photos", "-o", "stored", "-q")
        self.merge("stored", "-o", "merged.db", "-q")  # pictures without an orientation to apply
        self.assertEqual(len(self.rows("merged.db")["images"]), 1)
        self.write("photos/b.jpg", with_exif(self.read("photos/a.jpg"), orientation(6)))
        for form in ("npz", "json", "opencv", "bin"):
            self.batch("photos", "-o", form, "-q", "--format", form)
            self.refused(form, "-o", form + ".db", words=["b.jpg: batch turned it", "--no-exif", "--exif"])
            self.merge(form, "-o", form + ".db", "--exif", "-q")
            self.assertEqual(len(self.rows(form + ".db")["images"]), 2)

    def test_outputs_in_the_way(self):
        self.shards("shard{}")
        inputs = ("shard1", "shard2", "shard3")
        self.write("merged/scene_60x45_2.npz", b"mine")
        _, errors = self.merge(*inputs, "-o", "merged", status=FAILED)
        self.assertIn("scene_60x45_2.npz: is there already", errors)
        self.assertEqual(self.read("merged", "scene_60x45_2.npz"), b"mine")
        self.merge(*inputs, "-o", "merged", "--replace")
        self.write("foreign/manifest.csv", b"a,b\n1,2\n")
        self.refused(*inputs, "-o", "foreign", words=["foreign/manifest.csv", "not made by batch"])

    def test_links_in_the_output(self):
        """Names in the output belong to the merge: a link there is replaced, its target stays."""
        self.list_of(scenes(3))
        self.batch("list.txt", "-o", "shard", "-q")
        for name, content in (("file.npz", b"mine"), ("absent.npz", None)):
            shutil.rmtree(self.path("merged"), ignore_errors=True)
            os.mkdir(self.path("merged"))
            if content is not None:
                self.write(name, content)
            os.symlink("../" + name, self.path("merged", "scene_60x45_2.npz"))
            _, errors = self.merge("shard", "-o", "merged", status=FAILED)
            self.assertIn("scene_60x45_2.npz: is there already", errors)
            self.merge("shard", "-o", "merged", "--replace")
            self.assertFalse(os.path.islink(self.path("merged", "scene_60x45_2.npz")))
            self.assertEqual(os.path.exists(self.path(name)), content is not None)
            self.assertEqual(self.read("merged", "scene_60x45_2.npz"), self.read("shard", "scene_60x45_2.npz"))
        self.assertEqual(self.read("file.npz"), b"mine")
        os.remove(self.path("merged", "scene_60x45_2.npz"))
        os.symlink("../shard/scene_60x45_2.npz", self.path("merged", "scene_60x45_2.npz"))
        self.merge("shard", "-o", "merged")  # points to the output that is wanted
        self.assertTrue(os.path.islink(self.path("merged", "scene_60x45_2.npz")))

    def test_interrupted_leaves_nothing(self):
        self.list_of(scenes(20, "200x150"))
        self.batch("list.txt", "-o", "shard", "-q", "--format", "json")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for _ in range(50):
                shutil.rmtree(self.path("merged"), ignore_errors=True)
                run = subprocess.Popen([COMMAND, "merge", "shard", "-o", "merged", "-q"], cwd=self.folder,
                                       env=self.environment())
                while not any(name[0] == "." for name in self.listed("merged")) and run.poll() is None:
                    pass
                run.send_signal(number)
                if run.wait(300) == -number and "manifest.csv" not in self.listed("merged"):
                    break  # else the signal came after the merge
            self.assertEqual(run.returncode, -number)
            self.assertEqual([name for name in self.listed("merged") if name[0] == "."], [])
            self.assertFalse(os.path.exists(self.path("merged", "manifest.csv")))
            self.merge("shard", "-o", "merged", "-q")

    def test_interrupted_leaves_no_new_database(self):
        self.batch("list.txt", "-o", "one.db", "-q", status=FAILED)
        before = self.files()
        with contextlib.closing(sqlite3.connect(self.path("one.db"))) as lock:
            lock.execute("BEGIN EXCLUSIVE")  # merge makes its output, and waits for this
            for moment in range(12 if is_short() else 40):
                run = subprocess.Popen([COMMAND, "merge", "one.db", "-o", "merged.db"], cwd=self.folder, env=self.environment())
                self.end_when_made(run, ("merged.db", "merged.db-journal")[moment % 2], moment // 2 % 5, signal.SIGINT)
                self.assertEqual(self.files(), before, moment)

    def listed(self, folder):
        return os.listdir(self.path(folder)) if os.path.isdir(self.path(folder)) else []

    def test_operands(self):
        self.shards("out")
        self.shards("shard{}.db")
        self.write("empty/notes.txt", b"")
        self.refused("empty", "-o", "merged", words=["no manifest"])
        self.refused("absent", "-o", "merged", words=["absent"])
        self.refused("list.csv", "-o", "merged", status=USAGE, words=["manifest.csv"])
        self.refused("out", status=USAGE, words=["--output"])
        self.refused("shard1.db", "shard2.db", "shard3.db", "-o", "out", status=USAGE, words=["into a database"])
        self.refused("shard1.db", "shard2.db", "shard3.db", "-o", "shard2.db", status=USAGE, words=["one of the databases"])
        shutil.copy(self.path("out", "manifest-1-of-3.csv"), self.path("out", "manifest.csv"))
        self.refused("out", "-o", "merged", words=["name the manifest to merge, out/manifest.csv"])


if __name__ == "__main__":
    main()
