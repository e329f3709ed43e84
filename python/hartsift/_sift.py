"""OpenCV's class SIFT over the library: same parameters, calls, keypoints and packed octaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from ._device import device_array
from ._errors import ArgumentError, ArrayTypeError, Error
from ._extractor import Extractor
from ._features import KEYPOINT_DTYPE, Features
from ._images import picture_of_mask
from ._library import DESCRIPTOR_LENGTH
from ._opencv import (
    MISSING,
    array_of,
    as_list,
    check_output,
    either,
    flag,
    is_empty,
    is_umat,
    names_as_cv2,
    output,
    per_image,
    raises_like_cv2,
    real,
    whole,
)
from ._samples import warn
from ._sift_files import NAME, read_parameters, write_parameters

if TYPE_CHECKING:
    import cv2
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._hints import OptionsBesideSigma

CV_8U, CV_32F = 0, 5
_NORM_L2 = 4
#: The library's names of the parameters.
_NAMES = {
    "scales": "nOctaveLayers",
    "contrast": "contrastThreshold",
    "edge": "edgeThreshold",
    "max_features": "nfeatures",
}


class CvKeypoint(np.record):  # type: ignore[misc, unused-ignore]
    """A record of ``CV_KEYPOINT_DTYPE`` with the attributes of a cv2.KeyPoint. ``size`` must be replaced, because for
    NumPy's records it is always 1."""

    @property  # type: ignore[override, unused-ignore]
    def size(self) -> float:
        """Diameter, 2 sigma, pixels."""
        return float(self["size"])

    @size.setter
    def size(self, diameter: float) -> None:
        self["size"] = diameter

    @property
    def pt(self) -> Tuple[float, float]:
        """(x, y), pixels."""
        x, y = self["pt"].tolist()
        return x, y

    @pt.setter
    def pt(self, place: Tuple[float, float]) -> None:
        self["pt"] = place


_FIELDS = np.dtype(
    [
        ("pt", np.float32, (2,)),
        ("size", np.float32),
        ("angle", np.float32),
        ("response", np.float32),
        ("octave", np.int32),
        ("class_id", np.int32),
        ("orientation", np.float32),
    ]
)

#: One keypoint with the names, units and order of cv2.KeyPoint: position in pixels, size = 2 sigma, angle in degrees,
#: response, packed octave, class_id. orientation is the exact angle in radians, so that ``compute`` gives the same
#: descriptors as ``detectAndCompute``. For an array, ``keypoints["size"]`` is the column of diameters, while
#: ``keypoints.size`` is NumPy's number of elements.
CV_KEYPOINT_DTYPE = np.dtype((CvKeypoint, _FIELDS))


class _CvRecords(np.recarray):  # type: ignore[type-arg, unused-ignore]
    """A record array whose elements are CvKeypoints, while NumPy's record arrays have np.record."""

    def __array_finalize__(self, made_from: Any) -> None:
        pass

    def __getitem__(self, index: Any) -> Any:
        part = np.ndarray.__getitem__(self, index)
        return part if isinstance(part, np.void) or part.dtype.names else part.view(np.ndarray)


#: Keypoints in OpenCV's units: a record array of CV_KEYPOINT_DTYPE, or a tuple of cv2.KeyPoint.
CvKeypoints = Union["npt.NDArray[Any]", "Tuple[cv2.KeyPoint, ...]"]


def _degrees(orientation: "npt.NDArray[Any]") -> "npt.NDArray[np.float32]":
    with np.errstate(over="ignore"):
        angle = np.rad2deg(orientation.astype(np.float64)).astype(np.float32)
    return np.where(angle >= 360, np.float32(0), angle)


def _pack_octaves(records: "npt.NDArray[Any]", scales: int, sigma: float) -> "npt.NDArray[np.int32]":
    """Packs octave | level << 8 | round((xi + 0.5) 255) << 16. The offset xi from the level is computed from sigma."""
    octave, level = records["octave"].astype(np.int64), records["level"].astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):  # the size of a given keypoint may be 0, negative, or not a number
        offset = scales * (np.log2(records["sigma"].astype(np.float64) / sigma) - octave) - level
        known = np.abs(offset) < 1
        part = np.where(known, np.clip(np.floor((offset + 0.5) * 255 + 0.5), 0, 255), 128).astype(np.int64)
    packed = (octave & 255) | np.where(level > 0, (level << 8) | (part << 16), 0)
    return packed.astype(np.int32)


