/*
 * nfs-postmark: small files over NFS, by a client of its own: no mount, no cache of the kernel's.
 *
 * What Postmark does, by libnfs: a pool of files is made; each transaction reads a whole file or appends to it, and
 * makes a file or deletes one; at last all are deleted. The seed fixes all of that, so the counts that are printed
 * depend on neither the speed of the server nor the version of the protocol. What is read must be what was written.
 *
 * usage: nfs-postmark URL [files=N] [transactions=N] [low=B] [high=B] [directories=N] [chunk=B] [seed=N]
 *        [name=DIRECTORY] [timeout=S] [window=S]
 *
 * Prints lines NAME = VALUE [UNIT]. Windows of response times are appended to the file that $ETUDE_WINDOWS names.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nfsc/libnfs.h>

#include "windows.h"

enum { CREATE, READ, APPEND, DELETE, KINDS };
static const char *const kinds[KINDS] = {"create", "read", "append", "delete"};
static const char *const done[KINDS] = {"created", "read", "appended", "deleted"};

struct file {
    uint64_t number; /* names it, and fixes what is in it */
    uint64_t size;
};

static uint64_t files = 200, transactions = 1000, low = 500, high = 10000, directories = 10, chunk = 2048;
static uint64_t seed = 42, timeout_s = 10, window_s = 1;
static const char *name = "nfs-postmark";

static struct nfs_context *nfs;
static struct file *pool;
static uint64_t pooled, numbered, counts[KINDS], bytes_read, bytes_written;
static char *wanted, *found; /* one chunk of what a file holds, and what was read */
static struct windows windows;

static void fail(const char *form, ...) {
    va_list words;
    va_start(words, form);
    fputs("nfs-postmark: ", stderr);
    vfprintf(stderr, form, words);
    fputc('\n', stderr);
    va_end(words);
    exit(1);
}

/* What libnfs says of a call that has failed; lines of the server's are none of ours. */
static void failed(const char *what, const char *path, int status) {
    const char *said = nfs_get_error(nfs);
    fail("%s %s: %s%s%s", what, path, strerror(status < 0 ? -status : EIO), said ? "; libnfs: " : "", said ? said : "");
}

/* splitmix64: the same numbers on every machine. */
static uint64_t draw(uint64_t below) {
    static uint64_t state;
    static bool seeded;
    if (!seeded) {
        state = seed;
        seeded = true;
    }
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return (uint64_t)(((unsigned __int128)z * below) >> 64);
}

static uint64_t draw_size(void) {
    return low + draw(high - low + 1);
}

/* Each byte of a file is fixed by the file's number and the byte's place. */
static void fill(char *into, uint64_t number, uint64_t offset, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        into[i] = (char)((number * 131 + (offset + i) * 7 + ((offset + i) >> 8)) & 0xff);
}

static void path_of(char *path, size_t room, const struct file *file) {
    snprintf(path, room, "/%s/s%" PRIu64 "/%" PRIu64, name, file->number % directories, file->number);
}

static void write_part(struct nfsfh *handle, const char *path, struct file *file, uint64_t until) {
    while (file->size < until) {
        uint64_t count = until - file->size < chunk ? until - file->size : chunk;
        fill(wanted, file->number, file->size, count);
        int wrote = nfs_pwrite(nfs, handle, file->size, count, wanted);
        if (wrote <= 0)
            failed("write to", path, wrote);
        file->size += (uint64_t)wrote;
        bytes_written += (uint64_t)wrote;
    }
}

static void close_file(struct nfsfh *handle, const char *path) {
    int status = nfs_close(nfs, handle);
    if (status < 0)
        failed("close", path, status);
}

static void create_file(void) {
    struct file *file = &pool[pooled];
    struct nfsfh *handle;
    char path[512];
    *file = (struct file){.number = numbered};
    path_of(path, sizeof path, file);
    uint64_t size = draw_size();
    /* Of version 4, nfs_creat of libnfs 4.0 opens for reading alone. */
    int status = nfs_open2(nfs, path, O_CREAT | O_WRONLY, 0600, &handle);
    if (status < 0)
        failed("create", path, status);
    write_part(handle, path, file, size);
    close_file(handle, path);
    pooled++;
    numbered++;
}

static void append_file(void) {
    struct file *file = &pool[draw(pooled)];
    struct nfsfh *handle;
    char path[512];
    path_of(path, sizeof path, file);
    /* As in Postmark a file never outgrows what it may be; one that is full is opened and closed alone. */
    uint64_t until = file->size + draw(high - file->size + 1);
    int status = nfs_open(nfs, path, O_WRONLY, &handle);
    if (status < 0)
        failed("open", path, status);
    write_part(handle, path, file, until);
    close_file(handle, path);
}

static void read_file(void) {
    struct file *file = &pool[draw(pooled)];
    struct nfsfh *handle;
    char path[512];
    path_of(path, sizeof path, file);
    int status = nfs_open(nfs, path, O_RDONLY, &handle), count;
    if (status < 0)
        failed("open", path, status);
    uint64_t offset = 0;
    while ((count = nfs_pread(nfs, handle, offset, chunk, found)) > 0) {
        fill(wanted, file->number, offset, (uint64_t)count);
        if (memcmp(wanted, found, (size_t)count) != 0)
            fail("read %s: not what was written, at byte %" PRIu64 " to %" PRIu64, path, offset, offset + count);
        offset += (uint64_t)count;
    }
    if (count < 0)
        failed("read", path, count);
    if (offset != file->size)
        fail("read %s: %" PRIu64 " bytes, %" PRIu64 " were written", path, offset, file->size);
    bytes_read += offset;
    close_file(handle, path);
}

