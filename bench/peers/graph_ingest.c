/* Ingests a graph: a list of edges as text, by buffered stdio, becomes a file of sparse rows, written in blocks.
 *
 * graph_ingest make VERTICES EDGES FILE    a list of random edges, a line each
 * graph_ingest ingest FILE OUT             prints how many vertices and edges there are
 *
 * OUT is 64-bit numbers: vertices, edges, where each vertex's row begins (one more), then 32-bit targets, by source.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 65536

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(5);
	}
}

static int make(unsigned vertices, long edges, const char *path)
{
	FILE *file = fopen(path, "w");
	need(file != NULL, path);
	fprintf(file, "# %u %ld\n", vertices, edges);
	srandom(1);
	for (long i = 0; i < edges; i++) {
		unsigned from = random() % vertices, to = random() % vertices;
		need(fprintf(file, "%u %u\n", from, to) > 0, path);
	}
	need(fclose(file) == 0, path);
	return 0;
}

/* Calls `each` for every edge; the two passes read the file twice, as loaders with little memory do. */
static void pass(const char *path, uint64_t sizes[2], void (*each)(uint32_t, uint32_t))
{
	char line[64];
	FILE *file = fopen(path, "r");
	need(file != NULL, path);
	need(fgets(line, sizeof line, file) != NULL, path);
	need(sscanf(line, "# %lu %lu", &sizes[0], &sizes[1]) == 2, "first line");
	while (each && fgets(line, sizeof line, file)) {
		char *rest;
		uint32_t from = strtoul(line, &rest, 10), to = strtoul(rest, NULL, 10);
		errno = EINVAL;
		need(from < sizes[0] && to < sizes[0], line);
		each(from, to);
	}
	fclose(file);
}

static uint64_t *begins;
static uint32_t *targets;

static void count(uint32_t from, uint32_t to)
{
	(void)to;
	begins[from + 1]++;
}

static void place(uint32_t from, uint32_t to)
{
	targets[begins[from]++] = to;
}

static void blocks(int out, const void *data, size_t size)
{
	for (const char *at = data; size > 0;) {
		size_t some = size < BLOCK ? size : BLOCK;
		need(write(out, at, some) == (ssize_t)some, "write");
		at += some;
		size -= some;
	}
}

static int ingest(const char *path, const char *to)
{
	uint64_t sizes[2];
	pass(path, sizes, NULL);
	begins = calloc(sizes[0] + 1, sizeof *begins);
	targets = malloc((sizes[1] + 1) * sizeof *targets);
	need(begins && targets, "memory");
	pass(path, sizes, count);
	for (uint64_t v = 0; v < sizes[0]; v++)
		begins[v + 1] += begins[v];
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	need(out >= 0, to);
	blocks(out, sizes, sizeof sizes);
	blocks(out, begins, (sizes[0] + 1) * sizeof *begins);
	/* Placing moves each beginning to its end, which is the beginning of the next one. */
	pass(path, sizes, place);
	blocks(out, targets, sizes[1] * sizeof *targets);
	need(close(out) == 0, to);
	printf("%lu vertices, %lu edges\n", sizes[0], sizes[1]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "make"))
		return make(strtoul(argv[2], NULL, 10), atol(argv[3]), argv[4]);
	if (argc == 4 && !strcmp(argv[1], "ingest"))
		return ingest(argv[2], argv[3]);
	fprintf(stderr, "usage: graph_ingest make VERTICES EDGES FILE | ingest FILE OUT\n");
	return 2;
}
