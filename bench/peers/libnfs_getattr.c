/* GETATTR after GETATTR by libnfs's synchronous interface: one call under way at a time, of one open file.
 *
 * libnfs_getattr URL SECONDS
 * URL: nfs://HOST/EXPORT/FILE; with version 3 nfs_fstat64 is one GETATTR. The file is made if it is missing.
 * prints: calls, seconds of all, and of one call the median and the 99th percentile, in seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <nfsc/libnfs.h>

/* A call's time in classes of a hundredth of a microsecond; what is longer than 10 ms is in the last. */
#define CLASS_NS 10
#define CLASSES 1000000
#define WARM_UP 1000

static uint32_t counts[CLASSES];

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void wrong(struct nfs_context *nfs, const char *what, int status)
{
	const char *said = nfs ? nfs_get_error(nfs) : NULL;
	fprintf(stderr, "libnfs_getattr: %s: %s: %s\n", what, strerror(-status), said ? said : "");
	exit(1);
}

static double percentile_s(uint64_t calls, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)calls), sum = 0;
	for (long class = 0; class < CLASSES; class++)
		if ((sum += counts[class]) > wanted)
			return ((double)class + 0.5) * CLASS_NS / 1e9;
	return 0;
}

int main(int count, char **words)
{
	if (count != 3) {
		fprintf(stderr, "usage: libnfs_getattr URL SECONDS\n");
		return 2;
	}
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url = nfs ? nfs_parse_url_full(nfs, words[1]) : NULL;
	if (!url)
		wrong(nfs, words[1], -EINVAL);
	int status = nfs_mount(nfs, url->server, url->path);
	if (status < 0)
		wrong(nfs, "mount", status);
	struct nfsfh *file;
	status = nfs_open(nfs, url->file, O_RDONLY, &file);
	if (status == -ENOENT)
		status = nfs_creat(nfs, url->file, 0644, &file);
	if (status < 0)
		wrong(nfs, url->file, status);
	uint64_t calls = 0, begin = 0, end = 0, before = now_ns();
	for (long made = -WARM_UP; !begin || before < end; made++) {
		struct nfs_stat_64 found;
		if (made == 0) {
			begin = before = now_ns();
			end = begin + (uint64_t)(atof(words[2]) * 1e9);
		}
		status = nfs_fstat64(nfs, file, &found);
		if (status < 0)
			wrong(nfs, "fstat", status);
		uint64_t after = now_ns(), class = (after - before) / CLASS_NS;
		if (made >= 0) {
			counts[class < CLASSES ? class : CLASSES - 1]++;
			calls++;
		}
		before = after;
	}
	printf("%llu %.9f %.9f %.9f\n", (unsigned long long)calls, (double)(before - begin) / 1e9,
	       percentile_s(calls, 0.5), percentile_s(calls, 0.99));
	nfs_close(nfs, file);
	nfs_destroy_context(nfs);
	return 0;
}