def to_cv_records(features: Features, scales: int = 3, sigma: float = 1.6) -> "npt.NDArray[Any]":
    """Features as a record array of ``CV_KEYPOINT_DTYPE``: ``keypoints[i].pt`` works as with cv2.KeyPoint.

    Args:
        features: features to convert.
        scales, sigma: options of the extraction; the packed octave contains the keypoint's offset between two levels.
    """
    records = features.records
    result = np.zeros(len(records), CV_KEYPOINT_DTYPE)
    result["pt"] = features.points
    with np.errstate(over="ignore"):
        result["size"] = 2 * records["sigma"]
    result["angle"] = _degrees(records["orientation"])
    result["response"] = records["response"]
    result["octave"] = _pack_octaves(records, scales, sigma)
    result["class_id"] = -1
    result["orientation"] = records["orientation"]
    return result.view(_CvRecords)


def to_cv2(keypoints: "Union[Features, npt.NDArray[Any]]") -> "Tuple[cv2.KeyPoint, ...]":
    """Converts keypoints to a tuple of cv2.KeyPoint. Needs the package cv2.

    Args:
        keypoints: Features, or an array of ``CV_KEYPOINT_DTYPE``.
    """
    try:
        import cv2
    except ImportError as error:
        raise ImportError("cv2.KeyPoint needs the package opencv-python; as_cv2=False gives records without") from error

    records = np.asarray(to_cv_records(keypoints) if isinstance(keypoints, Features) else keypoints)
    place = np.moveaxis(records["pt"], -1, 0)
    rest = (records[name] for name in ("size", "angle", "response", "octave", "class_id"))
    # Positional arguments, column by column, are the fastest way to make them, faster than KeyPoint_convert.
    return tuple(map(cv2.KeyPoint, *(column.tolist() for column in (*place, *rest))))


def _from_cv2(keypoints: Sequence[Any]) -> "npt.NDArray[Any]":
    try:
        rows = [(k.pt, k.size, k.angle, k.response, k.octave, k.class_id, np.nan) for k in keypoints]
        return np.array(rows, CV_KEYPOINT_DTYPE)
    except (AttributeError, TypeError, ValueError) as error:
        raise ArrayTypeError(_NO_KEYPOINTS) from error


_NO_KEYPOINTS = "keypoints must be cv2.KeyPoints, Features, or an array of hartsift.CV_KEYPOINT_DTYPE"


def _as_cv_records(keypoints: Any) -> "npt.NDArray[Any]":
    """Keypoints for ``compute`` as an array of CV_KEYPOINT_DTYPE. The orientation is NaN if only the angle is known."""
    if isinstance(keypoints, Features):
        return np.asarray(to_cv_records(keypoints))
    if isinstance(keypoints, np.ndarray) and keypoints.dtype != object and keypoints.size > 0:
        names = keypoints.dtype.names or ()
        if not {"pt", "size", "angle", "octave"} <= set(names):
            raise ArrayTypeError(_NO_KEYPOINTS)
        result = np.zeros(keypoints.size, CV_KEYPOINT_DTYPE)
        result["orientation"], result["class_id"] = np.nan, -1
        for name in CV_KEYPOINT_DTYPE.names or ():
            if name in names:
                result[name] = keypoints[name].reshape(result[name].shape)
        return result
    return _from_cv2(keypoints)


def _check_octaves(keypoints: "npt.NDArray[Any]", layers: int) -> None:
    """Refuses keypoints whose packed octave is outside the pyramid, as OpenCV does."""
    octave = (keypoints["octave"] & 255).astype(np.uint8).view(np.int8)
    layer = (keypoints["octave"] >> 8) & 255
    wrong = np.flatnonzero((octave < -1) | (layer > layers))
    if len(wrong) > 0:
        first = int(wrong[0])
        raise ArgumentError(
            f"keypoint {first} has octave {octave[first]} and layer {layer[first]}, expected -1 or more and 0 to {layers}: "
            "was it made with another nOctaveLayers?"
        )


