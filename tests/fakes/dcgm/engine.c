#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

static struct group groups[DCGM_MAX_NUM_GROUPS];
static struct field_list lists[DCGM_MAX_NUM_GROUPS];
static struct watch watches[DCGM_MAX_NUM_GROUPS];
static uintptr_t last_id;
static int prof_is_paused, prof_was_renewed;

#if DCGM_MAJOR >= 3
#define LEVEL DCGM_FE_GPU,
#else
#define LEVEL
#endif
static dcgm_field_output_format_t formats[] = {
#undef FIELD
#define FIELD(number, type, tag, unit, scope, otherwise) {"FAKE", unit, 5},
#include "field_table.h"
};
#undef FIELD
static dcgm_field_meta_t metas[] = {
#define FIELD(number, type, tag, unit, scope, otherwise) {number, type, 8, tag, scope, 0, LEVEL 0},
#include "field_table.h"
};
#undef FIELD
static const char *const defaults[] = {
#define FIELD(number, type, tag, unit, scope, otherwise) otherwise,
#include "field_table.h"
};
#define FIELD_COUNT ((int)(sizeof(metas) / sizeof(metas[0])))

void engine_reset(void) {
    memset(groups, 0, sizeof(groups));
    memset(lists, 0, sizeof(lists));
    memset(watches, 0, sizeof(watches));
    prof_is_paused = prof_was_renewed = 0;
}

uintptr_t engine_new_group(void) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (!groups[i].id) {
            groups[i].count = 0;
            return groups[i].id = ++last_id;
        }
    return 0;
}

struct group *engine_group(uintptr_t id) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (id && groups[i].id == id)
            return &groups[i];
    return NULL;
}

uintptr_t engine_new_fields(int count, const unsigned short *ids) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (!lists[i].id) {
            lists[i].count = count;
            memcpy(lists[i].ids, ids, (size_t)count * sizeof(*ids));
            return lists[i].id = ++last_id;
        }
    return 0;
}

struct field_list *engine_fields(uintptr_t id) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (id && lists[i].id == id)
            return &lists[i];
    return NULL;
}

int engine_watch(uintptr_t group, uintptr_t fields, int64_t period, const struct field_list *own) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (!watches[i].used) {
            watches[i] = (struct watch){1, group, fields, period, script_now(), {0}};
            if (own)
                watches[i].own = *own;
            return DCGM_ST_OK;
        }
    return DCGM_ST_MAX_LIMIT;
}

int engine_unwatch(uintptr_t group, uintptr_t fields) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (watches[i].used && watches[i].group == group && watches[i].fields == fields) {
            watches[i].used = 0;
            return DCGM_ST_OK;
        }
    return DCGM_ST_BADPARAM;
}

int engine_remove(uintptr_t id) {
    struct group *group = engine_group(id);
    struct field_list *fields = engine_fields(id);
    if (group)
        group->id = 0;
    if (fields)
        fields->id = 0;
    return group || fields ? DCGM_ST_OK : DCGM_ST_BADPARAM;
}

static int index_of(int number) {
    for (int i = 0; i < FIELD_COUNT; i++)
        if (metas[i].fieldId == number)
            return i;
    return -1;
}

const dcgm_field_meta_t *engine_field(int number) {
    int i = index_of(number);
    if (i < 0)
        return NULL;
    metas[i].valueFormat = &formats[i];
    return &metas[i];
}

const dcgm_field_meta_t *engine_field_by_tag(const char *tag) {
    for (int i = 0; i < FIELD_COUNT; i++)
        if (!strcmp(metas[i].tag, tag))
            return engine_field(metas[i].fieldId);
    return NULL;
}

int engine_is_profiling(int field) { return field >= 1001 && field < 1100; }

int engine_is_listed(int gpu) {
    return gpu >= 0 && gpu < script_gpus() && !script_has("absent", gpu);
}

void engine_prof_paused(int paused) {
    if (prof_is_paused && !paused)
        prof_was_renewed = 1;
    prof_is_paused = paused;
}

