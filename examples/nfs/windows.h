/*
 * Response times of a workload, told to Étude while it runs: a line of JSON a window, appended to the file that
 * $ETUDE_WINDOWS names, with a histogram of each kind of request. docs/reference/formats.md has the form.
 *
 * A histogram is an HdrHistogram of two digits: a value below 256 ns has a class of its own, and from there on each
 * power of two has 128. It is written in version 2 of its encoding, whose "compressed" data are stored as they are:
 * zlib's format allows that, and so no library is needed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#define WINDOWS_KINDS 8
#define WINDOWS_POWERS 32 /* above 256 ns: up to 9 minutes; what is longer is in the last class */
#define WINDOWS_CLASSES (256 + 128 * WINDOWS_POWERS)
#define WINDOWS_PACKED (40 + 9 * WINDOWS_CLASSES)

struct windows {
    int file, kinds;
    const char *const *names;
    uint64_t length_ns, start_ns;
    uint64_t counts[WINDOWS_KINDS][WINDOWS_CLASSES];
    bool broken;
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void windows_open(struct windows *windows, const char *const *names, int kinds, uint64_t length_s) {
    const char *path = getenv("ETUDE_WINDOWS");
    windows->file = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    windows->broken = path && *path && windows->file < 0;
    windows->names = names;
    windows->kinds = kinds;
    windows->length_ns = length_s * 1000000000;
    windows->start_ns = now_ns();
}

static int windows_class(uint64_t value) {
    int power = 0;
    while (value >> power > 255)
        power++;
    return power < WINDOWS_POWERS ? 128 * power + (int)(value >> power) : WINDOWS_CLASSES - 1;
}

/* Numbers of HdrHistogram's: zigzag, then seven bits a byte; the ninth byte is whole. */
static size_t windows_number(uint8_t *into, int64_t value) {
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    size_t used = 0;
    while (used < 8 && left > 127) {
        into[used++] = (uint8_t)(left | 128);
        left >>= 7;
    }
    into[used++] = (uint8_t)left;
    return used;
}

static void windows_bytes(uint8_t *into, uint64_t value, int bytes) {
    while (bytes-- > 0)
        *into++ = (uint8_t)(value >> (8 * bytes));
}

/* The head and the counts, runs of empty classes as one negative number; how many bytes. */
static size_t windows_pack(uint8_t *into, const uint64_t *counts) {
    size_t used = 40;
    int last = WINDOWS_CLASSES - 1;
    while (last > 0 && counts[last] == 0)
        last--;
    for (int i = 0, empty; i <= last; i++) {
        for (empty = 0; i < last && counts[i] == 0; i++)
            empty++;
        if (empty > 0)
            used += windows_number(into + used, -empty);
        used += windows_number(into + used, (int64_t)counts[i]);
    }
    memset(into, 0, 40);
    windows_bytes(into, 0x1c849313, 4);
    windows_bytes(into + 4, used - 40, 4);
    windows_bytes(into + 12, 2, 4);                           /* significant digits */
    windows_bytes(into + 16, 1, 8);                           /* the lowest value */
    windows_bytes(into + 24, (uint64_t)256 << (WINDOWS_POWERS - 1), 8); /* the highest */
    windows_bytes(into + 32, 0x3ff0000000000000, 8);          /* 1.0 */
    return used;
}

/* What zlib writes for data that it does not compress: one block of at most 65,535 bytes, and a sum. */
_Static_assert(WINDOWS_PACKED <= 65535, "a histogram is one block");
static size_t windows_store(uint8_t *into, const uint8_t *data, size_t size) {
    uint32_t low = 1, high = 0;
    size_t used = 8;
    const uint8_t head[] = {0x78, 0x01, 1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)};
    memcpy(into + used, head, sizeof head);
    used += sizeof head;
    memcpy(into + used, data, size);
    used += size;
    for (size_t i = 0; i < size; i++) {
        low = (low + data[i]) % 65521;
        high = (high + low) % 65521;
    }
    windows_bytes(into + used, (uint64_t)high << 16 | low, 4);
    used += 4;
    windows_bytes(into, 0x1c849314, 4);
    windows_bytes(into + 4, used - 8, 4);
    return used;
}

static size_t windows_base64(char *into, const uint8_t *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)data[i] << 16;
        three |= i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0;
        three |= i + 2 < size ? data[i + 2] : 0;
        into[used++] = digits[three >> 18];
        into[used++] = digits[three >> 12 & 63];
        into[used++] = i + 1 < size ? digits[three >> 6 & 63] : '=';
        into[used++] = i + 2 < size ? digits[three & 63] : '=';
    }
    return used;
}

static size_t windows_part(char *line, const uint64_t *counts) {
    static uint8_t packed[WINDOWS_PACKED], stored[WINDOWS_PACKED + 64];
    uint64_t all = 0;
    for (int i = 0; i < WINDOWS_CLASSES; i++)
        all += counts[i];
    size_t used = (size_t)sprintf(line, "\"completed\":%llu,\"latency\":", (unsigned long long)all);
    if (all == 0)
        return used + (size_t)sprintf(line + used, "null");
    line[used++] = '"';
    used += windows_base64(line + used, stored, windows_store(stored, packed, windows_pack(packed, counts)));
    line[used++] = '"';
    return used;
}

/* One window in one write; then all counts are 0. */
static void windows_write(struct windows *windows, uint64_t end_ns) {
    static char line[(WINDOWS_KINDS + 1) * (2 * WINDOWS_PACKED + 200)];
    static uint64_t all[WINDOWS_CLASSES];
    memset(all, 0, sizeof all);
    for (int kind = 0; kind < windows->kinds; kind++)
        for (int i = 0; i < WINDOWS_CLASSES; i++)
            all[i] += windows->counts[kind][i];
    size_t used = (size_t)sprintf(line, "{\"duration_s\":%.9f,", (double)(end_ns - windows->start_ns) * 1e-9);
    used += windows_part(line + used, all);
    used += (size_t)sprintf(line + used, ",\"by\":");
    for (int kind = 0; kind < windows->kinds; kind++) {
        used += (size_t)sprintf(line + used, "%c\"%s\":{", kind ? ',' : '{', windows->names[kind]);
        used += windows_part(line + used, windows->counts[kind]);
        line[used++] = '}';
    }
    used += (size_t)sprintf(line + used, "}}\n");
    if (write(windows->file, line, used) != (ssize_t)used)
        windows->broken = true;
    memset(windows->counts, 0, sizeof windows->counts);
    windows->start_ns = end_ns;
}

static void windows_add(struct windows *windows, int kind, uint64_t start_ns, uint64_t end_ns) {
    if (windows->file < 0)
        return;
    windows->counts[kind][windows_class(end_ns - start_ns)]++;
    if (end_ns - windows->start_ns >= windows->length_ns)
        windows_write(windows, end_ns);
}

static bool windows_close(struct windows *windows) {
    if (windows->file < 0)
        return !windows->broken;
    windows_write(windows, now_ns());
    return close(windows->file) == 0 && !windows->broken;
}
