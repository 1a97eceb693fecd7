/* A list of calls, made one after the other by syscall(2), as quickly as a program can.
 *
 * calls_loop LIST DIRECTORY
 * LIST: a line with the largest transfer in bytes; then a line a call, fields divided by tabs:
 *   NAME  FAILED  OPENS  ARGUMENT…
 *   FAILED is 1 where the call is to fail, else 0; OPENS is the descriptor that it gave in the original, or -1.
 *   An argument is a letter and its value: n a number; f a descriptor of the original; p a path, within DIRECTORY;
 *   b the place of data.
 * prints: seconds of the loop, calls made, calls that failed where they should not, or the other way round.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS 6
#define DESCRIPTORS 65536

static const struct {
	const char *name;
	long number;
} known[] = {
#define CALL(name) {#name, SYS_##name}
	CALL(close), CALL(dup), CALL(faccessat), CALL(fadvise64), CALL(fchmod), CALL(fcntl), CALL(fdatasync), CALL(fstat),
	CALL(fstatfs), CALL(fsync), CALL(ftruncate), CALL(getdents64), CALL(lseek), CALL(mkdirat), CALL(newfstatat),
	CALL(openat), CALL(pread64), CALL(pwrite64), CALL(read), CALL(readlinkat), CALL(statfs), CALL(unlinkat), CALL(write),
#ifdef SYS_open
	CALL(access), CALL(creat), CALL(lstat), CALL(mkdir), CALL(open), CALL(readlink), CALL(stat), CALL(unlink),
#endif
};

struct call {
	long number;
	long arguments[ARGUMENTS];
	/* Which arguments are descriptors, by bits. */
	unsigned char descriptors;
	unsigned char fails;
	int opens;
};

static int live[DESCRIPTORS];
static char *data;
static struct call *calls;
static long many;

static void wrong(const char *what, const char *which)
{
	fprintf(stderr, "calls_loop: %s: %s\n", what, which);
	exit(64);
}

static long number_of(const char *name)
{
	for (size_t at = 0; at < sizeof known / sizeof *known; at++)
		if (strcmp(known[at].name, name) == 0)
			return known[at].number;
	wrong("a call that it does not know", name);
	return -1;
}

static int descriptor(const char *text)
{
	long found = atol(text);
	if (found < -1 || found >= DESCRIPTORS)
		wrong("no descriptor", text);
	return (int)found;
}

static long argument(struct call *call, int index, const char *field)
{
	switch (*field) {
	case 'n':
		return atol(field + 1);
	case 'p':
		return (long)(intptr_t)(field + 1);
	case 'b':
		return (long)(intptr_t)data;
	case 'f':
		call->descriptors |= 1 << index;
		if (field[1] != '-')
			return descriptor(field + 1);
	}
	wrong("no argument", field);
	return 0;
}

static const char *next(char **line)
{
	const char *field = strsep(line, "\t");
	if (!field)
		wrong("a field is missing", "end of line");
	return field;
}

static struct call parsed(char *line)
{
	struct call call = {.number = number_of(next(&line))};
	call.fails = *next(&line) == '1';
	call.opens = descriptor(next(&line));
	for (int index = 0; line && index < ARGUMENTS; index++)
		call.arguments[index] = argument(&call, index, next(&line));
	return call;
}

static void read_list(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	if (!file || getline(&line, &room, file) < 0)
		wrong("cannot be read", path);
	long largest = atol(line), capacity = 0;
	data = malloc(largest + 1);
	memset(data, 'x', largest + 1);
	for (ssize_t length; (length = getline(&line, &room, file)) > 0;) {
		line[length - 1] = '\0';
		if (many == capacity)
			calls = realloc(calls, (capacity = 2 * capacity + 1024) * sizeof *calls);
		/* Paths stay where they are. */
		calls[many++] = parsed(strdup(line));
	}
	free(line);
	fclose(file);
}

static long make_all(void)
{
	long others = 0;
	for (struct call *call = calls, *end = calls + many; call < end; call++) {
		long a[ARGUMENTS];
		memcpy(a, call->arguments, sizeof a);
		for (unsigned left = call->descriptors; left; left &= left - 1) {
			int index = __builtin_ctz(left);
			a[index] = live[a[index]];
		}
		long result = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (call->opens >= 0 && result >= 0)
			live[call->opens] = (int)result;
		others += (result < 0) != call->fails;
	}
	return others;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: calls_loop LIST DIRECTORY\n");
		return 64;
	}
	memset(live, -1, sizeof live);
	read_list(argv[1]);
	if (chdir(argv[2]))
		wrong("not a directory", argv[2]);
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	long others = make_all();
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.9f %ld %ld\n", (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9, many, others);
	return 0;
}
