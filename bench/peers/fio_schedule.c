/* When fio meant to send, and when it did: fio tells neither, and its latencies count from the send.
 *
 * LD_PRELOAD=fio_schedule.so FIO_SCHEDULE=OUT fio --ioengine=psync --rate_process=poisson ... --numjobs=1
 *
 * With rate_process=poisson fio 3.33 calls logf(3) once for the gap after each request, and nothing else does; psync sends by
 * pread64(2). Both are kept in their order, in memory, and written at the end of the process that sent anything:
 * OUT holds the count of gaps and of sends as two uint64_t, the gaps' logarithms as float, and the instants of the sends
 * (CLOCK_MONOTONIC, ns) as uint64_t.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST (1u << 22)

static float (*real_logf)(float);
static ssize_t (*real_pread)(int, void *, size_t, off64_t);
static float *gaps;
static uint64_t *sends;
static uint64_t gap_count, send_count;

/* Memory that the job has as it is, though a child: faults of pages that it copies would count as its own. */
static void *room(size_t bytes)
{
	void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return found == MAP_FAILED ? NULL : found;
}

__attribute__((constructor)) static void begin(void)
{
	real_logf = (float (*)(float))dlsym(RTLD_NEXT, "logf");
	real_pread = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
	gaps = room(MOST * sizeof(*gaps));
	sends = room(MOST * sizeof(*sends));
}

float logf(float of)
{
	float found = real_logf(of);
	if (gaps && gap_count < MOST)
		gaps[gap_count++] = found;
	return found;
}

static ssize_t sent(int fd, void *buffer, size_t bytes, off64_t offset)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Before the first gap fio reads other things by pread. */
	if (sends && send_count < MOST)
		sends[send_count++] = now.tv_sec * 1000000000ull + now.tv_nsec;
	return real_pread(fd, buffer, bytes, offset);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset)
{
	return sent(fd, buffer, bytes, offset);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
	return sent(fd, buffer, bytes, offset);
}

static void dump(void)
{
	const char *path = getenv("FIO_SCHEDULE");
	/* The job is a process of its own, which alone draws gaps. */
	if (!path || gap_count < 2)
		return;
	FILE *out = fopen(path, "wb");
	if (!out)
		return;
	fwrite(&gap_count, sizeof(gap_count), 1, out);
	fwrite(&send_count, sizeof(send_count), 1, out);
	fwrite(gaps, sizeof(*gaps), gap_count, out);
	fwrite(sends, sizeof(*sends), send_count, out);
	fclose(out);
}

__attribute__((destructor)) static void end(void)
{
	dump();
}

/* fio's jobs leave by _exit(2), which runs no destructors. */
void _exit(int status)
{
	dump();
	_Exit(status);
}
