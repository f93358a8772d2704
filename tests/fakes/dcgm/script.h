/* The script that the fake library plays: a text file named by FAKE_DCGM_SCRIPT, read again at every call, so that a test may change it.
 *
 *   now US                      the engine's clock (Unix time, µs); without it the real one
 *   start US                    when series begin
 *   gpus N                      GPUs 0 to N-1
 *   absent G                    a GPU that is not listed
 *   status G CODE               one that is, and whose fields answer so
 *   value ENTITY FIELD VALUE    ENTITY: *, a GPU's number, gi:N, ci:N. The last line that fits wins
 *   series ENTITY FIELD US V..  a value for each so many µs since `start`; the last one stays
 *   age ENTITY FIELD US         how old the value is
 *   busy ENTITY US US RATIO     a load: profiling ratios are its average over the watch's own period
 *   xid GPU US CODE             an error at that time
 *   gi GPU ENTITY ID, ci GI ENTITY ID    instances: the engine's number and the driver's
 *   prof GPU MAJOR:F,F..        what a GPU can profile (several lines); `prof GPU none`
 *   onepass                     fields of two groups with one major cannot be watched at once
 *   together N                  more entities than that cannot be profiled in one group
 *   lock CODE                   watching profiling fields answers so
 *   stuck GPU                   its profiling fields are blank until a pause and resume
 *   fail FUNCTION CODE TIMES    the next so many calls answer so (0: all); `serial N` begins counting anew
 *   refuse G                    a GPU that cannot be put into a group; unwatchable FIELD: watching a list with it fails
 *   hang FUNCTION SECONDS, crash FUNCTION
 *   odd FIELD                   reading a list with it fails
 *   fills N                     a call fills only the first N of its values
 *   engine N | down             another number: the engine was restarted and all handles are void; down: it does not answer
 *   version TEXT, engineversion TEXT
 *
 * A VALUE is a number, a text (each with `!CODE ` in front for one whose status is not OK), or blank, not_found, not_supported, not_permitted, blank32 (the 32-bit kind), nodata (by its status).
 */
#ifndef FAKE_DCGM_SCRIPT_H
#define FAKE_DCGM_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

/* Read the file anew, do what the script has for this function (hang, crash); a code other than 0 is what the call is to answer. */
int script_enter(const char *function);

int64_t script_now(void);
int script_gpus(void);
int script_has(const char *word, int number);          /* a line `word number` */
int script_flag(const char *word);                     /* a line `word` */
long script_number(const char *word, long otherwise);  /* the number after `word` */
const char *script_text(const char *word);             /* the rest of its line, or NULL */

/* The value of a field at a time, "" when the script has none; its age in µs. */
void script_value(const char *entity, int is_gpu, int field, int64_t at, char *out, size_t size);
int64_t script_age(const char *entity, int is_gpu, int field);
/* The average load between two times; negative when the script has none for the entity. */
double script_load(const char *entity, int64_t from, int64_t to);

/* The index-th line that begins with `word`, without it; NULL when there are no more. */
const char *script_line(const char *word, int index);

/* A line for the test: FAKE_DCGM_LOG. */
void script_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