int engine_profiling_groups(int gpu, dcgmProfMetricGroupInfo_t *out) {
    const char *line;
    int found = 0, number, offset, has_lines = 0;
    for (int i = 0; (line = script_line("prof", i)); i++) {
        if (sscanf(line, "%d %n", &number, &offset) != 1 || number != gpu)
            continue;
        has_lines = 1;
        if (!strcmp(line + offset, "none"))
            return DCGM_ST_PROFILING_NOT_SUPPORTED;
        dcgmProfMetricGroupInfo_t *group = &out[found++];
        char *rest;
        group->majorId = (unsigned short)strtol(line + offset, &rest, 10);
        group->minorId = (unsigned short)i;
        group->numFieldIds = 0;
        while (*rest++ && group->numFieldIds < DCGM_PROF_MAX_FIELDS)
            group->fieldIds[group->numFieldIds++] = (unsigned short)strtol(rest, &rest, 10);
    }
    if (has_lines)
        return found;
    /* Two groups that go together, as on large cards. */
    for (int field = 1001; field <= 1012; field++) {
        dcgmProfMetricGroupInfo_t *group = &out[(field - 1001) / 6];
        group->majorId = (unsigned short)((field - 1001) / 6);
        group->fieldIds[(field - 1001) % 6] = (unsigned short)field;
        group->numFieldIds = 6;
    }
    return 2;
}

int engine_can_profile(const struct group *group, int count, const unsigned short *ids) {
    const char *lock = script_text("lock");
    if (lock)
        return atoi(lock);
    if (script_number("together", DCGM_GROUP_MAX_ENTITIES) < group->count)
        return DCGM_ST_GROUP_INCOMPATIBLE;
    for (int member = 0; member < group->count; member++) {
        if (group->entities[member].entityGroupId != DCGM_FE_GPU)
            continue;
        dcgmProfMetricGroupInfo_t all[DCGM_PROF_MAX_NUM_GROUPS] = {0};
        int found = engine_profiling_groups((int)group->entities[member].entityId, all);
        if (found < 0)
            return found;
        for (int i = 0; i < count; i++) {
            int has = 0;
            for (int j = 0; j < found; j++)
                for (unsigned k = 0; k < all[j].numFieldIds; k++)
                    has |= all[j].fieldIds[k] == ids[i];
            if (!has)
                return DCGM_ST_PROFILING_NOT_SUPPORTED;
        }
        if (!script_flag("onepass"))
            continue;
        int used[8] = {0};
        for (int j = 0; j < found; j++) {
            int is_used = 0, more = 0;
            for (int i = 0; i < count; i++)
                for (unsigned k = 0; k < all[j].numFieldIds; k++)
                    if (all[j].fieldIds[k] == ids[i])
                        more = 1;
            is_used = more;
            if (is_used && used[all[j].majorId % 8]++)
                return DCGM_ST_PROFILING_MULTI_PASS;
        }
    }
    return DCGM_ST_OK;
}

static struct watch *watch_of(const dcgmGroupEntityPair_t *entity, int field) {
    for (int i = 0; i < DCGM_MAX_NUM_GROUPS; i++) {
        if (!watches[i].used)
            continue;
        struct group *group = engine_group(watches[i].group);
        struct field_list *fields = watches[i].fields ? engine_fields(watches[i].fields) : &watches[i].own;
        int is_member = 0, has = 0;
        for (int j = 0; group && j < group->count; j++)
            is_member |= !memcmp(&group->entities[j], entity, sizeof(*entity));
        for (int j = 0; fields && j < fields->count; j++)
            has |= fields->ids[j] == field;
        if (is_member && has)
            return &watches[i];
    }
    return NULL;
}

static const struct { const char *word; int beyond; } blank_words[] = {
    {"blank", 0}, {"not_found", 1}, {"not_supported", 2}, {"not_permitted", 3}, {NULL, 0}};
static const char *const blank_texts[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};

static void put_blank(dcgmFieldValue_v2 *out, int beyond) {
    if (out->fieldType == 'd')
        out->value.dbl = DCGM_FP64_BLANK + beyond;
    else if (out->fieldType == 's')
        strcpy(out->value.str, blank_texts[beyond]);
    else
        out->value.i64 = DCGM_INT64_BLANK + beyond;
}

