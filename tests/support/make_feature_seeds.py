"""Writes seeds for tests/fuzz/fuzz_features.c into a folder: small files of every format.

usage: make_feature_seeds.py PROGRAM FOLDER     PROGRAM: write_sample_features of the build
"""
import pathlib
import subprocess
import sys
import tempfile

# File names by the value of hs_format; 10 is a database, which the target excludes.
FORMATS = {1: "colmap.txt", 2: "npz.npz", 3: "csv.csv", 4: "json.json", 5: "lowe.key", 6: "vlfeat.sift",
           7: "opencv.yml", 8: "openmvg.feat", 9: "bin.hsf", 11: "visualsfm.sift", 12: "oxford.hesaff"}


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for style in ("u8", "f32", "none"):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([program, place, "1", style], check=True)
            for number, name in FORMATS.items():
                path = pathlib.Path(place) / name
                if not path.exists():
                    continue
                beside = path.with_suffix(".desc").read_bytes() if name.endswith(".feat") else b""
                head = bytes([number, len(beside) & 255, len(beside) >> 8])
                (folder / f"{name.split('.')[0]}_{style}").write_bytes(head + path.read_bytes() + beside)


if __name__ == "__main__":
    main()
