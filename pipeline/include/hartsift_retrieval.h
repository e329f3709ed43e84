/*
 * hartsift_retrieval.h - selection of pairs of a collection's images to match; part of hartsift.h.
 *
 * Images have the numbers 0, 1, ... by their position in the caller's lists. There are three choices of pairs:
 * neighbours in the order of names (hs_pair_sequence), neighbours in space (hs_pair_nearby), and images that look
 * alike (hs_retrieval, hs_pair_similar):
 *
 *     hs_retrieval *r;  hs_status st = hs_retrieval_create(&r, NULL);
 *     for some images    st = hs_retrieval_sample(r, &features, 200);
 *     st = hs_retrieval_train(r, ctx);
 *     st = hs_retrieval_describe_all(r, ctx, &collection, vectors);
 *     st = hs_blend_similar(ctx, vectors, count, hs_retrieval_length(r), 3, blended);
 *     st = hs_pair_similar(ctx, blended, count, hs_retrieval_length(r), hs_shortlist_length(20), &candidates);
 *     st = hs_pair_matching(ctx, &collection, candidates.pairs, candidates.count, 20, &pairs);
 *     hs_retrieval_destroy(r);
 *
 * The same features give the same vectors and pairs on every machine, on the CPU and on a GPU, with any number of
 * threads.
 */
#ifndef HARTSIFT_RETRIEVAL_H
#define HARTSIFT_RETRIEVAL_H

#include "hartsift_pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs with first < second, each once, by ascending first, then second. Start with {0}; the library owns the array
   until hs_image_pairs_free, or until the next call that fills the same struct (its memory is reused). After a
   failure count is 0. */
typedef struct hs_image_pairs {
  size_t count;         /* number of pairs */
  hs_image_pair *pairs; /* count entries */
  size_t capacity;      /* number of entries that the array can hold; set by the library */
  const hs_allocator
      /* allocator of the array; null: the C library's. May be set before the first call; must outlive the array */
      *allocator;
  int32_t reserved[8]; /* 0 */
} hs_image_pairs;

/* Frees the array and clears the struct; null and {0} are allowed. */
HS_API void hs_image_pairs_free(hs_image_pairs *pairs);

/* ---- by names and positions */

/* Pairs each image with the `neighbors` images that follow it in the order of names. quadratic 1: also with the images
   1, 2, 4, ..., 2^(neighbors - 1) positions later, which closes loops of a video (COLMAP's sequential matching takes
   only these). Names are compared byte by byte, but runs of digits as numbers, so img2 comes before img10. names: count
   zero-terminated texts. Statuses: HS_ERR_ARGUMENT (null, quadratic neither 0 nor 1), HS_ERR_LIMIT (more than 2^32 - 1
   images), HS_ERR_MEMORY. */
HS_API hs_status hs_pair_sequence(const char *const *names, size_t count, uint32_t neighbors, int32_t quadratic,
                                  hs_image_pairs *pairs);

/* Pairs images that are at most `metres` apart. positions: [count][3] x, y, z in metres of any Cartesian frame; an
   image with a number that is not finite has no position and is in no pair. at_most: number of nearest images that each
   image proposes as partners (at equal distance the lower number first); a pair is taken if either image proposes it.
   0: no limit. The search is exact. Time grows with the number of images times the number of images within `metres`
   along the axis of largest spread. Statuses: HS_ERR_ARGUMENT (null, metres below 0 or not a number), HS_ERR_LIMIT,
   HS_ERR_MEMORY. */
HS_API hs_status hs_pair_nearby(const double *positions, size_t count, double metres, uint32_t at_most,
                                hs_image_pairs *pairs);

/* Converts a GPS position to the Cartesian frame of the earth. latitude, longitude: degrees, north and east above 0.
   altitude: metres above the ellipsoid of WGS 84 (use 0 for unreliable altitudes, such as a camera's). Statuses:
   HS_ERR_ARGUMENT (null, latitude beyond 90 or longitude beyond 360 degrees, a number that is not finite). */
