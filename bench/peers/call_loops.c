/* Programs of which every call's price is known, to see what a recorder adds to it.
 *
 * call_loops pread|mixed|getppid CALLS CPU DIRECTORY
 *   pread    64 bytes of a file in the page cache
 *   mixed    loops of 15 calls, 8 of them by stdio: openat newfstatat read close openat newfstatat write close, and
 *            directly openat newfstatat read lseek write lseek close
 *   getppid  a call that is no I/O
 * CALLS is rounded up to whole loops; DIRECTORY is where a file can be made. Where CPU is not -1 it stays on that one.
 * prints: nanoseconds per call. A tenth of the loops run before the clock is read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BYTES 64
#define MIXED 15

static const char *path;
static int held;
static char bytes[BYTES];

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(5);
	}
}

static void one_pread(void)
{
	need(pread(held, bytes, BYTES, 0) == BYTES, "pread");
}

static void one_getppid(void)
{
	need(getppid() >= 0, "getppid");
}

static void one_mixed(void)
{
	struct stat about;
	FILE *file = fopen(path, "r");
	need(file && fread(bytes, 1, BYTES, file) == BYTES, "fread");
	need(fclose(file) == 0, "fclose");
	file = fopen(path, "r+");
	need(file && fwrite(bytes, 1, BYTES, file) == BYTES, "fwrite");
	need(fclose(file) == 0, "fclose");
	int fd = open(path, O_RDWR);
	need(fd >= 0, "open");
	need(fstat(fd, &about) == 0, "fstat");
	need(read(fd, bytes, BYTES) == BYTES, "read");
	need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
	need(write(fd, bytes, BYTES) == BYTES, "write");
	need(lseek(fd, 0, SEEK_END) >= BYTES, "lseek");
	need(close(fd) == 0, "close");
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*one)(void);
		int calls;
	} loops[] = {{"pread", one_pread, 1}, {"mixed", one_mixed, MIXED}, {"getppid", one_getppid, 1}};
	int which = -1;
	for (int i = 0; argc == 5 && i < 3; i++)
		if (!strcmp(argv[1], loops[i].name))
			which = i;
	long calls = argc == 5 ? atol(argv[2]) : 0;
	if (which < 0 || calls < 1) {
		fprintf(stderr, "usage: call_loops pread|mixed|getppid CALLS CPU DIRECTORY\n");
		return 2;
	}
	if (atoi(argv[3]) >= 0) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(atoi(argv[3]), &one);
		need(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
	}
	char *made;
	need(asprintf(&made, "%s/call_loops-XXXXXX", argv[4]) > 0, "asprintf");
	held = mkstemp(made);
	need(held >= 0 && write(held, bytes, BYTES) == BYTES, made);
	path = made;

	long rounds = (calls + loops[which].calls - 1) / loops[which].calls;
	for (long i = 0; i < rounds / 10 + 1; i++)
		loops[which].one();
	double start = now_ns();
	for (long i = 0; i < rounds; i++)
		loops[which].one();
	double took = now_ns() - start;
	need(unlink(path) == 0, "unlink");
	printf("%.3f\n", took / (rounds * loops[which].calls));
	return 0;
}
