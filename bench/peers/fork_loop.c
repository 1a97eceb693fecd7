/* How far apart workers start that are simply forked one after the other, without a barrier.
 *
 * fork_loop WORKERS ROUNDS PROGRAM
 * prints: 50th and 90th percentile over all rounds of the time from the first start to the last, in microseconds.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
	if (argc != 4 || atoi(argv[1]) < 2 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: fork_loop WORKERS ROUNDS PROGRAM\n");
		return 2;
	}
	int workers = atoi(argv[1]), rounds = atoi(argv[2]);
	double *starts = mmap(NULL, workers * sizeof *starts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double *spread = calloc(rounds, sizeof *spread);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < workers; i++) {
			pid_t pid = fork();
			if (pid < 0) {
				perror("fork_loop: fork");
				return 5;
			}
			if (pid == 0) {
				starts[i] = now_us();
				execl(argv[3], argv[3], (char *)NULL);
				_exit(127);
			}
		}
		while (wait(NULL) > 0)
			;
		double first = starts[0], last = starts[0];
		for (int i = 1; i < workers; i++) {
			first = starts[i] < first ? starts[i] : first;
			last = starts[i] > last ? starts[i] : last;
		}
		spread[round] = last - first;
	}
	qsort(spread, rounds, sizeof *spread, ascending);
	printf("spread p50 %.1f p90 %.1f us\n", spread[rounds / 2], spread[rounds * 9 / 10]);
	return 0;
}