static void delete_file(void) {
    uint64_t which = draw(pooled);
    char path[512];
    path_of(path, sizeof path, &pool[which]);
    int status = nfs_unlink(nfs, path);
    if (status < 0)
        failed("delete", path, status);
    pool[which] = pool[--pooled];
}

static void operation(int kind) {
    static void (*const does[KINDS])(void) = {create_file, read_file, append_file, delete_file};
    uint64_t start_ns = now_ns();
    does[kind]();
    counts[kind]++;
    windows_add(&windows, kind, start_ns, now_ns());
}

/* A run that was killed has left its directory: the files in it are of the same names. */
static void remove_left(const char *path, int depth) {
    struct nfsdir *directory;
    struct nfsdirent *entry;
    char below[512];
    if (nfs_opendir(nfs, path, &directory) < 0)
        return;
    while ((entry = nfs_readdir(nfs, directory)) != NULL) {
        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
            continue;
        if (snprintf(below, sizeof below, "%s/%s", path, entry->name) >= (int)sizeof below)
            continue;
        if (depth > 0)
            remove_left(below, depth - 1);
        else
            nfs_unlink(nfs, below);
    }
    nfs_closedir(nfs, directory);
    nfs_rmdir(nfs, path);
}

static void each_directory(int (*does)(struct nfs_context *, const char *), const char *what) {
    char path[512];
    for (uint64_t i = 0; i < directories; i++) {
        snprintf(path, sizeof path, "/%s/s%" PRIu64, name, i);
        int status = does(nfs, path);
        if (status < 0)
            failed(what, path, status);
    }
}

static void connect_to(const char *text) {
    if ((nfs = nfs_init_context()) == NULL)
        fail("libnfs has no memory");
    struct nfs_url *url = nfs_parse_url_dir(nfs, text);
    if (url == NULL)
        fail("'%s' is no address, expected nfs://SERVER/EXPORT?version=3: %s", text, nfs_get_error(nfs));
    /* A server that has died is an error and no reason to wait for another one. */
    nfs_set_autoreconnect(nfs, 0);
    nfs_set_timeout(nfs, (int)(timeout_s * 1000));
    int status = nfs_mount(nfs, url->server, url->path);
    if (status < 0)
        failed("mount", text, status);
    nfs_destroy_url(url);
}

static uint64_t number(const char *word, const char *text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
        fail("'%s': expected a whole number from %" PRIu64 " to %" PRIu64, word, least, most);
    return value;
}

static void option(const char *word) {
    static const struct {
        const char *name;
        uint64_t *value, least, most;
    } options[] = {
        {"files=", &files, 1, 1000000},      {"transactions=", &transactions, 0, 1000000000},
        {"low=", &low, 0, 1 << 30},          {"high=", &high, 0, 1 << 30},
        {"directories=", &directories, 1, 10000}, {"chunk=", &chunk, 1, 1 << 20},
        {"seed=", &seed, 0, UINT64_MAX},     {"timeout=", &timeout_s, 1, 3600},
        {"window=", &window_s, 1, 3600},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t length = strlen(options[i].name);
        if (strncmp(word, options[i].name, length) == 0) {
            *options[i].value = number(word, word + length, options[i].least, options[i].most);
            return;
        }
    }
    if (strncmp(word, "name=", 5) != 0 || word[5] == '\0' || word[5] == '.' || strchr(word, '/') || strlen(word) > 200)
        fail("'%s': expected files, transactions, low, high, directories, chunk, seed, name, timeout or window", word);
    name = word + 5;
}

static void run(void) {
    for (uint64_t i = 0; i < files; i++)
        operation(CREATE);
    for (uint64_t i = 0; i < transactions; i++) {
        if (pooled > 0)
            operation(draw(2) ? READ : APPEND);
        operation(pooled > 0 && (draw(2) || pooled == files * 2) ? DELETE : CREATE);
    }
    while (pooled > 0)
        operation(DELETE);
}

int main(int argc, char **argv) {
    char root[512];
    if (argc < 2)
        fail("expected an address: nfs-postmark nfs://SERVER/EXPORT?version=3 [files=N] …");
    for (int i = 2; i < argc; i++)
        option(argv[i]);
    if (low > high)
        fail("low=%" PRIu64 " is more than high=%" PRIu64, low, high);
    pool = malloc(2 * files * sizeof *pool);
    wanted = malloc(chunk);
    found = malloc(chunk);
    if (!pool || !wanted || !found)
        fail("no memory for %" PRIu64 " files", files);
    connect_to(argv[1]);
    snprintf(root, sizeof root, "/%s", name);
    remove_left(root, 1);
    int status = nfs_mkdir(nfs, root);
    if (status < 0)
        failed("mkdir", root, status);
    each_directory(nfs_mkdir, "mkdir");
    windows_open(&windows, kinds, KINDS, window_s);
    uint64_t start_ns = now_ns();
    run();
    double elapsed_s = (double)(now_ns() - start_ns) * 1e-9;
    if (!windows_close(&windows))
        fail("its windows could not be written to %s", getenv("ETUDE_WINDOWS"));
    each_directory(nfs_rmdir, "rmdir");
    nfs_rmdir(nfs, root);
    nfs_destroy_context(nfs);
    for (int kind = 0; kind < KINDS; kind++)
        printf("files_%s = %" PRIu64 "\n", done[kind], counts[kind]);
    printf("data_read = %" PRIu64 " B\ndata_written = %" PRIu64 " B\n", bytes_read, bytes_written);
    printf("operation_rate = %.1f 1/s\n",
           (double)(counts[CREATE] + counts[READ] + counts[APPEND] + counts[DELETE]) / elapsed_s);
    return fflush(stdout) == 0 ? 0 : 1;
}
