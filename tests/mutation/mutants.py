"""Faults that a test must notice: code against an attacker, a failing machine or a wrong size, with its effect removed.

A fault has a text that occurs exactly once in its file, the replacement, and the tests of which at least one must fail.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: tuple


def _mutant(name, file, old, new, *tests):
    return Mutant(name, file, old, new, tests)


_ATOMIC = "pipeline/base/atomic_file.c"
_COLMAP = "pipeline/formats/colmap/"
_FLIGHT = "pipeline/frame/in_flight.c"

MUTANTS = (
    # Untrusted databases
    _mutant("colmap_trusts_schema", _COLMAP + "colmap_database.c", "trusted_schema = OFF", "trusted_schema = ON", "unit.colmap_hostile"),
    _mutant("colmap_not_defensive", _COLMAP + "colmap_database.c", "DBCONFIG_DEFENSIVE, 1", "DBCONFIG_DEFENSIVE, 0", "unit.colmap_hostile"),
    _mutant("colmap_columns_of_old_features", _COLMAP + "colmap_images.c", "sqlite3_column_int64(statement, 1) == wanted.columns", "true",
            "unit.colmap_hostile"),
    _mutant("colmap_images_out_of_order", _COLMAP + "colmap_images.c", "image->image_id <= after", "false", "unit.colmap_hostile"),
    _mutant("colmap_any_signature", _COLMAP + "colmap_database.c", "if (memcmp(first, signature, sizeof first) == 0 ||",
            "if (size > 0 || memcmp(first, signature, sizeof first) == 0 ||", "unit.colmap_database"),
    _mutant("colmap_takes_files_of_others_away", _COLMAP + "colmap_database.c",
            "file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK && ", "", "faults.overlaps"),
    _mutant("colmap_works_on_a_removed_file", _COLMAP + "colmap_database.c", "*again = has_moved(made)", "*again = false", "faults.overlaps"),
    _mutant("colmap_any_kind_of_file", _COLMAP + "colmap_database.c", "info.kind != OS_REGULAR", "0", "unit.colmap_database"),
    _mutant("colmap_uri_names", _COLMAP + "colmap_database.c", 'os_is_absolute(path) ? "" : "./"', '""', "unit.colmap_database"),
    _mutant("colmap_lazy_lock", _COLMAP + "colmap_database.c", '"BEGIN IMMEDIATE"', '"BEGIN"', "unit.colmap_transactions"),
    _mutant("colmap_claimed_rows", _COLMAP + "colmap_features.c", "(uint64_t)rows > database->options.max_features", "0", "unit.colmap_content"),
    _mutant("colmap_blob_of_another_size", _COLMAP + "colmap_features.c", "size != rows * columns * (int64_t)unit", "0", "unit.colmap_content"),
    _mutant("colmap_index_of_a_match", _COLMAP + "colmap_matches.c", "(int64_t)index[0] >= limits[0] ||", "", "unit.colmap_pairs"),
    _mutant("colmap_place_not_finite", _COLMAP + "colmap_positions.c", "!isfinite(at[i])", "0", "unit.colmap_positions"),
    # Files that appear complete or not at all
    _mutant("file_not_synced", _ATOMIC, "!os_sync(file->stream)", "0", "unit.atomic_file"),
    _mutant("file_failed_sync_passes", "os/os_files_posix.c", "fsync(fileno(stream)) == 0", "fsync(fileno(stream)) <= 0", "unit.atomic_calls"),
    _mutant("file_group_left_out", "os/os_files_posix.c", "own.st_gid != from->group && fchown", "0 && fchown", "unit.atomic_file"),
    _mutant("file_owner_left_out", "os/os_files_posix.c", "own.st_uid != from->owner && fchown", "0 && fchown", "unit.atomic_calls"),
    _mutant("file_group_refused_passes", "os/os_files_posix.c", "    mode = without_group(mode);", "", "unit.atomic_file"),
    _mutant("file_open_before_fchmod", _ATOMIC, "existing ? OS_NEW_PRIVATE : OS_NEW", "OS_NEW", "unit.atomic_file"),
    _mutant("file_follows_planted_name", "os/os_files_posix.c", "O_CREAT | O_EXCL | O_CLOEXEC", "O_CREAT | O_CLOEXEC", "unit.atomic_calls"),
    _mutant("file_inherited", "os/os_files_posix.c", "O_CREAT | O_EXCL | O_CLOEXEC", "O_CREAT | O_EXCL", "unit.atomic_calls"),
    _mutant("file_write_protection", _ATOMIC, "!os_may(path, OS_MAY_WRITE)", "0", "unit.atomic_file"),
    _mutant("file_replaces_database", _ATOMIC, "if (is_database(path))", "if (0)", "unit.atomic_file"),
    _mutant("file_leaves_temporary", _ATOMIC, "    os_remove(file->temporary);\n    atomic_file_gone", "    atomic_file_gone", "unit.atomic_file"),
    _mutant("file_failed_write_passes", _ATOMIC, "failed_before           ?", "0 ?", "unit.atomic_calls"),
    _mutant("file_folder_not_synced", _ATOMIC, "file->is_staged ? 0 : atomic_file_sync_folder(file)", "0", "unit.atomic_file"),
    _mutant("file_at_work_is_removed", "os/os_files_posix.c", "      os_lock(descriptor))", "      1)", "unit.atomic_file"),
    _mutant("signal_leaves_temporary", "pipeline/cli/common/cli_output.c", "os_remove(listed_files[i].path)", "(void)0", "unit.atomic_file"),
    # Threads, signals, processes
    _mutant("workers_take_signals", "cpu/schedule/threads.c", "!os_signals_block(&saved)", "pthread_sigmask(SIG_SETMASK, NULL, &saved.signals)",
            "unit.threads"),
    _mutant("workers_in_flight_take_signals", _FLIGHT,
            "!os_signals_block(&saved)", "pthread_sigmask(SIG_SETMASK, NULL, &saved.signals) != 0",
            "unit.thread_signals"),
    _mutant("pairs_take_signals", "pipeline/matching/pairs/pairs.c", "!os_signals_block(&saved)",
            "pthread_sigmask(SIG_SETMASK, NULL, &saved.signals) != 0", "unit.thread_signals"),
    _mutant("workers_block_faults", "os/os_threads_posix.c", "sigdelset(&blocked, faults[i]);", "(void)faults[i];", "unit.threads"),
    _mutant("mask_not_given_back", "cpu/schedule/threads.c", "  os_signals_restore(&saved);", "", "unit.threads"),
    _mutant("workers_float_environment", "cpu/schedule/threads.c", "float_environment_enter(&saved);", "fegetenv(&saved.saved);", "unit.threads"),
    _mutant("float_environment_not_entered", "cpu/schedule/float_environment.h", "  fesetenv(FE_DFL_ENV);", "", "api.rounding_modes"),
    _mutant("float_environment_not_left", "cpu/schedule/float_environment.h", "{ fesetenv(&e->saved); }", "{ (void)e; }", "api.contexts"),
    _mutant("match_float_environment", "pipeline/matching/match.c", "hs_matches *matches) {\n  FLOAT_ENVIRONMENT_OF_LIBRARY;",
            "hs_matches *matches) {", "api.rounding_modes", "api.float_environment"),
    _mutant("forked_child_waits", "pipeline/context/engine.c", "if (c->process == os_process_id()) {", "if (1) {", "api.in_flight_ends"),
    _mutant("forked_child_waits_for_workers", _FLIGHT, "if (c->process == os_process_id()) stop_workers", "if (1) stop_workers", "api.in_flight_ends"),
    # Sizes and limits
    _mutant("product_overflows", "pipeline/base/memory.c", "if (a != 0 && b > (size_t)-1 / a) return false;", "", "unit.memory_message"),
    _mutant("sum_overflows", "pipeline/base/memory.c", "if (b > (size_t)-1 - a) return false;", "", "unit.memory_message"),
    _mutant("stride_below_a_row", "pipeline/context/image_view.c", "if (stride < row || stride % sample", "if (stride % sample", "api.calls"),
    _mutant("misaligned_samples", "pipeline/context/image_view.c", "(uintptr_t)image->data % sample != 0", "0", "api.calls"),
    _mutant("max_pixels_of_frames", "pipeline/context/image_view.c", "if (pixels > limit)", "if (0)", "api.limits"),
    _mutant("max_memory_of_frames", "pipeline/context/context.c", "if (limit > 0 && wanted > limit)", "if (0)", "api.limits"),
    _mutant("max_memory_of_matching", "pipeline/matching/match.c", "if (limit > 0 && bytes > limit)", "if (0)", "api.matching_calls"),
    _mutant("max_pixels_of_files", "pipeline/image_io/decoding.c", "|| width > request->max_pixels / height", "", "unit.image_io"),
    _mutant("jpeg_coefficients", "pipeline/image_io/jpeg/jpeg_reader.c", "if (!jpeg_has_multiple_scans(jpeg)) return 0;", "return 0;",
            "unit.image_jpeg"),
    _mutant("memory_of_the_control_group", "pipeline/base/memory.c", 'take_least(memory, bytes, "this control group");', "(void)memory;",
            "unit.machine_memory"),
    _mutant("jpeg_many_scans", "pipeline/image_io/jpeg/jpeg_reader.c", "decoder->jpeg.input_scan_number > READ_JPEG_MAX_SCANS", "0",
            "unit.image_corpus"),
    _mutant("jpeg_ends_early", "pipeline/image_io/jpeg/jpeg_reader.c", "  if (!complete)\n", "  if (0)\n", "unit.image_jpeg", "unit.image_corpus"),
    _mutant("jpeg_short_for_its_blocks", "pipeline/image_io/jpeg/jpeg_pack.c", "blocks / 4 > coded", "blocks == 0", "unit.jpeg_scan"),
    _mutant("png_short_for_its_size", "pipeline/image_io/read_png.c", "row_bytes / READ_PNG_DEFLATE_RATIO > decoder->request->size / height + 1", "0",
            "unit.image_png"),
    _mutant("png_checksums", "pipeline/image_io/read_png.c", "png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);",
            "png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);", "unit.image_png", "unit.image_corpus"),
    _mutant("pipe_without_writer", "os/os_files_posix.c", "O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY", "O_RDONLY | O_CLOEXEC | O_NOCTTY",
            "unit.image_io"),
    _mutant("npz_memory", "pipeline/formats/format_npz.c", "return source_check_memory(source, bytes);", "return HS_OK;", "unit.formats_broken",
            "api.cli_hostile"),
    _mutant("features_memory", "pipeline/formats/common/feature_file.c",
            "const hs_status status = source_check_memory(source, info.size);", "const hs_status status = HS_OK;",
            "unit.formats_broken"),
    _mutant("npz_checksum", "pipeline/formats/common/zip_archive.c", "crc_zip(0, entry->bytes, entry->size) != found->check", "0",
            "unit.formats_broken"),
    _mutant("npz_expansion", "pipeline/formats/common/zip_archive.c", "found->size / DEFLATE_EXPANSION_MAX > found->packed_size", "0",
            "unit.format_parts"),
    _mutant("npz_entry_limit", "pipeline/formats/common/zip_archive.c", "found.size > most_bytes || ", "", "unit.format_parts", "api.cli_hostile"),
    _mutant("npz_header_limit", "pipeline/formats/common/zip_archive.c", "*held = found.size < capacity ? (size_t)found.size : capacity;",
            "*held = (size_t)found.size;", "unit.format_parts", "unit.formats_broken"),
    _mutant("bin_checksum", "pipeline/formats/format_bin.c", "bin_check_of(source) != header->check", "0", "unit.formats_broken"),
    _mutant("claimed_features", "pipeline/formats/common/feature_file.c", "if (count > source->max_features) {", "if (0) {", "unit.formats_broken"),
    _mutant("text_byte_limit", "pipeline/formats/common/feature_file.c", "info.size > content_most(source) || ", "", "unit.formats_broken"),
    _mutant("features_of_a_pipe", "pipeline/formats/common/feature_file.c", "if (info.kind != OS_REGULAR)", "if (0)", "unit.formats_broken"),
    _mutant("json_depth", "pipeline/formats/common/json_text.c", "JSON_DEPTH_MAX = 32", "JSON_DEPTH_MAX = 1 << 30", "unit.formats_broken"),
    _mutant("number_not_finite", "pipeline/formats/common/text_cursor.c", "&& isfinite(*value)", "", "unit.number_text"),
    _mutant("match_file_index", "pipeline/cli/common/match_file.c", "{(double)in->count_a, (double)in->count_b}", "{4294967296.0, 4294967296.0}",
            "unit.match_files"),
    # Geometry, matching
    _mutant("huge_coordinates", "pipeline/matching/geometry/verify.c", "COORDINATE_MAX 1.0e6", "COORDINATE_MAX 1.0e30", "unit.verification"),
    _mutant("flat_triangles_in_a_sample", "pipeline/matching/geometry/models.c", "if (!(areas[i] * areas[i] > height * height * longest)) return false;",
            "", "unit.geometry_solvers"),
    _mutant("too_many_matches", "pipeline/matching/geometry/verify.c", "if (count <= GEOMETRY_MATCHES_MAX) return HS_OK;", "if (true) return HS_OK;", "unit.verification_calls"),
    _mutant("distance_at_its_limit", "stages/match.h", "nearest <= limits->distance_squared", "nearest < limits->distance_squared",
            "api.matching_calls"),
    _mutant("number_of_neighbours", "pipeline/matching/neighbours.c", "if (k < 1 || k > HS_NEIGHBOURS_MAX)", "if (k < 1)", "api.neighbours"),
    # Structs of later headers
    _mutant("unknown_fields", "pipeline/base/adopt.c", "if (bytes[i] == 0) continue;", "continue;", "unit.adopt"),
    _mutant("struct_size_not_set", "pipeline/base/adopt.c", "size >= kind.least && size <= STRUCT_BYTES_MAX", "size <= STRUCT_BYTES_MAX", "unit.adopt"),
    # The command
    _mutant("control_characters", "pipeline/base/text.c", "      *c = '?';", "", "unit.memory_message"),
    _mutant("journal_checksum", "pipeline/cli/batch/batch_rows.c", "check == crc_zip(0, text, row->check_at)", "true", "api.batch_resume"),
    _mutant("journal_lock", "pipeline/cli/batch/batch_manifest.c", "errno == EAGAIN) {", "errno == 0) {", "api.batch_resume"),
    _mutant("manifest_of_somebody_else", "pipeline/cli/batch/batch_manifest.c", "if (is_own(descriptor)) return CLI_DONE;", "return CLI_DONE;",
            "api.batch"),
    _mutant("staging_outlives_the_lock", "pipeline/cli/cmd_batch.c", "batch_store_end(&job->store);", "", "faults.overlaps"),
    _mutant("staging_link", "os/os_files_posix.c", "O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC", "O_DIRECTORY | O_CLOEXEC", "api.batch"),
    _mutant("staging_of_another_user", "pipeline/cli/batch/batch_store.c", "(!is_new && !os_is_own(&info))", "0", "api.batch"),
    _mutant("staging_with_foreign_files", "pipeline/cli/batch/batch_store.c", "} else if (foreign[0] != '\\0') {", "} else if (0) {", "api.batch"),
    _mutant("staging_removes_all", "pipeline/cli/batch/batch_store.c", "if (is_own_name(name)) (void)os_folder_remove", "(void)os_folder_remove", "api.batch_resume"),
    _mutant("output_outside_its_folder", "pipeline/cli/batch/batch_list.c", "if (length == 2 && part[0] == '.' && part[1] == '.') {", "if (0) {",
            "unit.batch", "api.batch"),
)
