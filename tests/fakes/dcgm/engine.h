/* What the fake engine keeps: groups, lists of fields, watches; and the values that it gives. */
#ifndef FAKE_DCGM_ENGINE_H
#define FAKE_DCGM_ENGINE_H

#include "dcgm_abi.h"

struct group { uintptr_t id; int count; dcgmGroupEntityPair_t entities[DCGM_GROUP_MAX_ENTITIES]; };
struct field_list { uintptr_t id; int count; unsigned short ids[DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP]; };
struct watch { int used; uintptr_t group; uintptr_t fields; int64_t period; int64_t since; struct field_list own; };

void engine_reset(void);
uintptr_t engine_new_group(void);  /* 0: no room */
struct group *engine_group(uintptr_t id);
uintptr_t engine_new_fields(int count, const unsigned short *ids);
struct field_list *engine_fields(uintptr_t id);
int engine_watch(uintptr_t group, uintptr_t fields, int64_t period, const struct field_list *own);
int engine_unwatch(uintptr_t group, uintptr_t fields);
int engine_remove(uintptr_t id);

const dcgm_field_meta_t *engine_field(int number);
const dcgm_field_meta_t *engine_field_by_tag(const char *tag);
int engine_is_profiling(int field);
/* Whether these fields can be profiled at once on all members of a group: a return code. */
int engine_can_profile(const struct group *group, int count, const unsigned short *ids);
int engine_profiling_groups(int gpu, dcgmProfMetricGroupInfo_t *out);
int engine_is_listed(int gpu);
void engine_prof_paused(int paused);

void engine_value(const dcgmGroupEntityPair_t *entity, int field, dcgmFieldValue_v2 *out);

#endif
