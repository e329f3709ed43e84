"""Features and matches of a row in a file, so that a machine with a GPU extracts and another one measures."""
import re

import numpy as np

MOST_FEATURES = 1 << 16  # numbered by 16 bits


def save(path, method, groups, prepared):
    """Writes positions of features and pairs of indices of a method for all pairs of the groups {name: group}."""
    arrays = {}
    for name, group in groups.items():
        features = {picture: method.extract(prepared(method, group.picture(picture)))
                    for picture in sorted({picture for pair in group.pairs for picture in (pair.first, pair.second)})}
        if any(len(found.points) > MOST_FEATURES for found in features.values()):
            raise ValueError(f"{path}: a picture has more than {MOST_FEATURES} features")
        arrays.update({f"{name}|{picture}": found.points.astype(np.float32) for picture, found in features.items()})
        for pair in group.pairs:
            matches = method.match(features[pair.first], features[pair.second])
            arrays[f"{name}|{pair.first}|{pair.second}"] = matches.astype(np.uint16)
    np.savez_compressed(path, **arrays)


def file_name(row):
    return re.sub(r"\W+", "_", row) + ".npz"


class Saved:
    """A method whose features and matches were saved. Features have positions alone."""
    gray = True

    def __init__(self, path):
        self.arrays = np.load(path, allow_pickle=False)

    def points(self, group, picture):
        return self.arrays[f"{group}|{picture}"].astype(float)

    def matches(self, group, first, second):
        return self.arrays[f"{group}|{first}|{second}"].astype(int)
