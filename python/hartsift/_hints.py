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
    split: int  #: octaves on the GPU with device hybrid, the smaller ones go to the CPU; 0 measures [0]
    in_flight: int  #: most images that are submitted and not yet waited for, 0: 8, or 64 for encoded ones [0]
    images_per_launch: int  #: most images of one size that share the launches of a GPU frame, 0: chosen by size [0]
    max_pixels: int  #: refuse larger images, 0: the default [2147483648]
    max_memory_bytes: int  #: refuse images that need more memory, even in tiles, 0: no limit [0]
    max_features: int  #: keep exactly N when there are more, 0: all [0; colmap: 8192 by selection levels]
    #: which of more than max_features stay: the strongest, the largest, or whole levels, the largest first, until they
    #: are more, as COLMAP does [response; colmap levels, with max_features scale]
    selection: Literal["response", "scale", "levels"]
    region: Tuple[int, int, int, int]  #: x, y, width, height of the region that keypoints are kept in
    region_x: int  #: left edge of the region, pixels [0]
    region_y: int  #: upper edge of the region, pixels [0]
    region_width: int  #: width of the region that keypoints are kept in, 0: everywhere [0]
    region_height: int  #: height of the region [0]
    grid: Tuple[int, int]  #: columns, rows of the grid that max_features is spread over
    grid_columns: int  #: columns of the grid that max_features is spread over, 0: no grid [0]
    grid_rows: int  #: rows of the grid [0]
    equalize: bool  #: equalise the histogram of the image first (8-bit images)
    first_octave: int  #: octave of the first sampling, -1 doubles the image [-1]
    octaves: int  #: most octaves, 0: as many as the image's size gives [0; colmap 4]
    scales: int  #: scales in an octave [3]
    #: grid of the doubled image [half-pixel; opencv opencv; vlfeat, colmap aligned]
    upsample: Literal["aligned", "half-pixel", "opencv"]
    input_blur: float  #: blur that the image is assumed to have, in pixels [0.5]
    border: int  #: samples at each side that cannot be candidates [5; vlfeat, colmap 1]
    contrast: float  #: contrast a keypoint needs, divided by the scales [0.04; vlfeat 0; colmap 0.02]
    settle: float  #: largest offset of an extremum from its sample, in samples [0.6; opencv 0.5]
    edge: float  #: largest ratio of principal curvatures [10]
    max_orientations: int  #: most features from one keypoint, 0: every strong peak [0; vlfeat 4; colmap 2]
    upright: bool  #: give each keypoint one feature of orientation 0
    norm: Norm  #: normalisation of descriptors; root is RootSIFT [l2; colmap root]
    layout: Layout  #: order of a descriptor's bins [ubc; vlfeat vlfeat]
    descriptor: Literal["u8", "f32", "none"]  #: type of the descriptors [u8; opencv, vlfeat f32]
    dsp: bool  #: pool descriptors over sizes (DSP-SIFT)
    dsp_sizes: int  #: dsp: how many sizes [4; colmap 10]
    dsp_smallest: float  #: dsp: the smallest size, relative to the keypoint's scale [2/3; colmap 1/6]
    dsp_largest: float  #: dsp: the largest size [7/3; colmap 3]
    #: what decodes JPEG files, to the same pixels; auto: the CPU, in a batch also a GPU that passed its comparison,
    #: except for small files where the CPU has time; gpu: fails where there is none [auto]
    decoder: Literal["auto", "cpu", "gpu"]
    affine: bool  #: describe keypoints with affine shape adaptation
    octave_rule: Rule  #: whose number of octaves
    blur_radius_rule: Rule  #: whose radius of a Gaussian filter
    border_rule: Literal["reflect-101", "replicate"]  #: samples outside of a level while filtering
    candidate_rule: Rule  #: whose first threshold of the contrast
    refine_rule: Rule  #: whose steps of the fit of a keypoint
    orientation_rule: Rule  #: whose histogram of orientations
    descriptor_rule: Rule  #: whose centre and norm of a descriptor
    variant: str  #: implementations of stages, "stage=name,...", for measurements


class Options(OptionsBesideSigma, total=False):
    """The options of an extraction. What is left out has the profile's value, in brackets.

    Enumerations are given by name, as on the command line (``norm="root"``, ``device="cuda:1"``). Ranges and
    defaults of all fields are in ``hartsift.h``.
    """

    sigma: float  #: blur of an octave's first level [1.6]
