"""The steps from photographs to poses: features and matches in a COLMAP database, by several programs, and COLMAP's mappers."""
import contextlib
import dataclasses
import pathlib
import sqlite3
import subprocess

import numpy as np
import pycolmap

COLMAP_FEATURES = 8192  # maximum per image, COLMAP's default
PEAK_THRESHOLD = 0.02  # COLMAP's 0.02 / 3 per level, in the unit that OpenCV takes


@dataclasses.dataclass
class Settings:
    hartsift: pathlib.Path  # path of the command
    device: str = "cpu"  # or "cuda"
    threads: int = 0  # 0: all cores
    affine_dsp: bool = False
    guided: bool = False
    extract_options: tuple = ()  # additional options of hartsift
    match_options: tuple = ()


def run_hartsift(settings, *arguments):
    command = [settings.hartsift, *arguments, "--device", settings.device, "--threads", settings.threads, "-q"]
    finished = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        raise RuntimeError(f"hartsift {arguments[0]}: {finished.stderr[-1000:]}")


def camera_mode(scene):
    return pycolmap.CameraMode.SINGLE if scene.one_camera else pycolmap.CameraMode.PER_IMAGE


def device_of(settings):
    return pycolmap.Device.cuda if settings.device.startswith("cuda") else pycolmap.Device.cpu


# ------------------------------------------------------------------ features

def extract_hartsift(settings, scene, database):
    options = ["--affine", "--dsp"] if settings.affine_dsp else []
    options += ["--single-camera"] if scene.one_camera else []
    run_hartsift(settings, "extract", *(scene.folder / name for name in scene.images), "-o", database, "--profile", "colmap",
                 *options, *settings.extract_options)


def extract_colmap(settings, scene, database):
    options = pycolmap.FeatureExtractionOptions()
    options.num_threads = settings.threads or -1
    options.sift.estimate_affine_shape = options.sift.domain_size_pooling = settings.affine_dsp
    # COLMAP's GPU extractor has no affine shape and no pooling.
    options.use_gpu = settings.device.startswith("cuda") and not settings.affine_dsp
    pycolmap.extract_features(database, scene.folder, image_names=scene.images, camera_mode=camera_mode(scene),
                              extraction_options=options, device=device_of(settings) if options.use_gpu else pycolmap.Device.cpu)


def opencv_features(sift, picture):
    """Returns keypoints as COLMAP stores them (x, y, scale, orientation) and RootSIFT descriptors."""
    points, descriptors = sift.detectAndCompute(picture, None)
    # The centre of the first pixel is (0.5, 0.5) in COLMAP and (0, 0) in OpenCV, whose size is a diameter.
    rows = [(point.pt[0] + 0.5, point.pt[1] + 0.5, point.size / 2, np.radians(point.angle)) for point in points]
    root = np.sqrt(descriptors / np.maximum(descriptors.sum(1, keepdims=True), 1e-12))
    return np.array(rows, np.float32), np.minimum(np.round(512 * root), 255).astype(np.uint8)


def extract_opencv(settings, scene, database):
    import cv2

    cv2.setNumThreads(settings.threads or -1)
    sift = cv2.SIFT_create(nfeatures=COLMAP_FEATURES, contrastThreshold=PEAK_THRESHOLD)
    pycolmap.Database.open(str(database)).close()  # import_images opens only existing files
    pycolmap.import_images(database, scene.folder, camera_mode=camera_mode(scene), image_names=scene.images)
    with contextlib.closing(pycolmap.Database.open(str(database))) as opened:
        for image in opened.read_all_images():
            picture = cv2.imread(str(scene.folder / image.name), cv2.IMREAD_GRAYSCALE)
            keypoints, descriptors = opencv_features(sift, picture)
            opened.write_keypoints(image.image_id, keypoints)
            opened.write_descriptors(image.image_id, pycolmap.FeatureDescriptors(pycolmap.FeatureExtractorType.SIFT, descriptors))


def tell_focal_length(database, scene):
    """Stores the true focal lengths as priors of the cameras."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for camera, name in connection.execute("SELECT camera_id, name FROM images").fetchall():
            matrix = scene.cameras[name].matrix
            parameters = np.array([matrix[0, 0], matrix[0, 2], matrix[1, 2], 0], "<f8").tobytes()
            connection.execute("UPDATE cameras SET model = 2, params = ?, prior_focal_length = 1 WHERE camera_id = ?",
                               [parameters, camera])
        connection.commit()


# ------------------------------------------------------------------ matches

def match_hartsift(settings, database, _seed):
    run_hartsift(settings, "match", "--database", database, *(["--guided"] if settings.guided else []), *settings.match_options)


def match_colmap(settings, database, seed):
    options = pycolmap.FeatureMatchingOptions()
    options.num_threads, options.guided_matching = settings.threads or -1, settings.guided
    options.use_gpu = settings.device.startswith("cuda")
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = seed
    pycolmap.match_exhaustive(database, matching_options=options, verification_options=verification, device=device_of(settings))


EXTRACTORS = {"hartsift": extract_hartsift, "colmap": extract_colmap, "opencv": extract_opencv}
MATCHERS = {"hartsift": match_hartsift, "colmap": match_colmap}


# ------------------------------------------------------------------ poses

def map_incremental(settings, database, scene, folder, seed, focal_known):
    options = pycolmap.IncrementalPipelineOptions()
    options.num_threads, options.random_seed = settings.threads or -1, seed
    options.ba_refine_focal_length = not focal_known
    return pycolmap.incremental_mapping(database, scene.folder, folder, options)


def map_global(settings, database, scene, folder, seed, focal_known):
    options = pycolmap.GlobalPipelineOptions()
    options.num_threads, options.random_seed = settings.threads or -1, seed
    options.mapper.bundle_adjustment.refine_focal_length = not focal_known
    return pycolmap.global_mapping(database, scene.folder, folder, options)


MAPPERS = {"incremental": map_incremental}
if hasattr(pycolmap, "global_mapping"):
    MAPPERS["global"] = map_global
