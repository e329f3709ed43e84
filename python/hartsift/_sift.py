"""OpenCV's SIFT class over the library: the same parameters, calls, keypoints and packed octaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import ArgumentError, ArrayTypeError, FileError
from ._extractor import Extractor
from ._features import KEYPOINT_DTYPE, Features
from ._library import DESCRIPTOR_LENGTH

if TYPE_CHECKING:
    import cv2
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._options import OptionsBesideSigma

CV_8U, CV_32F = 0, 5
_NORM_L2 = 4



class CvKeypoint(np.record):  # type: ignore[misc, unused-ignore]
    """One record of ``CV_KEYPOINT_DTYPE``, read like a cv2.KeyPoint: NumPy's own ``size`` of a record is always 1."""

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

#: One keypoint with the names, units and order of cv2.KeyPoint: place in pixels, size = 2 sigma, angle in degrees,
#: response, packed octave, class_id. orientation holds the angle's radians to the last bit, so that ``compute`` gives
#: the descriptors of ``detectAndCompute`` exactly. Of an array, ``keypoints["size"]`` is the column of diameters;
#: ``keypoints.size`` is NumPy's count of elements.
CV_KEYPOINT_DTYPE = np.dtype((CvKeypoint, _FIELDS))


class _CvRecords(np.recarray):  # type: ignore[type-arg, unused-ignore]
    """A record array whose elements are CvKeypoints; NumPy's own makes them np.record."""

    def __array_finalize__(self, made_from: Any) -> None:
        pass

    def __getitem__(self, index: Any) -> Any:
        part = np.ndarray.__getitem__(self, index)
        return part if isinstance(part, np.void) or part.dtype.names else part.view(np.ndarray)


#: Keypoints in OpenCV's units: a record array of CV_KEYPOINT_DTYPE, or a tuple of cv2.KeyPoint.
CvKeypoints = Union["npt.NDArray[Any]", "Tuple[cv2.KeyPoint, ...]"]


def _degrees(orientation: "npt.NDArray[Any]") -> "npt.NDArray[np.float32]":
    angle = np.rad2deg(orientation.astype(np.float64)).astype(np.float32)
    return np.where(angle >= 360, np.float32(0), angle)


def _pack_octaves(records: "npt.NDArray[Any]", scales: int, sigma: float) -> "npt.NDArray[np.int32]":
    """octave | level << 8 | round((xi + 0.5) 255) << 16; xi, the offset from the level, follows from sigma."""
    octave, level = records["octave"].astype(np.int64), records["level"].astype(np.int64)
    offset = scales * (np.log2(records["sigma"].astype(np.float64) / sigma) - octave) - level
    known = np.abs(offset) < 1
    part = np.where(known, np.clip(np.floor((offset + 0.5) * 255 + 0.5), 0, 255), 128).astype(np.int64)
    packed = (octave & 255) | np.where(level > 0, (level << 8) | (part << 16), 0)
    return packed.astype(np.int32)


def to_cv_records(features: Features, scales: int = 3, sigma: float = 1.6) -> "npt.NDArray[Any]":
    """Features as a record array of ``CV_KEYPOINT_DTYPE``: ``keypoints[i].pt`` works as with cv2.KeyPoint.

    Args:
        features: what to convert.
        scales, sigma: of the extraction; the packed octave holds where between two levels a keypoint lies.
    """
    records = features.records
    result = np.zeros(len(records), CV_KEYPOINT_DTYPE)
    result["pt"] = features.points
    result["size"] = 2 * records["sigma"]
    result["angle"] = _degrees(records["orientation"])
    result["response"] = records["response"]
    result["octave"] = _pack_octaves(records, scales, sigma)
    result["class_id"] = -1
    result["orientation"] = records["orientation"]
    return result.view(_CvRecords)


def _cv2_for_files() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError("files of parameters need the package opencv-python") from error
    return cv2