HS_API hs_status hs_earth_place(double latitude, double longitude, double altitude, double position[3]);

/* ---- by similarity */

/* Description of images by vectors, trained with a sample of a collection's descriptors. Each descriptor of an image
   belongs to its nearest centre (k-means). For each centre, a vector has the sum of the residuals of its descriptors,
   projected on the directions of largest spread and scaled to equal spread (VLAD: Jegou, Douze, Schmid, Perez, CVPR
   2010). Each centre's part is scaled to unit length (Arandjelovic, Zisserman, All about VLAD, CVPR 2013); then the
   square root of each number's magnitude is taken and rounded to 8 bits. After training several threads may describe
   with one handle. */
typedef struct hs_retrieval hs_retrieval;

/* Options: size and training of vectors. */
typedef struct hs_retrieval_options {
  size_t struct_size; /* sizeof(hs_retrieval_options), set by hs_retrieval_options_init; fields are only appended */
  /* maximum number of centres; fewer if the sample has less than 8 descriptors for each; 1..4096; default 256 */
  int32_t centres;
  /* number of directions for the residuals at each centre; 1..128, centres * components at most 65536; default 32 */
  int32_t components;
  int32_t rounds;   /* maximum number of rounds of k-means; 1..1000; default 15 */
  int32_t reserved; /* 0 */
  /* allocator of the handle and working memory; must outlive the handle. null: the C library's */
  const hs_allocator *allocator;
} hs_retrieval_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_retrieval_options_init(options) hs_retrieval_options_init_sized((options), sizeof(hs_retrieval_options))
HS_API hs_status hs_retrieval_options_init_sized(hs_retrieval_options *options, size_t struct_size);

/* Creates a handle. options may be null. On failure *retrieval is null. Statuses: HS_ERR_ARGUMENT (null),
   HS_ERR_OPTION, HS_ERR_MEMORY. */
HS_API hs_status hs_retrieval_create(hs_retrieval **retrieval, const hs_retrieval_options *options);

/* Destroys a handle and frees its memory; null is allowed. */
HS_API void hs_retrieval_destroy(hs_retrieval *retrieval);

/* Adds `count` descriptors of an image to the sample, evenly spread over its list (or all, if it has fewer). The order
   of the calls affects the result. A few hundred thousand descriptors from images of the whole collection are enough.
   Statuses: HS_ERR_ARGUMENT (null, descriptors other than HS_DESCRIPTOR_U8, trained already), HS_ERR_LIMIT (2^31
   descriptors), HS_ERR_MEMORY. */
HS_API hs_status hs_retrieval_sample(hs_retrieval *retrieval, const hs_features *features, size_t count);

/* Learns centres and directions from the sample, which is freed. context: its threads or its GPU do the work; null: the
   calling thread. Statuses: HS_ERR_ARGUMENT (null, trained already, a sample of no descriptors), and the statuses of
   hs_find_nearest. */
HS_API hs_status hs_retrieval_train(hs_retrieval *retrieval, hs_context *context);

/* Returns the bytes of a vector: centres * components; 0 for null. */
HS_API size_t hs_retrieval_length(const hs_retrieval *retrieval);

/* Describes an image: vector gets hs_retrieval_length numbers, all 0 for an image without features. Statuses:
   HS_ERR_ARGUMENT (null, not trained, descriptors other than HS_DESCRIPTOR_U8), and the statuses of hs_find_nearest. */
HS_API hs_status hs_retrieval_describe(const hs_retrieval *retrieval, hs_context *context, const hs_features *features,
                                       int8_t *vector);

/* Describes all images of a collection with the context's threads (null: the calling thread; a GPU is not used).
   vectors: [image_count][hs_retrieval_length], the same bytes as from hs_retrieval_describe. collection: as for
   hs_pairs_start, except that `read` is called in any order, once per image, by one thread at a time, which may be the
   caller's; cameras do not matter. Each thread needs the features that it reads, and about 0.6 MB. Fewer threads work,
   at least one, where this and the vectors exceed the context's max_memory_bytes. Blocks. After a failure vectors are
   undefined. Statuses: HS_ERR_ARGUMENT (null, not trained, descriptors other than HS_DESCRIPTOR_U8, an image without
   features if read is null), HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_CANCELLED (hs_set_progress), and the
   status of the first image that cannot be read; hs_last_error says why. */
