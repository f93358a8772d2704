/* The binary interface of libdcgm 2, 3 and 4, as its public headers describe it (dcgm_structs.h, dcgm_fields.h, dcgm_agent.h): only what is
 * used here, written anew from those facts. DCGM_MAJOR chooses the version.
 */
#ifndef FAKE_DCGM_ABI_H
#define FAKE_DCGM_ABI_H

#include <stdint.h>

#ifndef DCGM_MAJOR
#error "say -DDCGM_MAJOR=2, 3 or 4"
#endif

typedef uintptr_t dcgmHandle_t;
typedef uintptr_t dcgmGpuGrp_t;
typedef uintptr_t dcgmFieldGrp_t;
typedef int dcgmReturn_t; /* an enum with negative values: int */

#define DCGM_STRUCT_VERSION(type, number) ((unsigned int)(sizeof(type) | ((unsigned long)(number) << 24U)))

enum {
    DCGM_ST_OK = 0, DCGM_ST_BADPARAM = -1, DCGM_ST_GENERIC_ERROR = -3, DCGM_ST_NOT_SUPPORTED = -6, DCGM_ST_UNINITIALIZED = -10, DCGM_ST_VER_MISMATCH = -12,
    DCGM_ST_UNKNOWN_FIELD = -13, DCGM_ST_NO_DATA = -14, DCGM_ST_NOT_WATCHED = -16, DCGM_ST_GPU_IS_LOST = -18,
    DCGM_ST_CONNECTION_NOT_VALID = -21, DCGM_ST_GROUP_INCOMPATIBLE = -23, DCGM_ST_MAX_LIMIT = -24, DCGM_ST_PROFILING_NOT_SUPPORTED = -36,
    DCGM_ST_PROFILING_MULTI_PASS = -38
};

enum { DCGM_FE_NONE = 0, DCGM_FE_GPU = 1, DCGM_FE_GPU_I = 4, DCGM_FE_GPU_CI = 5 };

#define DCGM_INT32_BLANK 0x7ffffff0
#define DCGM_INT64_BLANK 0x7ffffffffffffff0LL
#define DCGM_FP64_BLANK 140737488355328.0

#define DCGM_MAX_NUM_DEVICES 32
#define DCGM_MAX_STR_LENGTH 256
#define DCGM_MAX_BLOB_LENGTH 4096
#define DCGM_MAX_NUM_GROUPS 64
#define DCGM_GROUP_MAX_ENTITIES 64
#define DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP 128
#define DCGM_MAX_HIERARCHY_INFO (DCGM_MAX_NUM_DEVICES * 14)

typedef struct {
    unsigned int version;
    char rawBuildInfoString[DCGM_MAX_STR_LENGTH * 2];
} dcgmVersionInfo_v2;

typedef struct {
    unsigned int version;
    unsigned int persistAfterDisconnect;
    unsigned int timeoutMs;
    unsigned int addressIsUnixSocket;
} dcgmConnectV2Params_v2;

typedef struct {
    unsigned int entityGroupId; /* an enum */
    unsigned int entityId;
} dcgmGroupEntityPair_t;

typedef union {
    int64_t i64;
    double dbl;
    char str[DCGM_MAX_STR_LENGTH];
    char blob[DCGM_MAX_BLOB_LENGTH];
} dcgmValue_t;

typedef struct {
    unsigned int version;
    unsigned short fieldId;
    unsigned short fieldType;
    int status;
    int64_t ts;
    dcgmValue_t value;
} dcgmFieldValue_v1;

typedef struct {
    unsigned int version;
    unsigned int entityGroupId;
    unsigned int entityId;
    unsigned short fieldId;
    unsigned short fieldType;
    int status;
    unsigned int unused;
    int64_t ts;
    dcgmValue_t value;
} dcgmFieldValue_v2;

typedef struct {
    char shortName[10];
    char unit[4];
    short width;
} dcgm_field_output_format_t;

typedef struct {
    unsigned short fieldId;
    char fieldType;
    unsigned char size;
    char tag[48];
    int scope;
    int nvmlFieldId;
#if DCGM_MAJOR >= 3
    unsigned int entityLevel; /* an enum */
#endif
    dcgm_field_output_format_t *valueFormat;
} dcgm_field_meta_t;

typedef struct {
    char gpuUuid[128];
    unsigned int nvmlGpuIndex;
    unsigned int nvmlInstanceId;
    unsigned int nvmlComputeInstanceId;
    unsigned int nvmlMigProfileId;
    unsigned int nvmlProfileSlices;
} dcgmMigEntityInfo_t;

typedef struct {
    dcgmGroupEntityPair_t entity;
    dcgmGroupEntityPair_t parent;
    dcgmMigEntityInfo_t info;
} dcgmMigHierarchyInfo_v2;

typedef struct {
    unsigned int version;
    unsigned int count;
    dcgmMigHierarchyInfo_v2 entityList[DCGM_MAX_HIERARCHY_INFO];
} dcgmMigHierarchy_v2;

#define DCGM_PROF_MAX_NUM_GROUPS 10

#if DCGM_MAJOR == 2
#define DCGM_PROF_MAX_FIELDS 8
#else
#define DCGM_PROF_MAX_FIELDS 64
#endif

typedef struct {
    unsigned short majorId;
    unsigned short minorId;
    unsigned int numFieldIds;
    unsigned short fieldIds[DCGM_PROF_MAX_FIELDS];
} dcgmProfMetricGroupInfo_t;

#if DCGM_MAJOR == 2
typedef struct {
    unsigned int version;
    unsigned int unused;
    dcgmGpuGrp_t groupId;
    unsigned int numMetricGroups;
    unsigned int unused1;
    dcgmProfMetricGroupInfo_t metricGroups[DCGM_PROF_MAX_NUM_GROUPS];
} dcgmProfGetMetricGroups_t;
#define DCGM_PROF_GROUPS_NUMBER 2
#else
typedef struct {
    unsigned int version;
    unsigned int unused;
    unsigned int gpuId;
    unsigned int numMetricGroups;
    dcgmProfMetricGroupInfo_t metricGroups[DCGM_PROF_MAX_NUM_GROUPS];
} dcgmProfGetMetricGroups_t;
#define DCGM_PROF_GROUPS_NUMBER 3
#endif

#if DCGM_MAJOR == 2
typedef struct {
    unsigned int version;
    dcgmGpuGrp_t groupId;
    unsigned int numFieldIds;
    unsigned short fieldIds[16];
    long long updateFreq;
    double maxKeepAge;
    int maxKeepSamples;
    unsigned int flags;
} dcgmProfWatchFields_v1;

typedef struct {
    unsigned int version;
    dcgmGpuGrp_t groupId;
    unsigned int flags;
} dcgmProfUnwatchFields_v1;
#endif

/* Values of one entity and field; called as often as it takes. */
typedef int (*dcgmFieldValueEntityEnumeration_f)(
    unsigned int entityGroupId, unsigned int entityId, dcgmFieldValue_v1 *values, int numValues, void *userData);

#endif
