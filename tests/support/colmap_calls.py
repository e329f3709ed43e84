"""The calls of COLMAP by published scripts, as recorded."""

# What a script passes to a shell or starts. COLMAP stands for the program, WORK for the folder with photos.
CALLS = {
    # nerfstudio-project/nerfstudio 50e0e3c7, nerfstudio/process_data/colmap_utils.py, run_colmap
    "nerfstudio": """
        COLMAP -h
        COLMAP feature_extractor --database_path WORK/database.db --image_path WORK/photos --ImageReader.single_camera 1
            --ImageReader.camera_model OPENCV --SiftExtraction.use_gpu 1
        COLMAP vocab_tree_matcher --database_path WORK/database.db --SiftMatching.use_gpu 1
            --VocabTreeMatching.vocab_tree_path "WORK/vocab_tree.fbow"
        COLMAP mapper --database_path WORK/database.db --image_path WORK/photos --output_path WORK/sparse
            --Mapper.ba_global_function_tolerance=1e-6
        COLMAP bundle_adjuster --input_path WORK/sparse/0 --output_path WORK/sparse/0 --BundleAdjustment.refine_principal_point 1
        """,
    # graphdeco-inria/gaussian-splatting 019702a8, convert.py with --skip_alignment
    "gaussian-splatting": """
        "COLMAP" feature_extractor --database_path WORK/database.db --image_path WORK/photos --ImageReader.single_camera 1
            --ImageReader.camera_model OPENCV --SiftExtraction.use_gpu 1
        "COLMAP" exhaustive_matcher --database_path WORK/database.db --SiftMatching.use_gpu 1
        "COLMAP" mapper --database_path WORK/database.db --image_path WORK/photos --output_path WORK/sparse
            --Mapper.ba_global_function_tolerance=0.000001
        "COLMAP" image_undistorter --image_path WORK/photos --input_path WORK/sparse/0 --output_path WORK --output_type COLMAP
        """,
    # NVlabs/instant-ngp abe236ee, scripts/colmap2nerf.py, run_colmap
    "instant-ngp": """
        COLMAP feature_extractor --ImageReader.camera_model OPENCV --ImageReader.camera_params ""
            --SiftExtraction.estimate_affine_shape=true --SiftExtraction.domain_size_pooling=true --ImageReader.single_camera 1
            --database_path WORK/database.db --image_path "WORK/photos"
        COLMAP sequential_matcher --SiftMatching.guided_matching=true --database_path WORK/database.db
        COLMAP mapper --database_path WORK/database.db --image_path "WORK/photos" --output_path WORK/sparse
        COLMAP bundle_adjuster --input_path WORK/sparse/0 --output_path WORK/sparse/0 --BundleAdjustment.refine_principal_point 1
        COLMAP model_converter --input_path WORK/sparse/0 --output_path WORK/text --output_type TXT
        """,
    # cre185/InstantSfM fc085662, instantsfm/controllers/feature_handler.py, GenerateDatabase
    "InstantSfM": """
        COLMAP feature_extractor --image_path WORK/photos --database_path WORK/database.db --ImageReader.camera_model SIMPLE_RADIAL
            --ImageReader.single_camera 0 --ImageReader.single_camera_per_folder 0 --SiftExtraction.use_gpu 0
        COLMAP exhaustive_matcher --database_path WORK/database.db --SiftMatching.use_gpu 0
        """,
    # pals-ttic/fastmap dafd1651, README.md
    "FastMap": """
        COLMAP feature_extractor --database_path WORK/database.db --image_path WORK/photos
        COLMAP exhaustive_matcher --database_path WORK/database.db
        """,
}


def calls(script):
    """Returns the command and arguments of each call, as text."""
    text = CALLS[script].replace("COLMAP ", "CALL ").replace('"COLMAP"', "CALL").replace("output_type CALL", "output_type COLMAP")
    return text.split("CALL")[1:]
