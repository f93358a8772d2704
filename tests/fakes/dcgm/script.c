#define _GNU_SOURCE
#include "script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_LINES 4096

static char text[1 << 18];
static char *lines[MOST_LINES];
static int line_count;

static void load(void) {
    line_count = 0;
    const char *path = getenv("FAKE_DCGM_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) && line_count < MOST_LINES)
        if (*line)
            lines[line_count++] = line;
}

const char *script_line(const char *word, int index) {
    size_t length = strlen(word);
    for (int i = 0; i < line_count; i++)
        if (!strncmp(lines[i], word, length) && (lines[i][length] == ' ' || !lines[i][length]) && index-- == 0)
            return lines[i][length] ? lines[i] + length + 1 : "";
    return NULL;
}

const char *script_text(const char *word) { return script_line(word, 0); }

int script_flag(const char *word) { return script_line(word, 0) != NULL; }

long script_number(const char *word, long otherwise) {
    const char *line = script_line(word, 0);
    return line ? atol(line) : otherwise;
}

int script_has(const char *word, int number) {
    const char *line;
    for (int i = 0; (line = script_line(word, i)); i++)
        if (atoi(line) == number)
            return 1;
    return 0;
}

int64_t script_now(void) {
    const char *line = script_line("now", 0);
    if (line)
        return atoll(line);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int script_gpus(void) { return (int)script_number("gpus", 8); }

/* How often each function has failed so far, since the last `serial`. */
static struct { char function[64]; int times; } failures[32];
static long serial = -1;

static int *failures_of(const char *function) {
    if (serial != script_number("serial", 0)) {
        serial = script_number("serial", 0);
        memset(failures, 0, sizeof(failures));
    }
    for (int i = 0; i < 32; i++) {
        if (!failures[i].function[0])
            snprintf(failures[i].function, sizeof(failures[i].function), "%s", function);
        if (!strcmp(failures[i].function, function))
            return &failures[i].times;
    }
    return &failures[31].times;
}

int script_enter(const char *function) {
    load();
    const char *line;
    char name[64];
    int code, times, seconds;
    for (int i = 0; (line = script_line("crash", i)); i++)
        if (!strcmp(line, function))
            *(volatile int *)0 = 1;
    for (int i = 0; (line = script_line("hang", i)); i++)
        if (sscanf(line, "%63s %d", name, &seconds) == 2 && !strcmp(name, function))
            sleep((unsigned)seconds);
    for (int i = 0; (line = script_line("fail", i)); i++)
        if (sscanf(line, "%63s %d %d", name, &code, &times) == 3 && !strcmp(name, function)) {
            int *done = failures_of(function);
            if (times == 0 || (*done)++ < times)
                return code;
        }
    return 0;
}

static int fits(const char *pattern, const char *entity, int is_gpu) {
    return !strcmp(pattern, entity) || (is_gpu && !strcmp(pattern, "*"));
}

void script_value(const char *entity, int is_gpu, int field, int64_t at, char *out, size_t size) {
    char pattern[32], value[256];
    int number, offset;
    long long step;
    const char *line;
    out[0] = '\0';
    for (int i = 0; (line = script_line("value", i)); i++)
        if (sscanf(line, "%31s %d %255[^\n]", pattern, &number, value) == 3 && number == field && fits(pattern, entity, is_gpu))
            snprintf(out, size, "%s", value);
    for (int i = 0; (line = script_line("series", i)); i++) {
        if (sscanf(line, "%31s %d %lld %n", pattern, &number, &step, &offset) != 3 || number != field || !fits(pattern, entity, is_gpu))
            continue;
        const char *start = script_text("start");
        long long index = (at - (start ? atoll(start) : 0)) / step;
        const char *token = line + offset;
        for (; index > 0 && strchr(token, ' '); index--)
            token = strchr(token, ' ') + 1;
        snprintf(out, size, "%.*s", (int)strcspn(token, " "), token);
    }
}

int64_t script_age(const char *entity, int is_gpu, int field) {
    char pattern[32];
    int number;
    long long age, found = 0;
    const char *line;
    for (int i = 0; (line = script_line("age", i)); i++)
        if (sscanf(line, "%31s %d %lld", pattern, &number, &age) == 3 && number == field && fits(pattern, entity, is_gpu))
            found = age;
    return found;
}

double script_load(const char *entity, int64_t from, int64_t to) {
    char pattern[32];
    long long begin, end;
    double ratio, sum = -1;
    const char *line;
    for (int i = 0; (line = script_line("busy", i)); i++)
        if (sscanf(line, "%31s %lld %lld %lf", pattern, &begin, &end, &ratio) == 4 && fits(pattern, entity, 1)) {
            long long first = begin > from ? begin : from, last = end < to ? end : to;
            sum = (sum < 0 ? 0 : sum) + (last > first ? (double)(last - first) * ratio : 0);
        }
    return sum < 0 ? sum : to > from ? sum / (double)(to - from) : 0;
}

void script_log(const char *format, ...) {
    const char *path = getenv("FAKE_DCGM_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}
