#define _GNU_SOURCE
#include "script.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 16384 /* a power of two, larger than any script */

static struct slot {
    char *key, *value;
} table[SLOTS];
static char *content;
static struct timespec read_mtime;
static ino_t read_inode;
static int has_misbehaviour;
static struct function *functions;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct slot *find(const char *key) {
    unsigned long hash = 14695981039346656037UL;
    for (const char *c = key; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211UL;
    struct slot *slot = &table[hash & (SLOTS - 1)];
    while (slot->key && strcmp(slot->key, key)) slot = slot == &table[SLOTS - 1] ? table : slot + 1;
    return slot;
}

static void read_script(void) {
    const char *path = getenv("FAKE_NVML_SCRIPT");
    struct stat status;
    if (!path || stat(path, &status)) return;
    if (status.st_ino == read_inode && !memcmp(&status.st_mtim, &read_mtime, sizeof read_mtime)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    char *fresh = calloc(1, (size_t)status.st_size + 1);
    size_t length = fread(fresh, 1, (size_t)status.st_size, file);
    fclose(file);
    fresh[length] = 0;
    read_inode = status.st_ino;
    read_mtime = status.st_mtim;
    memset(table, 0, sizeof table);
    free(content);
    content = fresh;
    has_misbehaviour = 0;
    char *rest;
    for (char *line = strtok_r(content, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        struct slot *slot = find(line);
        slot->key = line;
        slot->value = space + 1;
        has_misbehaviour |= !strncmp(line, "fn.", 3);
    }
}

int enter(struct function *function) {
    static int steady = -1; /* $FAKE_NVML_STEADY: the script never changes, so that its file costs nothing in a measurement */
    if (steady < 0) {
        steady = getenv("FAKE_NVML_STEADY") != NULL;
        read_script();
    }
    if (!steady) read_script();
    if (!function->calls++) {
        function->next = functions;
        functions = function;
    }
    if (!has_misbehaviour) return 0;
    char key[128];
    snprintf(key, sizeof key, "fn.%s", function->name);
    const char *what = find(key)->value;
    if (!what) return 0;
    if (*what == '!') return atoi(what + 1);
    if (!strcmp(what, "crash")) raise(SIGSEGV);
    if (!strncmp(what, "hang:", 5)) sleep((unsigned)atoi(what + 5));
    return 0;
}

/* For tests: how often a function was called. */
unsigned long fake_calls(const char *name) {
    for (struct function *f = functions; f; f = f->next)
        if (!strcmp(f->name, name)) return f->calls;
    return 0;
}

const char *text(const char *key) {
    const char *value = find(key)->value;
    if (value || strncmp(key, "gpu.", 4)) return value;
    const char *rest = strchr(key + 4, '.');
    if (!rest) return NULL;
    char any[160];
    snprintf(any, sizeof any, "gpu.*%s", rest);
    return find(any)->value;
}

int number(const char *key, long double otherwise, long double *value) {
    static double loaded;
    if (!loaded) loaded = now();
    const char *found = text(key);
    *value = otherwise;
    if (!found) return 0;
    if (*found == '!') return atoi(found + 1);
    if (*found == '@') {
        char *plus;
        *value = strtold(found + 1, &plus);
        if (*plus == '+') *value += strtold(plus + 1, NULL) * (long double)(now() - loaded);
    } else {
        *value = strtold(found, NULL);
    }
    return 0;
}
