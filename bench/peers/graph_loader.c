/* A program that loads a graph: threads that each read their share of a list of edges, and write it by vertex.
 *
 * graph_loader make EDGES FILE    a list of random edges, two 32-bit numbers each
 * graph_loader load THREADS FILE OUT
 * prints: how many vertices and edges there are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define VERTICES 65536u
#define CHUNK 65536
#define MOST 64

struct share {
	int fd;
	off_t from, to;
	uint32_t degrees[VERTICES];
};

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(5);
	}
}

static void *load(void *given)
{
	struct share *mine = given;
	uint32_t *edges = malloc(CHUNK);
	for (off_t at = mine->from; at < mine->to;) {
		size_t size = mine->to - at < CHUNK ? mine->to - at : CHUNK;
		need(pread(mine->fd, edges, size, at) == (ssize_t)size, "pread");
		for (size_t i = 0; i < size / 4; i += 2)
			mine->degrees[edges[i] % VERTICES]++;
		at += size;
	}
	free(edges);
	return NULL;
}

static int make(long edges, const char *path)
{
	FILE *file = fopen(path, "w");
	need(file != NULL, path);
	srandom(1);
	for (long i = 0; i < edges; i++) {
		uint32_t edge[2] = {random() % VERTICES, random() % VERTICES};
		need(fwrite(edge, sizeof edge, 1, file) == 1, path);
	}
	need(fclose(file) == 0, path);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "make"))
		return make(atol(argv[2]), argv[3]);
	int threads = argc == 5 && !strcmp(argv[1], "load") ? atoi(argv[2]) : 0;
	if (threads < 1 || threads > MOST) {
		fprintf(stderr, "usage: graph_loader make EDGES FILE | load THREADS FILE OUT\n");
		return 2;
	}
	struct stat about;
	int fd = open(argv[3], O_RDONLY), out = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	need(fd >= 0 && fstat(fd, &about) == 0, argv[3]);
	need(out >= 0, argv[4]);
	struct share *shares = calloc(threads, sizeof *shares);
	pthread_t running[MOST];
	off_t edges = about.st_size / 8;
	for (int i = 0; i < threads; i++) {
		shares[i].fd = fd;
		shares[i].from = 8 * (edges * i / threads);
		shares[i].to = 8 * (edges * (i + 1) / threads);
		need(pthread_create(&running[i], NULL, load, &shares[i]) == 0, "pthread_create");
	}
	struct iovec parts[MOST];
	for (int i = 0; i < threads; i++) {
		pthread_join(running[i], NULL);
		parts[i] = (struct iovec){shares[i].degrees, sizeof shares[i].degrees};
	}
	need(writev(out, parts, threads) == (ssize_t)(threads * sizeof shares[0].degrees), argv[4]);
	void *back = mmap(NULL, threads * sizeof shares[0].degrees, PROT_READ, MAP_PRIVATE, open(argv[4], O_RDONLY), 0);
	need(back != MAP_FAILED && !memcmp(back, shares[0].degrees, sizeof shares[0].degrees), "mmap");
	printf("%u vertices, %lld edges\n", VERTICES, (long long)edges);
	return 0;
}
