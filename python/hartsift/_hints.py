"""Type hints of options and formats. Made by tests/support/make_python_hints.py: do not edit."""

from __future__ import annotations

from typing import Literal, Tuple, TypedDict

Profile = Literal["lowe", "opencv", "vlfeat", "colmap"]
Norm = Literal["l2", "root"]
Layout = Literal["ubc", "vlfeat"]
Rule = Literal["lowe", "opencv", "vlfeat"]
FileFormat = Literal[
    "auto",
    "colmap",
    "npz",
    "csv",
    "json",
    "lowe",
    "vlfeat",
    "opencv",
    "openmvg",
    "bin",
    "colmap-db",
    "visualsfm",
    "oxford",
]


class OptionsBesideSigma(TypedDict, total=False):
    """All of Options but sigma, which ``SIFT`` has among its own arguments."""

    profile: Profile  #: parameters to start from [lowe]; the other options override it in any order
    threads: int  #: CPU threads, 0: one for each usable core [0]
    #: where to compute [auto: a GPU where one is usable, else the CPU]; "auto", "cpu", "cuda", "cuda:N" or "hybrid"
    device: str
    device_index: int  #: which GPU [0]
    split: int  #: with device hybrid: number of octaves on the GPU; the CPU computes the smaller ones; 0 measures [0]
    in_flight: int  #: maximum number of images submitted and not yet waited for, 0: 8, or 64 for encoded images [0]
    #: maximum number of images of one size that share the launches of a GPU frame, 0: chosen by size [0]
    images_per_launch: int
    max_pixels: int  #: refuse larger images, 0: the default [2147483648]
    max_memory_bytes: int  #: refuse images that need more memory, even in tiles, 0: no limit [0]
    max_features: int  #: keep exactly N features if there are more, 0: all [0; colmap 8192, by selection levels]
    #: which features stay if there are more than max_features: the strongest, the largest, or whole levels from the
    #: coarsest on until there are more, as in COLMAP [response; colmap levels, but scale with max_features]
    selection: Literal["response", "scale", "levels"]
    region: Tuple[int, int, int, int]  #: x, y, width, height of the region in which keypoints are kept
    region_x: int  #: left edge of the region, pixels [0]
    region_y: int  #: upper edge of the region, pixels [0]
    region_width: int  #: width of the region in which keypoints are kept, 0: everywhere [0]
    region_height: int  #: height of the region [0]
    grid: Tuple[int, int]  #: columns, rows of the grid over which max_features is spread
    grid_columns: int  #: columns of the grid over which max_features is spread, 0: no grid [0]
    grid_rows: int  #: rows of the grid [0]
    equalize: bool  #: equalise the histogram of the image first (8-bit images)
    first_octave: int  #: first octave, -1 doubles the image [-1]
    octaves: int  #: maximum number of octaves, 0: as many as the image's size allows [0; colmap 4]
    scales: int  #: scales per octave [3]
    #: positions of the samples in the doubled image [half-pixel; opencv opencv; vlfeat, colmap aligned]
    upsample: Literal["aligned", "half-pixel", "opencv"]
    input_blur: float  #: assumed blur of the image, in pixels [0.5]
    border: int  #: width of the margin without candidates, in samples [5; vlfeat, colmap 1]
    contrast: float  #: minimum contrast of a keypoint, divided by scales [0.04; vlfeat 0; colmap 0.02]
    settle: float  #: largest offset of an extremum from its sample, in samples [0.6; opencv 0.5]
    edge: float  #: largest ratio of principal curvatures [10]
    #: maximum number of features per keypoint, 0: one for each strong peak [0; vlfeat 4; colmap 2]
    max_orientations: int
    upright: bool  #: give each keypoint one feature of orientation 0
    norm: Norm  #: normalisation of descriptors; root is RootSIFT [l2; colmap root]
    layout: Layout  #: order of a descriptor's bins [ubc; vlfeat vlfeat]
    descriptor: Literal["u8", "f32", "none"]  #: type of the descriptors [u8; opencv, vlfeat f32]
    dsp: bool  #: pool descriptors over sizes (DSP-SIFT)
    dsp_sizes: int  #: dsp: number of sizes [4; colmap 10]
    dsp_smallest: float  #: dsp: the smallest size, relative to the keypoint's scale [2/3; colmap 1/6]
    dsp_largest: float  #: dsp: the largest size [7/3; colmap 3]
    #: decoder of JPEG files, with equal pixels; auto: the CPU, and in a batch also a GPU whose pixels were verified,
    #: except for small files while the CPU has time; gpu: fails without a GPU [auto]
    decoder: Literal["auto", "cpu", "gpu"]
    affine: bool  #: describe keypoints with affine shape adaptation
    octave_rule: Rule  #: author whose number of octaves is used
    blur_radius_rule: Rule  #: author whose radius of Gaussian filters is used
    border_rule: Literal["reflect-101", "replicate"]  #: values of samples outside a level while filtering
    candidate_rule: Rule  #: author whose first contrast threshold is used
    refine_rule: Rule  #: author whose steps of a keypoint's fit are used
    orientation_rule: Rule  #: author whose orientation histogram is used
    descriptor_rule: Rule  #: author whose centre and norm of descriptors are used
    variant: str  #: implementations of stages, "stage=name,...", for measurements


class Options(OptionsBesideSigma, total=False):
    """The options of an extraction. What is left out has the profile's value, in brackets.

    Enumerations are given by name, as on the command line (``norm="root"``, ``device="cuda:1"``). Ranges and
    defaults of all fields are in ``hartsift.h``.
    """

    sigma: float  #: blur of an octave's first level [1.6]