def to_cv2(keypoints: "Union[Features, npt.NDArray[Any]]") -> "Tuple[cv2.KeyPoint, ...]":
    """Features, or an array of ``CV_KEYPOINT_DTYPE``, as cv2.KeyPoints. Needs the package cv2."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("cv2.KeyPoint needs the package opencv-python; as_cv2=False gives records without") from error

    records = np.asarray(to_cv_records(keypoints) if isinstance(keypoints, Features) else keypoints)
    place = np.moveaxis(records["pt"], -1, 0)
    rest = (records[name] for name in ("size", "angle", "response", "octave", "class_id"))
    # Positional arguments by column: the fastest of the ways that cv2 has, KeyPoint_convert included.
    return tuple(map(cv2.KeyPoint, *(column.tolist() for column in (*place, *rest))))


def _from_cv2(keypoints: Sequence[Any]) -> "npt.NDArray[Any]":
    rows = [(k.pt, k.size, k.angle, k.response, k.octave, k.class_id, np.nan) for k in keypoints]
    return np.array(rows, CV_KEYPOINT_DTYPE)


def _as_cv_records(keypoints: Any) -> "npt.NDArray[Any]":
    """What compute is given, as an array of CV_KEYPOINT_DTYPE; orientation NaN where only the angle is known."""
    if isinstance(keypoints, Features):
        return np.asarray(to_cv_records(keypoints))
    if isinstance(keypoints, np.ndarray):
        names = keypoints.dtype.names or ()
        if not {"pt", "size", "angle", "octave"} <= set(names):
            raise ArrayTypeError("keypoints must be cv2.KeyPoints, Features, or an array of hartsift.CV_KEYPOINT_DTYPE")
        result = np.zeros(keypoints.size, CV_KEYPOINT_DTYPE)
        result["orientation"], result["class_id"] = np.nan, -1
        for name in CV_KEYPOINT_DTYPE.names or ():
            if name in names:
                result[name] = keypoints[name].reshape(result[name].shape)
        return result
    return _from_cv2(keypoints)


def _unpack(keypoints: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """The library's records of keypoints in OpenCV's units."""
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


def _of_bytes(image: Any) -> Any:
    """The image; refuses what cv2.SIFT refuses, where a scale that OpenCV never defined would have to be guessed."""
    dtype = getattr(image, "dtype", "uint8")
    if str(dtype).rpartition(".")[2] != "uint8":
        raise ArrayTypeError(
            f"the image has samples of type {dtype}: like cv2.SIFT this takes uint8 only; hartsift.extract reads others"
        )
    return image


class SIFT:
    """Takes the place of ``cv2.SIFT_create(...)``.

    Keypoints come as a record array of ``CV_KEYPOINT_DTYPE`` (``keypoints[i].pt``, ``keypoints["size"]``), descriptors
    as float32 or uint8 [N, 128]; with ``as_cv2=True``, the default of ``SIFT_create`` and ``SIFT.create``, exactly as
    OpenCV returns them: a tuple of ``cv2.KeyPoint``, and None for the descriptors of no keypoints. As in OpenCV, colour
    is taken as BGR, and arrays of anything but uint8 are refused; ``hartsift.extract`` reads those. The order of
    keypoints is hartsift's, and ``nfeatures`` is exact.

    Args:
        nfeatures: the strongest so many; 0: all.
        nOctaveLayers: scales per octave.
        contrastThreshold: contrast a keypoint needs, times nOctaveLayers.
        edgeThreshold: largest ratio of principal curvatures.
        sigma: blur of an octave's first level.
        descriptorType: 5 (``cv2.CV_32F``, whole numbers in floats) or 0 (``cv2.CV_8U``).
        enable_precise_upscale: double the image on a grid that maps x to 2x; OpenCV's own default moves keypoints by a
            quarter of a pixel.
        as_cv2: return cv2.KeyPoints; each call may say otherwise.
        options: any of ``hartsift.Options`` besides, such as ``device`` and ``threads``; ``profile`` is "opencv".
    """

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
        # OpenCV has a form without descriptorType, where the switch is the sixth argument.
        if isinstance(descriptorType, bool):
            enable_precise_upscale, descriptorType = bool(descriptorType), CV_32F
        if descriptorType not in (CV_8U, CV_32F):
            raise ArgumentError(f"descriptorType is {descriptorType}, expected {CV_32F} (CV_32F) or {CV_8U} (CV_8U)")
        settings: Dict[str, Any] = {
            "profile": "opencv",
            "max_features": max(nfeatures, 0),
            "scales": nOctaveLayers,
            "contrast": contrastThreshold,
            "edge": edgeThreshold,
            "sigma": sigma,
            "input_blur": min(0.5, 0.5 * sigma),
            "descriptor": "u8" if descriptorType == CV_8U else "f32",
        }
        if enable_precise_upscale:
            settings["upsample"] = "aligned"
        settings.update(options)
        self._settings = settings
        self._as_cv2 = as_cv2
        self._extractor = Extractor(**settings)

    @staticmethod
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
        """As ``cv2.SIFT.create``: ``SIFT`` that gives cv2.KeyPoints unless told otherwise."""
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

    def detect(self, image: Any, mask: Any = None, *, as_cv2: Optional[bool] = None) -> Any:
        """Finds keypoints.

        Args:
            image: an image, or a list of images.
            mask: uint8 or bool, zero where keypoints are dropped; a list of masks for a list of images.

        Returns:
            keypoints, or a tuple of them for a list of images.
        """
        if isinstance(image, (list, tuple)):
            masks = [None] * len(image) if mask is None else mask
            return tuple(self.detect(one, its_mask, as_cv2=as_cv2) for one, its_mask in zip(image, masks, strict=True))
        return self._keypoints(self._extractor.detect(_of_bytes(image), mask, channels="bgr"), as_cv2)

    def compute(self, image: Any, keypoints: Any, *, as_cv2: Optional[bool] = None) -> Tuple[Any, Any]:
        """Describes given keypoints.

        A keypoint's octave and level are read from its packed octave, where it has a level; else (keypoints of other
        detectors) those nearest to its size are used. Keypoints that cannot be described are removed.

        Args:
            image: an image, or a list of images.
            keypoints: cv2.KeyPoints, or an array of ``CV_KEYPOINT_DTYPE``; a list of these for a list of images.
            as_cv2: None: cv2.KeyPoints if such were given.

        Returns:
            keypoints and descriptors, or a tuple of each for a list of images.
        """
        if isinstance(image, (list, tuple)):
            done = [self.compute(one, its_own, as_cv2=as_cv2) for one, its_own in zip(image, keypoints, strict=True)]
            return tuple(pair[0] for pair in done), tuple(pair[1] for pair in done)
        if as_cv2 is None and not isinstance(keypoints, (np.ndarray, Features)) and len(keypoints) > 0:
            as_cv2 = True
        given = _as_cv_records(keypoints)
        if np.isnan(given["angle"]).any():
            raise ArgumentError("a keypoint's angle is NaN")
        features, statuses = self._extractor.describe(_of_bytes(image), _unpack(given), channels="bgr")
        kept = statuses == 0
        packed = np.where(given["octave"] >> 8 & 255, given["octave"], self._records(features)["octave"])
        result = given[kept].view(_CvRecords)
        result["octave"] = packed[kept]
        result["orientation"] = features.orientations[kept]
        return self._result(result, None if features.descriptors is None else features.descriptors[kept], as_cv2)

    def detectAndCompute(self, image: Any, mask: Any = None, *, as_cv2: Optional[bool] = None) -> Tuple[Any, Any]:
        """Finds keypoints and describes them.

        Returns:
            keypoints and descriptors [N, 128].
        """
        features = self._extractor.extract(_of_bytes(image), mask, channels="bgr")
        return self._result(self._records(features), features.descriptors, as_cv2)

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

    def _set(self, **changes: Any) -> None:
        settings = {**self._settings, **changes}
        self._extractor = Extractor(**settings)
        self._settings = settings

    def write(self, target: Any, name: Optional[str] = None) -> None:
        """Writes the parameters as ``cv2.SIFT.write`` does, so that either reads what the other wrote. Needs cv2.

        Args:
            target: a file's name, whose ending (.yml, .yaml, .xml, .json) tells the format; or an open
                ``cv2.FileStorage``, which gets them as a map called ``name``.
        """
        cv2 = _cv2_for_files()
        if isinstance(target, (str, os.PathLike)):
            storage = cv2.FileStorage(os.fspath(target), cv2.FILE_STORAGE_WRITE)
            if not storage.isOpened():
                raise FileError(f"{os.fspath(target)}: cannot be written")
            self._write_parameters(storage)
            storage.release()
            return
        if not name:
            raise ArgumentError("name is missing: expected what the map in the FileStorage is to be called")
        target.startWriteStruct(name, cv2.FILE_NODE_MAP)
        self._write_parameters(target)
        target.endWriteStruct()

    def _write_parameters(self, storage: Any) -> None:
        storage.write("name", self.getDefaultName())
        storage.write("nfeatures", self.getNFeatures())
        storage.write("nOctaveLayers", self.getNOctaveLayers())
        storage.write("contrastThreshold", self.getContrastThreshold())
        storage.write("edgeThreshold", self.getEdgeThreshold())
        storage.write("sigma", self.getSigma())
        storage.write("descriptorType", self.descriptorType())
        if "upsample" in self._settings:  # OpenCV has no word for it, and passes it over
            storage.write("enable_precise_upscale", 1)

    def read(self, source: Any) -> None:
        """Reads parameters that ``write`` or ``cv2.SIFT.write`` wrote; those that are missing stay. Needs cv2.

        Args:
            source: a file's name, or a ``cv2.FileNode``.
        """
        cv2 = _cv2_for_files()
        if isinstance(source, (str, os.PathLike)):
            try:
                storage = cv2.FileStorage(os.fspath(source), cv2.FILE_STORAGE_READ)
                root = storage.root() if storage.isOpened() else None
            except (cv2.error, SystemError) as error:  # which of them goes by OpenCV's version
                raise FileError(f"{os.fspath(source)}: is no FileStorage: expected YAML, XML or JSON as write makes it") from error
            if root is None:
                raise FileError(f"{os.fspath(source)}: cannot be read")
            if root.isSeq():
                raise FileError(f"{os.fspath(source)}: is a list, expected parameters with names")
            self._read_parameters(root)
            storage.release()
        else:
            self._read_parameters(source)

    def _read_parameters(self, node: Any) -> None:
        """All at once, or none where one is refused."""
        def number(name: str, default: Any) -> Any:
            child = node.getNode(name)
            if child.empty():
                return default
            if not (child.isInt() or child.isReal()):
                raise ArgumentError(f"{name} is no number in the file")
            value = child.real()
            if isinstance(default, int) and not value.is_integer():
                raise ArgumentError(f"{name} is {value} in the file, expected a whole number")
            return type(default)(value)

        kind = number("descriptorType", self.descriptorType())
        if kind not in (CV_8U, CV_32F):
            raise ArgumentError(f"descriptorType is {kind}, expected {CV_32F} (CV_32F) or {CV_8U} (CV_8U)")
        sigma = number("sigma", self.getSigma())
        changes = dict(
            max_features=max(number("nfeatures", self.getNFeatures()), 0),
            scales=number("nOctaveLayers", self.getNOctaveLayers()),
            contrast=number("contrastThreshold", self.getContrastThreshold()),
            edge=number("edgeThreshold", self.getEdgeThreshold()),
            sigma=sigma,
            input_blur=min(0.5, 0.5 * sigma),
            descriptor="u8" if kind == CV_8U else "f32",
        )
        if number("enable_precise_upscale", 0):
            changes["upsample"] = "aligned"
        self._set(**changes)

    def getNFeatures(self) -> int:
        """The strongest so many; 0: all."""
        return int(self._settings["max_features"])

    def setNFeatures(self, maxFeatures: int) -> None:
        """Changes ``nfeatures``."""
        self._set(max_features=max(maxFeatures, 0))

    def getNOctaveLayers(self) -> int:
        """Scales per octave."""
        return int(self._settings["scales"])

    def setNOctaveLayers(self, nOctaveLayers: int) -> None:
        """Changes ``nOctaveLayers``."""
        self._set(scales=nOctaveLayers)

    def getContrastThreshold(self) -> float:
        """Contrast a keypoint needs, times nOctaveLayers."""
        return float(self._settings["contrast"])

    def setContrastThreshold(self, contrastThreshold: float) -> None:
        """Changes ``contrastThreshold``."""
        self._set(contrast=contrastThreshold)

    def getEdgeThreshold(self) -> float:
        """Largest ratio of principal curvatures."""
        return float(self._settings["edge"])

    def setEdgeThreshold(self, edgeThreshold: float) -> None:
        """Changes ``edgeThreshold``."""
        self._set(edge=edgeThreshold)

    def getSigma(self) -> float:
        """Blur of an octave's first level."""
        return float(self._settings["sigma"])

    def setSigma(self, sigma: float) -> None:
        """Changes ``sigma``."""
        self._set(sigma=sigma, input_blur=min(0.5, 0.5 * sigma))

    def descriptorSize(self) -> int:
        """Entries of a descriptor."""
        return DESCRIPTOR_LENGTH

    def descriptorType(self) -> int:
        """5 (CV_32F) or 0 (CV_8U)."""
        return CV_8U if self._settings["descriptor"] == "u8" else CV_32F

    def defaultNorm(self) -> int:
        """4, ``cv2.NORM_L2``: what to give a matcher."""
        return _NORM_L2

    def getDefaultName(self) -> str:
        """As OpenCV's."""
        return "Feature2D.SIFT"

    def empty(self) -> bool:
        """False: there is always something to compute with."""
        return False


#: As ``cv2.SIFT_create``: cv2.KeyPoints unless ``as_cv2=False`` is said; see ``SIFT``.
SIFT_create = SIFT.create