def _unpack(keypoints: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """Converts keypoints in OpenCV's units to the library's records."""
    records = np.zeros(len(keypoints), KEYPOINT_DTYPE)
    records["x"], records["y"] = keypoints["pt"][:, 0], keypoints["pt"][:, 1]
    records["sigma"] = 0.5 * keypoints["size"]
    records["response"] = keypoints["response"]
    records["octave"] = (keypoints["octave"] & 255).astype(np.uint8).view(np.int8)
    records["level"] = (keypoints["octave"] >> 8) & 255
    radians = np.deg2rad(keypoints["angle"].astype(np.float64)).astype(np.float32)
    exact = keypoints["orientation"]
    with np.errstate(invalid="ignore"):
        records["orientation"] = np.where(_degrees(exact) == keypoints["angle"], exact, radians)
    return records


def _image_or_none(image: Any) -> Any:
    """The image; None if OpenCV regards it as empty, so that it has no keypoints."""
    image = array_of(image)
    if image is None:
        warn("the image is None (cv2.imread returns that for a file that it cannot read): it has no keypoints")
    return None if is_empty(image) else _of_bytes(image)


def _of_bytes(image: Any) -> Any:
    """The image. Refuses types that cv2.SIFT refuses, because OpenCV defines no white for them."""
    image = array_of(image)
    dtype = getattr(image, "dtype", "uint8")
    if str(dtype).rpartition(".")[2] != "uint8":
        raise ArrayTypeError(
            f"the image has samples of type {dtype}: like cv2.SIFT this takes uint8 only; hartsift.extract reads others"
        )
    return image


def _listed(keypoints: Any) -> Any:
    try:
        return list(keypoints)
    except TypeError:
        raise ArrayTypeError(_NO_KEYPOINTS) from None


def _no_features(settings: Dict[str, Any]) -> Features:
    records = np.zeros(0, KEYPOINT_DTYPE)
    if settings["descriptor"] == "none":
        return Features(records)
    dtype = np.uint8 if settings["descriptor"] == "u8" else np.float32
    return Features(records, np.zeros((0, DESCRIPTOR_LENGTH), dtype))


def _settings_of_sigma(sigma: float) -> Dict[str, Any]:
    return {"sigma": sigma, "input_blur": min(0.5, 0.5 * sigma)}


def _settings_of_kind(kind: int) -> Dict[str, Any]:
    if kind not in (CV_8U, CV_32F):
        raise ArgumentError(f"descriptorType is {kind}, expected {CV_32F} (CV_32F) or {CV_8U} (CV_8U)")
    return {"descriptor": "u8" if kind == CV_8U else "f32"}


class SIFT:
    """Replaces ``cv2.SIFT_create(...)``.

    Keypoints come as a record array of ``CV_KEYPOINT_DTYPE`` (``keypoints[i].pt``, ``keypoints["size"]``), descriptors
    as float32 or uint8 [N, 128]; with ``as_cv2=True``, the default of ``SIFT_create`` and ``SIFT.create``, exactly as
    OpenCV returns them: a tuple of ``cv2.KeyPoint``, and None as the descriptors if there are no keypoints. All forms
    of OpenCV's calls are accepted (python/OPENCV.md lists differences): keywords and positions, None for a default,
    ``cv2.UMat`` as input and output, output arguments, lists. As in OpenCV, colours are BGR, and arrays that are not
    uint8 are refused; ``hartsift.extract`` reads them. The order of keypoints is hartsift's, and ``nfeatures`` is
    exact. An error is a ``hartsift.Error`` and, if cv2 is imported, also a ``cv2.error``.

    Args:
        nfeatures: number of strongest features, of the whole image even with a mask; 0 or less: all.
        nOctaveLayers: scales per octave, 1 to 8.
        contrastThreshold: minimum contrast of a keypoint, times nOctaveLayers; at most 1.
        edgeThreshold: maximum ratio of principal curvatures, 1 to 1000.
        sigma: blur of an octave's first level, 0.8 to 4.
        descriptorType: 5 (``cv2.CV_32F``, integer values in floats) or 0 (``cv2.CV_8U``).
        enable_precise_upscale: double the image on a grid that maps x to 2x; OpenCV's own default moves keypoints by a
            quarter of a pixel.
        as_cv2: return cv2.KeyPoints; each call may override this.
        options: further ``hartsift.Options``, such as ``device`` and ``threads``; ``profile`` is "opencv".
    """

    @raises_like_cv2
    def __init__(
        self,
        nfeatures: int = 0,
        nOctaveLayers: int = 3,
        contrastThreshold: float = 0.04,
        edgeThreshold: float = 10,
        sigma: float = 1.6,
        descriptorType: int = CV_32F,
        enable_precise_upscale: bool = False,
        *,
        as_cv2: bool = False,
        **options: "Unpack[OptionsBesideSigma]",
    ) -> None:
        # OpenCV has a form without descriptorType, in which the sixth argument is the switch
        if isinstance(descriptorType, bool):
            enable_precise_upscale, descriptorType = bool(descriptorType), CV_32F
        kind = whole(descriptorType, "descriptorType", CV_32F)
        settings: Dict[str, Any] = {
            "profile": "opencv",
            "scales": whole(nOctaveLayers, "nOctaveLayers", 3),
            "edge": real(edgeThreshold, "edgeThreshold", 10),
            **_settings_of_sigma(real(sigma, "sigma", 1.6)),
            **_settings_of_kind(kind),
        }
        if flag(enable_precise_upscale, "enable_precise_upscale"):
            settings["upsample"] = "aligned"
        settings.update(options)
        nfeatures = settings.pop("max_features", nfeatures)
        contrastThreshold = settings.pop("contrast", contrastThreshold)
        self._as_cv2 = as_cv2
        self._settings: Dict[str, Any] = {}
        self._nfeatures, self._contrast = 0, 0.0
        self._set(
            nfeatures=whole(nfeatures, "nfeatures", 0),
            contrastThreshold=real(contrastThreshold, "contrastThreshold", 0.04),
            **settings,
        )

    @staticmethod
    @raises_like_cv2
    def create(
        nfeatures: int = 0,
        nOctaveLayers: int = 3,
        contrastThreshold: float = 0.04,
        edgeThreshold: float = 10,
        sigma: float = 1.6,
        descriptorType: int = CV_32F,
        enable_precise_upscale: bool = False,
        *,
        as_cv2: bool = True,
        **options: "Unpack[OptionsBesideSigma]",
    ) -> "SIFT":
        """As ``cv2.SIFT.create``: creates a ``SIFT`` that by default returns cv2.KeyPoints. Colours of arrays are BGR.

        Args:
            nfeatures, nOctaveLayers, contrastThreshold, edgeThreshold, sigma, descriptorType, enable_precise_upscale:
                as for ``hartsift.SIFT``; None: the default.
            as_cv2: False: return records instead of cv2.KeyPoints; they need no OpenCV.
            options: further ``hartsift.Options``.
        """
        return SIFT(
            nfeatures,
            nOctaveLayers,
            contrastThreshold,
            edgeThreshold,
            sigma,
            descriptorType,
            enable_precise_upscale,
            as_cv2=as_cv2,
            **options,
        )

    @raises_like_cv2
    def detect(
        self,
        image: Any = MISSING,
        mask: Any = None,
        *,
        images: Any = MISSING,
        masks: Any = None,
        as_cv2: Optional[bool] = None,
    ) -> Any:
        """Finds keypoints: ``detect(image, mask)`` or ``detect(images, masks)``.

        Args:
            image: an image, or a list of images; an array without pixels has no keypoints, and neither has None (with a
                warning).
            mask: uint8 or bool; keypoints where it is zero are dropped. For a list of images: a list of masks, or None.
            images, masks: OpenCV's names for lists of them.
            as_cv2: return cv2.KeyPoints; None: as set for the object.

        Returns:
            Keypoints; for a list of images a tuple of these.
        """
        image, mask = either(image, images), mask if masks is None else masks
        several = as_list(image)
        if several is None:
            return self._detect(image, mask, as_cv2)
        each = zip(several, per_image(mask, len(several), "masks"))
        return tuple(self._detect(one, its_mask, as_cv2) for one, its_mask in each)

    @raises_like_cv2
    def compute(
        self,
        image: Any = MISSING,
        keypoints: Any = MISSING,
        descriptors: Any = None,
        *,
        images: Any = MISSING,
        as_cv2: Optional[bool] = None,
    ) -> Tuple[Any, Any]:
        """Describes the caller's keypoints: ``compute(image, keypoints)`` or ``compute(images, keypoints)``.

        A keypoint's octave and level are those of its packed octave, if this has a level; otherwise (keypoints of other
        detectors) those nearest to its size. As in OpenCV, every keypoint is returned at its position in the list. A
        keypoint that cannot be described, because it is outside the image or its size is 0, has a descriptor of zeros.

        Args:
            image: an image, or a list of images.
            keypoints: cv2.KeyPoints, or an array of ``CV_KEYPOINT_DTYPE``; a list of these for a list of images.
            descriptors: an array for the result, which is used if its shape and type fit; with a cv2.UMat the result is
                one.
            images: OpenCV's name for a list of images.
            as_cv2: return cv2.KeyPoints; None: if the keypoints are cv2.KeyPoints.

        Returns:
            Keypoints and descriptors; for a list of images a tuple of each.
        """
        image = either(image, images)
        if keypoints is MISSING:
            raise ArrayTypeError("keypoints is missing")
        several = as_list(image)
        if several is None:
            check_output(descriptors)
            return self._compute(image, keypoints, descriptors, as_cv2)
        if keypoints is None and several:
            raise ArgumentError(f"keypoints is None for {len(several)} images: expected a list with one for each")
        as_umat = any(map(is_umat, several))
        each = zip(several, per_image(keypoints, len(several), "keypoints"))
        done = [self._compute(one, its_own, None, as_cv2, as_umat) for one, its_own in each]
        return tuple(pair[0] for pair in done), tuple(pair[1] for pair in done)

    @raises_like_cv2
    def detectAndCompute(
        self,
        image: Any,
        mask: Any = None,
        descriptors: Any = None,
        useProvidedKeypoints: bool = False,
        *,
        as_cv2: Optional[bool] = None,
    ) -> Tuple[Any, Any]:
        """Finds keypoints and describes them.

        Args:
            image, mask: as for ``detect``, for one image; an image without pixels is refused, as in OpenCV.
            descriptors: an array for the result, which is used if its shape and type fit; with a cv2.UMat the result is
                one.
            useProvidedKeypoints: True: no keypoints are detected. OpenCV's Python has no argument for provided
                keypoints, so the result is empty; use ``compute``.
            as_cv2: return cv2.KeyPoints; None: as set for the object.

        Returns:
            Keypoints, and descriptors [N, 128].
        """
        check_output(descriptors)
        as_umat = is_umat(image) or is_umat(mask)
        image = _of_bytes(image)
        if is_empty(image):
            raise ArgumentError(
                "the image is None (cv2.imread returns that for a file that it cannot read)"
                if image is None
                else f"the image has no pixels: its shape is {image.shape}"
            )
        provided = flag(useProvidedKeypoints, "useProvidedKeypoints")
        features = _no_features(self._settings) if provided else self._extract(image, mask)
        keypoints, described = self._result(self._records(features), features.descriptors, as_cv2)
        return keypoints, output(described, descriptors, as_umat)

    # ---- one image

    def _detect(self, image: Any, mask: Any, as_cv2: Optional[bool]) -> CvKeypoints:
        image = _image_or_none(image)
        if image is None:
            return self._keypoints(_no_features(self._settings), as_cv2)
        return self._keypoints(self._extract(image, mask, describe=False), as_cv2)

    def _extract(self, image: Any, mask: Any, describe: bool = True) -> Features:
        """Features inside the mask, out of the strongest ``nfeatures`` of the whole image, as in OpenCV."""
        mask = array_of(mask)
        mask = None if is_empty(mask) else mask
        extract = self._extractor.extract if describe else self._extractor.detect
        if mask is None or self._nfeatures <= 0 or device_array(mask) is not None:
            return extract(image, mask, channels="bgr")
        features = extract(image, channels="bgr")
        picture = picture_of_mask(mask)
        view = picture.view
        width, height = features.image_size
        if (view.width, view.height) != (width, height):
            raise ArgumentError(
                f"the mask is {view.width} x {view.height}, expected the image's size {width} x {height}"
            )
        pixels = np.floor(features.points + np.float32(0.5)).astype(np.int64)
        columns, rows = np.clip(pixels[:, 0], 0, width - 1), np.clip(pixels[:, 1], 0, height - 1)
        return features[np.asarray(picture.owner).reshape(height, width)[rows, columns] != 0]

    def _compute(
        self, image: Any, keypoints: Any, descriptors: Any, as_cv2: Optional[bool], as_umat: bool = False
    ) -> Tuple[Any, Any]:
        as_umat = as_umat or is_umat(image)
        image = _image_or_none(image)
        if as_cv2 is None and keypoints is not None and not isinstance(keypoints, Features):
            keypoints = keypoints if isinstance(keypoints, np.ndarray) else _listed(keypoints)
            of_records = isinstance(keypoints, np.ndarray) and keypoints.dtype != object
            as_cv2 = True if len(keypoints) > 0 and not of_records else None
        given = _as_cv_records(() if keypoints is None else keypoints)
        if image is None:
            kept, _ = self._result(given.view(_CvRecords), None, as_cv2)
            return kept, output(None, None, as_umat)
        _check_octaves(given, self._settings["scales"])
        result, described = self._described(image, given)
        kept, described = self._result(result, described, as_cv2)
        return kept, output(described, descriptors, as_umat)

    def _described(self, image: Any, given: "npt.NDArray[Any]") -> "Tuple[npt.NDArray[Any], Optional[npt.NDArray[Any]]]":
        """The keypoints with the levels that were used, and the descriptors; zeros for keypoints that cannot be described."""
        records = _unpack(given)
        turned = ~np.isnan(records["orientation"])  # for the other keypoints the library would compute orientations
        records["orientation"][~turned] = 0
        features, statuses = self._extractor.describe(image, records, channels="bgr")
        done = (statuses == 0) & turned
        result = given.copy().view(_CvRecords)
        result["octave"] = np.where(
            (given["octave"] >> 8 & 255 != 0) | ~done, given["octave"], self._records(features)["octave"]
        )
        result["orientation"] = np.where(done, features.orientations, given["orientation"])
        described = features.descriptors
        return result, None if described is None else np.where(done[:, None], described, described.dtype.type(0))

    # ---- results

    def _keypoints(self, features: Features, as_cv2: Optional[bool]) -> CvKeypoints:
        return self._result(self._records(features), None, as_cv2)[0]

    def _records(self, features: Features) -> "npt.NDArray[Any]":
        return to_cv_records(features, self._settings["scales"], self._settings["sigma"])

    def _result(
        self, records: "npt.NDArray[Any]", descriptors: "Optional[npt.NDArray[Any]]", as_cv2: Optional[bool]
    ) -> Tuple[CvKeypoints, "Optional[npt.NDArray[Any]]"]:
        if not (self._as_cv2 if as_cv2 is None else as_cv2):
            return records, descriptors
        return to_cv2(records), descriptors if len(records) > 0 else None

    # ---- parameters

    def _set(
        self, nfeatures: Optional[int] = None, contrastThreshold: Optional[float] = None, **changes: Any
    ) -> None:
        """Changes parameters, either all or none. An nfeatures or a contrastThreshold below 0 counts as 0, as in OpenCV."""
        nfeatures = self._nfeatures if nfeatures is None else nfeatures
        contrast = self._contrast if contrastThreshold is None else contrastThreshold
        derived = {"max_features": max(nfeatures, 0), "contrast": 0.0 if contrast < 0 else contrast}
        settings = {**self._settings, **derived, **changes}
        try:
            self._extractor = Extractor(**settings)
        except Error as error:
            raise names_as_cv2(error, _NAMES) from error
        self._settings, self._nfeatures, self._contrast = settings, nfeatures, contrast

    def clear(self) -> None:
        """Does nothing, as OpenCV's, because the parameters are the only state."""

    def save(self, filename: "Union[str, os.PathLike[str]]") -> None:
        """Writes to the file ``filename`` as ``write`` does. OpenCV's own function fails, because it refuses the name of
        the class as a key."""
        self.write(filename)

    @raises_like_cv2
    def write(self, target: Any, name: Optional[str] = None) -> None:
        """Writes the parameters as ``cv2.SIFT.write`` does, so that each can read the files of the other. Needs cv2.

        Args:
            target: a file's name, whose ending (.yml, .yaml, .xml, .json) determines the format; or an open
                ``cv2.FileStorage``, which gets the parameters as a map called ``name``.
        """
        write_parameters(self._parameters(), target, name)

    @raises_like_cv2
    def read(self, source: Any) -> None:
        """Reads parameters that ``write`` or ``cv2.SIFT.write`` wrote; missing parameters stay unchanged. Needs cv2.

        Args:
            source: a file's name, or a ``cv2.FileNode``.
        """
        found = read_parameters(self._parameters(), source)
        self._set(
            nfeatures=found["nfeatures"],
            contrastThreshold=found["contrastThreshold"],
            scales=found["nOctaveLayers"],
            edge=found["edgeThreshold"],
            **_settings_of_sigma(found["sigma"]),
            **_settings_of_kind(found["descriptorType"]),
            **({"upsample": "aligned"} if found["enable_precise_upscale"] else {}),
        )

    def _parameters(self) -> Dict[str, Any]:
        """The parameters by OpenCV's names, in the order of its files."""
        return {
            "nfeatures": self.getNFeatures(),
            "nOctaveLayers": self.getNOctaveLayers(),
            "contrastThreshold": self.getContrastThreshold(),
            "edgeThreshold": self.getEdgeThreshold(),
            "sigma": self.getSigma(),
            "descriptorType": self.descriptorType(),
            "enable_precise_upscale": int("upsample" in self._settings),
        }

    def getNFeatures(self) -> int:
        """Number of strongest features that are returned; 0 or less: all."""
        return self._nfeatures

    @raises_like_cv2
    def setNFeatures(self, maxFeatures: int) -> None:
        """Changes ``nfeatures`` to ``maxFeatures``."""
        self._set(nfeatures=whole(maxFeatures, "maxFeatures", 0))

    def getNOctaveLayers(self) -> int:
        """Scales per octave."""
        return int(self._settings["scales"])

    @raises_like_cv2
    def setNOctaveLayers(self, nOctaveLayers: int) -> None:
        """Changes ``nOctaveLayers``."""
        self._set(scales=whole(nOctaveLayers, "nOctaveLayers", 3))

    def getContrastThreshold(self) -> float:
        """Minimum contrast of a keypoint, times nOctaveLayers."""
        return float(self._contrast)

    @raises_like_cv2
    def setContrastThreshold(self, contrastThreshold: float) -> None:
        """Changes ``contrastThreshold``."""
        self._set(contrastThreshold=real(contrastThreshold, "contrastThreshold", 0.04))

    def getEdgeThreshold(self) -> float:
        """Maximum ratio of principal curvatures."""
        return float(self._settings["edge"])

    @raises_like_cv2
    def setEdgeThreshold(self, edgeThreshold: float) -> None:
        """Changes ``edgeThreshold``."""
        self._set(edge=real(edgeThreshold, "edgeThreshold", 10))

    def getSigma(self) -> float:
        """Blur of an octave's first level."""
        return float(self._settings["sigma"])

    @raises_like_cv2
    def setSigma(self, sigma: float) -> None:
        """Changes ``sigma``."""
        self._set(**_settings_of_sigma(real(sigma, "sigma", 1.6)))

    def descriptorSize(self) -> int:
        """Number of entries of a descriptor."""
        return DESCRIPTOR_LENGTH

    def descriptorType(self) -> int:
        """5 (CV_32F) or 0 (CV_8U)."""
        return CV_8U if self._settings["descriptor"] == "u8" else CV_32F

    def defaultNorm(self) -> int:
        """4, which is ``cv2.NORM_L2``: the norm to use in a matcher."""
        return _NORM_L2

    def getDefaultName(self) -> str:
        """As OpenCV's."""
        return NAME

    def empty(self) -> bool:
        """True, as OpenCV's function returns for every detector."""
        return True


#: As ``cv2.SIFT_create``: returns cv2.KeyPoints unless ``as_cv2=False`` is given; see ``SIFT``.
SIFT_create = SIFT.create
