/* Threads with files of their own and one in common.
 *
 * thread_files THREADS BLOCKS    in the working directory: own-0 …, and shared
 *
 * Each thread writes blocks of 4 to 16 KiB to its file, reads it again, and puts a sum of each block into its part of
 * the shared file; when all have, each reads the part of the next one. Prints the sum of all.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16
#define LARGEST 16384
#define SUM 512

static int threads, blocks, shared;
static pthread_barrier_t all;
static uint64_t sums[MOST];

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(5);
	}
}

static size_t size_of(int number, int block)
{
	return 4096 * (1 + (number + block) % 4);
}

/* Some hundred microseconds of computing. */
static uint64_t sum_of(const unsigned char *data, size_t size)
{
	uint64_t sum = 1469598103934665603u;
	for (int round = 0; round < 8; round++)
		for (size_t i = 0; i < size; i++)
			sum = (sum ^ data[i]) * 1099511628211u;
	return sum;
}

static void *work(void *given)
{
	int number = (int)(intptr_t)given;
	char name[32];
	unsigned char data[LARGEST], record[SUM] = {0};
	snprintf(name, sizeof name, "own-%d", number);
	int own = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);
	need(own >= 0, name);
	for (int block = 0; block < blocks; block++) {
		size_t size = size_of(number, block);
		memset(data, number + block, size);
		need(write(own, data, size) == (ssize_t)size, name);
	}
	need(lseek(own, 0, SEEK_SET) == 0, name);
	for (int block = 0; block < blocks; block++) {
		size_t size = size_of(number, block);
		need(read(own, data, size) == (ssize_t)size, name);
		uint64_t sum = sum_of(data, size);
		memcpy(record, &sum, sizeof sum);
		need(pwrite(shared, record, SUM, SUM * ((off_t)number * blocks + block)) == SUM, "shared");
	}
	need(close(own) == 0, name);
	pthread_barrier_wait(&all);
	int next = (number + 1) % threads;
	for (int block = 0; block < blocks; block++) {
		need(pread(shared, record, SUM, SUM * ((off_t)next * blocks + block)) == SUM, "shared");
		uint64_t sum;
		memcpy(&sum, record, sizeof sum);
		sums[number] += sum;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	threads = argc == 3 ? atoi(argv[1]) : 0;
	blocks = argc == 3 ? atoi(argv[2]) : 0;
	if (threads < 1 || threads > MOST || blocks < 1) {
		fprintf(stderr, "usage: thread_files THREADS BLOCKS\n");
		return 2;
	}
	pthread_t running[MOST];
	shared = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0666);
	need(shared >= 0, "shared");
	pthread_barrier_init(&all, NULL, threads);
	for (intptr_t i = 0; i < threads; i++)
		need(pthread_create(&running[i], NULL, work, (void *)i) == 0, "pthread_create");
	uint64_t sum = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(running[i], NULL);
		sum += sums[i];
	}
	need(fsync(shared) == 0, "shared");
	printf("%016lx\n", sum);
	return 0;
}
