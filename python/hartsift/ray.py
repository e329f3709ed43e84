"""Features and matches of collections that outgrow one machine, on a Ray cluster. Needs the packages pyarrow and
ray[data] on every node.

>>> import hartsift.ray
>>> features = hartsift.ray.extract("s3://bucket/photos", max_features=4000)     # a ray.data.Dataset
>>> features.write_parquet("s3://bucket/features")
>>> matches = hartsift.ray.match_pairs("s3://bucket/features", "sequential:10")

On the command line, with Ray's progress: ``python -m hartsift.ray extract IN OUT`` and ``match FEATURES OUT``.
``hartsift.parquet.merge`` merges the files that Ray writes.
"""

from __future__ import annotations

if __name__ == "__main__":
    # The command loads Ray only for its work, not for --help.
    import sys

    from ._ray_command import main

    sys.exit(main())

try:
    from ._ray_extract import extract
    from ._ray_match import match_pairs
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: pip install pyarrow 'ray[data]'", name=error.name) from error

__all__ = ["extract", "match_pairs"]
