/* What reading blocks of 4 KiB at random places of files costs at the least: a bare loop of pread64(2) on descriptors that are open.
 *
 * pread_loop SECONDS FILE...
 * prints: calls per second. Places are drawn by a multiplication each; a file has as many blocks as it had at the start.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[1]) : 0;
	int files = argc - 2;
	if (seconds <= 0) {
		fprintf(stderr, "usage: pread_loop SECONDS FILE...\n");
		return 64;
	}
	int *fds = calloc(files, sizeof(*fds));
	uint64_t *blocks = calloc(files, sizeof(*blocks));
	char *buffer = malloc(BLOCK);
	for (int file = 0; file < files; file++) {
		struct stat status;
		fds[file] = open(argv[file + 2], O_RDONLY | O_CLOEXEC);
		if (fds[file] < 0 || fstat(fds[file], &status) || status.st_size < BLOCK) {
			perror(argv[file + 2]);
			return 66;
		}
		blocks[file] = status.st_size / BLOCK;
	}

	uint64_t random = 1, calls = 0;
	double begin = now_s(), end = begin;
	while (end - begin < seconds) {
		/* The clock is read once in a thousand calls. */
		for (int burst = 0; burst < 1000; burst++, calls++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			int file = (random >> 33) % files;
			off64_t at = (off64_t)((random >> 20) % blocks[file]) * BLOCK;
			if (pread64(fds[file], buffer, BLOCK, at) != BLOCK) {
				fprintf(stderr, "pread_loop: a short read\n");
				return 74;
			}
		}
		end = now_s();
	}
	printf("%.0f\n", calls / (end - begin));
	return 0;
}
