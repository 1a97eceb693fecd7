/* What reading a file at one buffer size costs at the least: a bare loop of read(2), between two readings of the clock.
 *
 * read_loop [-qmr] -b BUFFER -t TOTAL PATH
 * prints: the rate of the loop in KBytes/sec (1 KByte = 1024 bytes), with -q nothing. Both sizes are in bytes.
 * -m: the loop copies from a shared mapping of the file by memcpy, in place of read(2).
 * -r: before the clock is read, what is dirty is written and the program rests for a second, as `io read` without -B.
 *
 * It prepares what `io read -B` prepares, in its order: the file is opened and must be large enough, the buffer is
 * anonymous memory fresh from mmap that nothing has touched, the file is mapped and none of its pages is touched, and
 * only then is the clock read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long buffer_size = 0, total_size = 0;
	int quiet = 0, mapped = 0, rested = 0, option;
	while ((option = getopt(argc, argv, "qmrb:t:")) != -1) {
		if (option == 'q')
			quiet = 1;
		else if (option == 'm')
			mapped = 1;
		else if (option == 'r')
			rested = 1;
		else if (option == 'b')
			buffer_size = atol(optarg);
		else if (option == 't')
			total_size = atol(optarg);
		else
			return 64;
	}
	if (optind + 1 != argc || buffer_size < 1 || total_size < buffer_size || total_size % buffer_size) {
		fprintf(stderr, "usage: read_loop [-qmr] -b BUFFER -t TOTAL PATH (in bytes; TOTAL a multiple of BUFFER)\n");
		return 64;
	}

	int file = open(argv[optind], O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		perror(argv[optind]);
		return 66;
	}
	struct stat status;
	if (fstat(file, &status) || status.st_size < total_size) {
		fprintf(stderr, "read_loop: %s is shorter than %ld bytes\n", argv[optind], total_size);
		return 66;
	}
	char *buffer = mmap(NULL, buffer_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED) {
		perror("read_loop: mmap");
		return 71;
	}
	char *mapping = mapped ? mmap(NULL, total_size, PROT_READ, MAP_SHARED, file, 0) : NULL;
	if (mapping == MAP_FAILED) {
		perror("read_loop: mmap");
		return 71;
	}

	if (rested) {
		sync();
		sleep(1);
	}

	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long offset = 0; mapped && offset < total_size; offset += buffer_size)
		memcpy(buffer, mapping + offset, buffer_size);
	for (long left = mapped ? 0 : total_size / buffer_size; left > 0; left--) {
		if (read(file, buffer, buffer_size) != buffer_size) {
			fprintf(stderr, "read_loop: a short read\n");
			return 74;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);

	munmap(buffer, buffer_size);
	close(file);
	double elapsed_s = (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9;
	if (!quiet)
		printf("%.2f KBytes/sec\n", total_size / 1024.0 / elapsed_s);
	return 0;
}
