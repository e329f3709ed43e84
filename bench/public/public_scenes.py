"""Reconstructs scenes with true cameras from the matches of a method, by COLMAP's verification and incremental mapper."""
import contextlib
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pipelines"))
from scene_truth import pose_errors  # noqa: E402


def write_database(path, cameras, shapes, features, matches):
    """Writes images with known cameras, keypoints without descriptors, and matches. Returns the list of pairs as text."""
    import pycolmap  # pylint: disable=import-outside-toplevel

    numbers = {}
    with contextlib.closing(pycolmap.Database.open(str(path))) as database:
        for name, (matrix, _) in cameras.items():
            height, width = shapes[name][:2]
            camera = pycolmap.Camera(model="PINHOLE", width=width, height=height,
                                     params=[matrix[0, 0], matrix[1, 1], matrix[0, 2] + 0.5, matrix[1, 2] + 0.5])
            camera.has_prior_focal_length = True
            camera.camera_id = database.write_camera(camera)
            rig = pycolmap.Rig()
            rig.add_ref_sensor(camera.sensor_id)
            rig.rig_id = database.write_rig(rig)
            image = pycolmap.Image(name=name, camera_id=camera.camera_id)
            image.image_id = numbers[name] = database.write_image(image)
            frame = pycolmap.Frame()
            frame.rig_id = rig.rig_id
            frame.add_data_id(image.data_id)
            database.write_frame(frame)
            database.write_keypoints(numbers[name], (features[name].points + 0.5).astype(np.float32))
        for (first, second), found in matches.items():
            database.write_matches(numbers[first], numbers[second], found.astype(np.uint32))
    return "".join(f"{first} {second}\n" for first, second in matches)


def reconstruct(cameras, shapes, features, matches):
    """Returns the measures of the largest model. Cameras stay as they are known."""
    import pycolmap  # pylint: disable=import-outside-toplevel

    options = pycolmap.IncrementalPipelineOptions()
    options.ba_refine_focal_length = options.ba_refine_principal_point = options.ba_refine_extra_params = False
    options.extract_colors, options.num_threads, options.random_seed = False, 1, 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        (folder / "pairs.txt").write_text(write_database(folder / "scene.db", cameras, shapes, features, matches), encoding="utf-8")
        pycolmap.set_random_seed(0)
        pycolmap.verify_matches(folder / "scene.db", folder / "pairs.txt")
        (folder / "models").mkdir()
        models = pycolmap.incremental_mapping(folder / "scene.db", folder, folder / "models", options)
        if not models:
            return {"images": 0}
        model = max(models.values(), key=lambda one: one.num_reg_images())
        found = {image.name: image.cam_from_world().matrix() for image in model.images.values() if image.has_pose}
        truth = {name: pose for name, (_, pose) in cameras.items()}
        return {"images": len(found), "points": model.num_points3D(), "track": model.compute_mean_track_length(),
                "reprojection_px": model.compute_mean_reprojection_error(), **(pose_errors(found, truth) or {})}