HS_API hs_status hs_retrieval_describe_all(const hs_retrieval *retrieval, hs_context *context,
                                           const hs_collection *collection, int8_t *vectors);

/* Adds to each image's vector the vectors of the `neighbors` most similar other images, each weighted by the cosine of
   its angle to it. This strengthens the features that images of one object share, so that more overlapping pairs are
   found (Turcot and Lowe 2009; Arandjelovic and Zisserman, CVPR 2012). In measurements 3 neighbors were best. vectors,
   blended: [count][length], not overlapping. A vector of zeros stays unchanged. Time, memory and statuses as
   hs_pair_similar. */
HS_API hs_status hs_blend_similar(hs_context *context, const int8_t *vectors, size_t count, size_t length,
                                  uint32_t neighbors, int8_t *blended);

/* Pairs each image with the `neighbors` other images whose vectors have the smallest angle to its vector (at equal
   angles the lower number first). A pair is taken if either image proposes it; an image whose vector is all 0 is in no
   pair. vectors: [count][length]. The search is exact: the context's threads (null: the calling thread) compare all
   vectors, in blocks. Memory in addition to the pairs: 16 * neighbors + 12 bytes per image. Statuses: HS_ERR_ARGUMENT
   (null, length 0 or above 65536), HS_ERR_OPTION (HARTSIFT_CPU names no level of this machine), HS_ERR_LIMIT,
   HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_CANCELLED (hs_set_progress). */
HS_API hs_status hs_pair_similar(hs_context *context, const int8_t *vectors, size_t count, size_t length,
                                 uint32_t neighbors, hs_image_pairs *pairs);

/* Rounds the vectors of another description of images, such as a network's, to 8 bits for hs_pair_similar: each is
   scaled so that its largest magnitude becomes 127. values, vectors: [count][length]. Statuses: HS_ERR_ARGUMENT (null,
   length 0 or above 65536, a value that is not finite). */
HS_API hs_status hs_round_vectors(const float *values, size_t count, size_t length, int8_t *vectors);

/* ---- by similarity and matches */

/* Returns the number of most similar images among which hs_pair_matching should choose `neighbors`: three times as
   many, at least 60. */
HS_API uint32_t hs_shortlist_length(uint32_t neighbors);

/* Number of features of an image that hs_pair_matching compares. */
enum { HS_SHORTLIST_FEATURES = 512 /* features */ };

/* Chooses from candidate pairs those whose images match best. Of each image the HS_SHORTLIST_FEATURES features with the
   largest scale (the first ones in a list without keypoints) are matched as by hs_match with its defaults. Two images
   with at least ten matches are linked if one is among the five best partners of the other. Images that are linked to
   the same image become candidates too; of more than 64, those with most matches with it. Each image then proposes the
   `neighbors` partners with most matches (at equal numbers the lower image number), and a pair is taken if either image
   proposes it. A pair whose descriptors cannot be compared has no matches. collection: as for hs_pairs_start, which
   matches the pairs within the context's max_memory_bytes. Lists beyond that take at most 16 * max(neighbors, 5) + 252
   bytes per image, and 24 bytes per candidate and per two images linked to one. candidates: `count` pairs, each once,
   not the array of *pairs; the order of hs_pair_similar needs fewest readings. Blocks. Statuses: HS_ERR_ARGUMENT
   (null), HS_ERR_MEMORY, HS_ERR_CANCELLED (hs_set_progress), the statuses of hs_pairs_start and hs_pairs_next, and the
   status of an image that cannot be read; hs_last_error says why. */
HS_API hs_status hs_pair_matching(hs_context *context, const hs_collection *collection, const hs_image_pair *candidates,
                                  size_t count, uint32_t neighbors, hs_image_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
