/* What the library is to say, read from the file that $FAKE_NVML_SCRIPT names: a line `key value`, the last one wins.
 *
 * A value is a number, text, `!CODE` (fail with that code) or `@START+RATE` (START, growing by RATE a second since loading).
 * `fn.NAME` with `!CODE`, `hang:SECONDS` or `crash` is what a call of function NAME does. `all` with `!CODE` is what every call on a device does. */
#pragma once

/* One for each function; counts its calls. */
struct function {
    const char *name;
    unsigned long calls;
    struct function *next;
};

/* To be called first by each function: reads the script anew when it changed, and misbehaves as told. The code to return, 0 to go on. */
int enter(struct function *function);

/* The text of a key, or NULL. A key of one device (`gpu.3.power`) is looked for under `gpu.*.power` too. */
const char *text(const char *key);

/* The number of a key, or `otherwise` when the script has none. Returns the code of a `!CODE`, else 0. */
int number(const char *key, long double otherwise, long double *value);

#define ENTER()                                         \
    static struct function self;                        \
    if (!self.name) self.name = __func__;               \
    do {                                                \
        int code = enter(&self);                        \
        if (code) return code;                          \
    } while (0)
