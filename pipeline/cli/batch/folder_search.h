/*
 * The images in a folder and in all folders below it, and how many other files there are, by ending.
 */
#ifndef HARTSIFT_CLI_BATCH_FOLDER_SEARCH_H
#define HARTSIFT_CLI_BATCH_FOLDER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

enum { FOLDER_ENDING_BYTES = 16, FOLDER_ENDINGS_MOST = 64, FOLDER_TEXT_BYTES = 512 };

/* How many files have an ending, in small letters with its dot; "": none, or one that is too long to be an ending. */
typedef struct folder_ending {
  char text[FOLDER_ENDING_BYTES];
  size_t count;
} folder_ending;

/* What a search found in addition to images. */
typedef struct folder_findings {
  size_t unreadable;  /* folders and entries that could not be read; each was named on standard error */
  size_t passed_over; /* files without an image's ending */
  folder_ending endings[FOLDER_ENDINGS_MOST];
  size_t ending_count;
  size_t repeated;     /* folders that a link leads to and that are searched under another name */
  char *repeated_path; /* the first of them, from malloc; null: none */
  bool has_left_out;   /* the folder `left_out` was met */
} folder_findings;

/* Calls `take` with the path (from malloc, to be taken over) of each file with an image's ending, in no order. Links to
   files and to folders are followed; a folder is searched once, under its name without links if it has one below `folder`,
   else under the first of the links' names. Names that begin with '.' are left out, and so is the folder left_out (null:
   none). False: no memory, or take gave false. */
bool folder_search(const char *folder, const char *left_out, bool (*take)(void *user, char *path), void *user,
                   folder_findings *findings);
void folder_findings_free(folder_findings *findings);

bool folder_has_image_ending(const char *name);

/* ".png, .jpg or .bmp": the endings of images. */
void folder_list_image_endings(char *text, size_t bytes);

/* "5 files were passed over by their endings: 3 .heic, 2 .txt", the most frequent first; "" where there were none. */
void folder_explain_passed_over(const folder_findings *findings, char *text, size_t bytes);

#endif