static void put(dcgmFieldValue_v2 *out, const char *text) {
    if (*text == '!') {
        out->status = atoi(text + 1);
        text = strchr(text, ' ') ? strchr(text, ' ') + 1 : "0";
    }
    for (int i = 0; blank_words[i].word; i++)
        if (!strcmp(text, blank_words[i].word)) {
            put_blank(out, blank_words[i].beyond);
            return;
        }
    if (!strcmp(text, "blank32"))
        out->value.i64 = DCGM_INT32_BLANK;
    else if (!strcmp(text, "nodata")) {
        put_blank(out, 0);
        out->status = DCGM_ST_NO_DATA;
    } else if (out->fieldType == 'd')
        out->value.dbl = atof(text);
    else if (out->fieldType == 's')
        snprintf(out->value.str, sizeof(out->value.str), "%s", text);
    else
        out->value.i64 = atoll(text);
}

static void put_default(dcgmFieldValue_v2 *out, int i, unsigned entity) {
    char text[64];
    if (!strcmp(defaults[i], "@uuid"))
        snprintf(text, sizeof(text), "GPU-%08x-0000-0000-0000-000000000000", entity);
    else if (!strcmp(defaults[i], "@pci"))
        snprintf(text, sizeof(text), "00000000:%02X:00.0", entity + 1);
    else if (!strcmp(defaults[i], "@number"))
        snprintf(text, sizeof(text), "%u", entity);
    else
        snprintf(text, sizeof(text), "%s", defaults[i]);
    put(out, text[0] || metas[i].fieldType == 's' ? text : "blank");
}

void engine_value(const dcgmGroupEntityPair_t *entity, int field, dcgmFieldValue_v2 *out) {
    int i = index_of(field);
    char name[32], text[256];
    const char *form = entity->entityGroupId == DCGM_FE_GPU_I ? "gi:%u" : entity->entityGroupId == DCGM_FE_GPU_CI ? "ci:%u" : "%u";
    int is_gpu = entity->entityGroupId == DCGM_FE_GPU, gpu = (int)entity->entityId;
    snprintf(name, sizeof(name), form, entity->entityId);
    out->version = DCGM_STRUCT_VERSION(dcgmFieldValue_v2, 2);
    out->entityGroupId = entity->entityGroupId;
    out->entityId = entity->entityId;
    out->fieldId = (unsigned short)field;
    out->fieldType = i < 0 ? 'i' : (unsigned short)metas[i].fieldType;
    out->status = DCGM_ST_OK;
    if (i >= 0 && metas[i].scope == 0)
        out->entityGroupId = DCGM_FE_NONE, out->entityId = 0;
    struct watch *watch = watch_of(entity, field);
    int64_t now = script_now();
    if (i < 0 || !watch) {
        out->status = i < 0 ? DCGM_ST_UNKNOWN_FIELD : DCGM_ST_NOT_WATCHED;
        put_blank(out, 1);
        return;
    }
    int64_t at = watch->since + (now - watch->since) / watch->period * watch->period;
    out->ts = at - script_age(name, is_gpu, field);
    const char *line;
    int number, code;
    for (int j = 0; is_gpu && (line = script_line("status", j)); j++)
        if (sscanf(line, "%d %d", &number, &code) == 2 && number == gpu) {
            out->status = code;
            put_blank(out, 0);
            return;
        }
    int is_profiling = engine_is_profiling(field);
    if (is_profiling && (prof_is_paused || (is_gpu && script_has("stuck", gpu) && !prof_was_renewed))) {
        put_blank(out, 0);
        return;
    }
    double load = out->fieldType == 'd' && is_profiling ? script_load(name, at - watch->period, at) : -1;
    script_value(name, is_gpu, field, at, text, sizeof(text));
    if (text[0])
        put(out, text);
    else if (load >= 0)
        out->value.dbl = load;
    else
        put_default(out, i, entity->entityId);
}
