/* The functions of libdcgm, on the fake engine. */
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "script.h"

#define API __attribute__((visibility("default")))
#define ENTER(code) do { int done = script_enter(__func__); if (done) return done; if (code) return code; } while (0)
#define SESSION(handle) ENTER(check(handle))

static int is_initialised, is_connected;
static long engine_number;
static uintptr_t handle_now;

static int check(dcgmHandle_t handle) {
    if (!is_initialised)
        return DCGM_ST_UNINITIALIZED;
    const char *engine = script_text("engine");
    int is_same = !engine || (strcmp(engine, "down") && script_number("engine", 0) == engine_number);
    return is_connected && handle == handle_now && is_same ? DCGM_ST_OK : DCGM_ST_CONNECTION_NOT_VALID;
}

static const char *version(const char *word) {
    static char text[300];
    const char *said = script_text(word);
    char otherwise[16];
    snprintf(otherwise, sizeof(otherwise), "%d.%d.1", DCGM_MAJOR, DCGM_MAJOR == 2 ? 4 : 3);
    snprintf(text, sizeof(text), "version:%s;arch:x86_64;buildtype:Release;buildid:1;builddate:2026-01-01", said ? said : otherwise);
    return text;
}

static int put_version(dcgmVersionInfo_v2 *info, const char *word) {
    if (info->version != DCGM_STRUCT_VERSION(dcgmVersionInfo_v2, 2))
        return DCGM_ST_VER_MISMATCH;
    snprintf(info->rawBuildInfoString, sizeof(info->rawBuildInfoString), "%s", version(word));
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmVersionInfo(dcgmVersionInfo_v2 *info) {
    ENTER(0);
    return put_version(info, "version");
}

API dcgmReturn_t dcgmHostengineVersionInfo(dcgmHandle_t handle, dcgmVersionInfo_v2 *info) {
    SESSION(handle);
    return put_version(info, "engineversion");
}

API dcgmReturn_t dcgmInit(void) {
    ENTER(0);
    is_initialised = 1;
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmShutdown(void) {
    ENTER(0);
    script_log("dcgmShutdown");
    is_initialised = is_connected = 0;
    engine_reset();
    return DCGM_ST_OK;
}

static int begin(dcgmHandle_t *handle) {
    if (!is_initialised)
        return DCGM_ST_UNINITIALIZED;
    engine_reset();
    engine_number = script_number("engine", 0);
    is_connected = 1;
    *handle = ++handle_now;
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmStartEmbedded(int mode, dcgmHandle_t *handle) {
    ENTER(0);
    script_log("dcgmStartEmbedded %d", mode);
    return begin(handle);
}

API dcgmReturn_t dcgmStopEmbedded(dcgmHandle_t handle) {
    SESSION(handle);
    is_connected = 0;
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmConnect_v2(const char *address, dcgmConnectV2Params_v2 *parameters, dcgmHandle_t *handle) {
    ENTER(0);
    script_log("dcgmConnect_v2 %s unix=%u timeout=%u", address, parameters->addressIsUnixSocket, parameters->timeoutMs);
    if (parameters->version != DCGM_STRUCT_VERSION(dcgmConnectV2Params_v2, 2))
        return DCGM_ST_VER_MISMATCH;
    const char *engine = script_text("engine");
    if (engine && !strcmp(engine, "down"))
        return DCGM_ST_CONNECTION_NOT_VALID;
    return begin(handle);
}

API dcgmReturn_t dcgmDisconnect(dcgmHandle_t handle) {
    SESSION(handle);
    is_connected = 0;
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmGetAllSupportedDevices(dcgmHandle_t handle, unsigned int *ids, int *count) {
    SESSION(handle);
    *count = 0;
    for (int gpu = 0; gpu < script_gpus(); gpu++)
        if (engine_is_listed(gpu))
            ids[(*count)++] = (unsigned)gpu;
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, int type, const char *name, dcgmGpuGrp_t *group) {
    SESSION(handle);
    return (*group = engine_new_group()) ? DCGM_ST_OK : DCGM_ST_MAX_LIMIT;
}

API dcgmReturn_t dcgmGroupAddEntity(dcgmHandle_t handle, dcgmGpuGrp_t id, unsigned int kind, unsigned int entity) {
    SESSION(handle);
    struct group *group = engine_group(id);
    if (!group)
        return DCGM_ST_BADPARAM;
    if (group->count == DCGM_GROUP_MAX_ENTITIES)
        return DCGM_ST_MAX_LIMIT;
    if (kind == DCGM_FE_GPU && script_has("refuse", (int)entity))
        return DCGM_ST_GPU_IS_LOST;
    group->entities[group->count++] = (dcgmGroupEntityPair_t){kind, entity};
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmGroupDestroy(dcgmHandle_t handle, dcgmGpuGrp_t id) {
    SESSION(handle);
    return engine_remove(id);
}

API dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, unsigned short *ids, const char *name, dcgmFieldGrp_t *out) {
    SESSION(handle);
    if (count < 1 || count > DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP)
        return DCGM_ST_BADPARAM;
    for (int i = 0; i < count; i++)
        if (!engine_field(ids[i]))
            return DCGM_ST_UNKNOWN_FIELD;
    return (*out = engine_new_fields(count, ids)) ? DCGM_ST_OK : DCGM_ST_MAX_LIMIT;
}

API dcgmReturn_t dcgmFieldGroupDestroy(dcgmHandle_t handle, dcgmFieldGrp_t id) {
    SESSION(handle);
    return engine_remove(id);
}

API dcgmReturn_t dcgmWatchFields(
    dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields_id, long long period, double age, int samples) {
    SESSION(handle);
    struct group *group = engine_group(group_id);
    struct field_list *fields = engine_fields(fields_id);
    if (!group || !fields || period <= 0)
        return DCGM_ST_BADPARAM;
    int profiling = 0;
    for (int i = 0; i < fields->count; i++) {
        profiling += engine_is_profiling(fields->ids[i]);
        if (script_has("unwatchable", fields->ids[i]))
            return DCGM_ST_NOT_SUPPORTED;
    }
    script_log("dcgmWatchFields entities=%d fields=%d profiling=%d period=%lld age=%.0f samples=%d first=%d", group->count,
               fields->count, profiling, period, age, samples, fields->ids[0]);
    int code = profiling ? engine_can_profile(group, fields->count, fields->ids) : DCGM_ST_OK;
    return code ? code : engine_watch(group_id, fields_id, period, NULL);
}

API dcgmReturn_t dcgmUnwatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields) {
    SESSION(handle);
    return engine_unwatch(group, fields);
}

API dcgmReturn_t dcgmUpdateAllFields(dcgmHandle_t handle, int wait) {
    SESSION(handle);
    return DCGM_ST_OK;
}

/* What engines before 3.1 can put into one answer; beside each value stand 24 bytes. */
#define MOST_ANSWER 16384

static int answer_size(unsigned int entity_count, const unsigned short *fields, unsigned int field_count) {
    int size = 0;
    for (unsigned j = 0; j < field_count; j++) {
        const dcgm_field_meta_t *meta = engine_field(fields[j]);
        size += 24 + (meta && meta->fieldType == 's' ? DCGM_MAX_STR_LENGTH : 8);
    }
    return size * (int)entity_count;
}

API dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, dcgmGroupEntityPair_t *entities, unsigned int entity_count,
    unsigned short *fields, unsigned int field_count, unsigned int flags, dcgmFieldValue_v2 *values) {
    SESSION(handle);
    if (entity_count < 1 || entity_count > DCGM_GROUP_MAX_ENTITIES || field_count > DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP)
        return DCGM_ST_BADPARAM;
    if (DCGM_MAJOR < 4 && answer_size(entity_count, fields, field_count) > MOST_ANSWER) {
        script_log("too_much %u %u", entity_count, field_count);
        return DCGM_ST_GENERIC_ERROR;
    }
    for (unsigned j = 0; j < field_count; j++)
        if (script_has("odd", fields[j]))
            return DCGM_ST_GENERIC_ERROR;
    long filled = script_number("fills", DCGM_GROUP_MAX_ENTITIES * DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP);
    for (unsigned i = 0; i < entity_count; i++)
        for (unsigned j = 0; j < field_count && filled-- > 0; j++)
            engine_value(&entities[i], fields[j], values++);
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmGetValuesSince_v2(dcgmHandle_t handle, dcgmGpuGrp_t group_id, dcgmFieldGrp_t fields, long long since,
    long long *next, dcgmFieldValueEntityEnumeration_f callback, void *data) {
    SESSION(handle);
    struct group *group = engine_group(group_id);
    const char *line;
    int gpu, code;
    long long at;
    *next = since;
    for (int i = 0; (line = script_line("xid", i)); i++) {
        if (sscanf(line, "%d %lld %d", &gpu, &at, &code) != 3 || at < since || at > script_now())
            continue;
        for (int j = 0; group && j < group->count; j++)
            if (group->entities[j].entityGroupId == DCGM_FE_GPU && (int)group->entities[j].entityId == gpu) {
                dcgmFieldValue_v1 value = {DCGM_STRUCT_VERSION(dcgmFieldValue_v1, 1), 230, 'i', DCGM_ST_OK, at, {code}};
                callback(DCGM_FE_GPU, (unsigned)gpu, &value, 1, data);
                *next = at + 1 > *next ? at + 1 : *next;
            }
    }
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *out) {
    SESSION(handle);
    if (out->version != DCGM_STRUCT_VERSION(dcgmMigHierarchy_v2, 2))
        return DCGM_ST_VER_MISMATCH;
    const char *line;
    unsigned parent, entity, id;
    out->count = 0;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; (line = script_line(kind ? "ci" : "gi", i)); i++)
            if (sscanf(line, "%u %u %u", &parent, &entity, &id) == 3) {
                dcgmMigHierarchyInfo_v2 *entry = &out->entityList[out->count++];
                memset(entry, 0, sizeof(*entry));
                entry->entity = (dcgmGroupEntityPair_t){kind ? DCGM_FE_GPU_CI : DCGM_FE_GPU_I, entity};
                entry->parent = (dcgmGroupEntityPair_t){kind ? DCGM_FE_GPU_I : DCGM_FE_GPU, parent};
                entry->info.nvmlInstanceId = kind ? parent : id;
                entry->info.nvmlComputeInstanceId = kind ? id : ~0U;
            }
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmProfGetSupportedMetricGroups(dcgmHandle_t handle, dcgmProfGetMetricGroups_t *request) {
    SESSION(handle);
    if (request->version != DCGM_STRUCT_VERSION(dcgmProfGetMetricGroups_t, DCGM_PROF_GROUPS_NUMBER))
        return DCGM_ST_VER_MISMATCH;
#if DCGM_MAJOR == 2
    struct group *group = engine_group(request->groupId);
    if (!group || !group->count)
        return DCGM_ST_BADPARAM;
    int found = engine_profiling_groups((int)group->entities[0].entityId, request->metricGroups);
#else
    int found = engine_profiling_groups((int)request->gpuId, request->metricGroups);
#endif
    if (found < 0)
        return found;
    request->numMetricGroups = (unsigned)found;
    return DCGM_ST_OK;
}

#if DCGM_MAJOR == 2
API dcgmReturn_t dcgmProfWatchFields(dcgmHandle_t handle, dcgmProfWatchFields_v1 *request) {
    SESSION(handle);
    struct group *group = engine_group(request->groupId);
    if (request->version != DCGM_STRUCT_VERSION(dcgmProfWatchFields_v1, 1))
        return DCGM_ST_VER_MISMATCH;
    if (!group || request->numFieldIds > 16)
        return DCGM_ST_BADPARAM;
    script_log("dcgmProfWatchFields entities=%d fields=%u period=%lld age=%.0f samples=%d", group->count, request->numFieldIds,
               request->updateFreq, request->maxKeepAge, request->maxKeepSamples);
    struct field_list own = {0, (int)request->numFieldIds, {0}};
    memcpy(own.ids, request->fieldIds, request->numFieldIds * sizeof(own.ids[0]));
    int code = engine_can_profile(group, own.count, own.ids);
    return code ? code : engine_watch(request->groupId, 0, request->updateFreq, &own);
}

API dcgmReturn_t dcgmProfUnwatchFields(dcgmHandle_t handle, dcgmProfUnwatchFields_v1 *request) {
    SESSION(handle);
    if (request->version != DCGM_STRUCT_VERSION(dcgmProfUnwatchFields_v1, 1))
        return DCGM_ST_VER_MISMATCH;
    return engine_unwatch(request->groupId, 0);
}
#endif

API dcgmReturn_t dcgmProfPause(dcgmHandle_t handle) {
    SESSION(handle);
    script_log("dcgmProfPause");
    engine_prof_paused(1);
    return DCGM_ST_OK;
}

API dcgmReturn_t dcgmProfResume(dcgmHandle_t handle) {
    SESSION(handle);
    script_log("dcgmProfResume");
    engine_prof_paused(0);
    return DCGM_ST_OK;
}

API const dcgm_field_meta_t *DcgmFieldGetById(unsigned short number) { return engine_field(number); }

API const dcgm_field_meta_t *DcgmFieldGetByTag(const char *tag) { return engine_field_by_tag(tag); }
