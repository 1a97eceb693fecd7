/* What launching costs at the least: posix_spawn and wait4 in a bare loop.
 *
 * spawn_loop COUNT PROGRAM
 * prints: median and mean of the single launches, and total time per launch, in microseconds.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 3 || atoi(argv[1]) < 1) {
		fprintf(stderr, "usage: spawn_loop COUNT PROGRAM\n");
		return 2;
	}
	int count = atoi(argv[1]);
	double *each = calloc(count, sizeof *each);
	char *command[] = {argv[2], NULL};
	double start = now_us(), sum = 0;
	for (int i = 0; i < count; i++) {
		pid_t pid;
		int status;
		struct rusage usage;
		double before = now_us();
		int error = posix_spawn(&pid, argv[2], NULL, NULL, command, environ);
		if (error) {
			fprintf(stderr, "spawn_loop: %s: %s\n", argv[2], strerror(error));
			return 5;
		}
		if (wait4(pid, &status, 0, &usage) != pid || status)
			return 4;
		each[i] = now_us() - before;
		sum += each[i];
	}
	double total = now_us() - start;
	qsort(each, count, sizeof *each, ascending);
	printf("median %.1f mean %.1f total %.1f us/launch\n", each[count / 2], sum / count, total / count);
	return 0;
}
