/* A recorder by LD_PRELOAD: calls are seen where a program makes them by name, not where a library makes them itself.
 *
 * cc -shared -fPIC -DCLOCK_TSC (time stamp counter) or without (the vdso's clock_gettime)
 * Each call is a record of 64 bytes in memory, the oldest overwritten; nothing is ever written to disk.
 * Where PRELOAD_COUNT is set, the number of records is printed to standard error at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef CLOCK_TSC
#include <x86intrin.h>
#endif

#define RECORDS 4096

struct record {
	uint64_t number, begun, ended;
	int64_t result;
	uint64_t arguments[4];
};

static struct record records[RECORDS] __attribute__((aligned(64)));
static uint64_t count;

static inline uint64_t ticks(void)
{
#ifdef CLOCK_TSC
	return __rdtsc();
#else
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
#endif
}

static inline void keep(uint64_t number, uint64_t begun, int64_t result, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct record *here = &records[count++ % RECORDS];
	*here = (struct record){number, begun, ticks(), result, {a, b, c, d}};
}

/* The next definition of a name, looked up at its first call. */
#define NEXT(name) \
	static __typeof__(&name) next; \
	if (!next) \
		next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WRAPPED(type, name, number, parameters, passed, ...) \
	type name parameters \
	{ \
		NEXT(name); \
		uint64_t begun = ticks(); \
		type result = next passed; \
		keep(number, begun, result, __VA_ARGS__); \
		return result; \
	}

WRAPPED(ssize_t, read, SYS_read, (int fd, void *to, size_t size), (fd, to, size), fd, (uintptr_t)to, size, 0)
WRAPPED(ssize_t, write, SYS_write, (int fd, const void *from, size_t size), (fd, from, size), fd, (uintptr_t)from, size, 0)
WRAPPED(ssize_t, pread, SYS_pread64, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), fd, (uintptr_t)to, size, at)
WRAPPED(ssize_t, pwrite, SYS_pwrite64, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), fd,
	(uintptr_t)from, size, at)
WRAPPED(off_t, lseek, SYS_lseek, (int fd, off_t to, int whence), (fd, to, whence), fd, to, whence, 0)
WRAPPED(int, close, SYS_close, (int fd), (fd), fd, 0, 0, 0)
WRAPPED(int, fstat, SYS_newfstatat, (int fd, struct stat *about), (fd, about), fd, (uintptr_t)about, 0, 0)
WRAPPED(int, stat, SYS_newfstatat, (const char *path, struct stat *about), (path, about), (uintptr_t)path, (uintptr_t)about, 0, 0)

int open(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	NEXT(open);
	uint64_t begun = ticks();
	int result = next(path, flags, mode);
	keep(SYS_openat, begun, result, (uintptr_t)path, flags, mode, 0);
	return result;
}

__attribute__((destructor)) static void say(void)
{
	if (getenv("PRELOAD_COUNT"))
		fprintf(stderr, "%llu\n", (unsigned long long)count);
}
