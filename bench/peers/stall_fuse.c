/* A file system that stalls its reads on a known schedule: what a load generator says of it can be computed.
 *
 *     stall_fuse DIRECTORY PERIOD_MS STALL_MS MOUNTPOINT [-o OPTION,…]
 *
 * It shows DIRECTORY (on a tmpfs, so that nothing else takes time) at MOUNTPOINT. Everything is passed on but reads: one
 * that comes while the schedule stalls is answered when the stall is over. Stalls of STALL_MS begin every PERIOD_MS, counted
 * from an instant of CLOCK_MONOTONIC that is told on standard output, in nanoseconds:
 *
 *     {"epoch_ns":N,"period_ns":N,"stall_ns":N}
 *
 * So a read that comes at t waits for max(0, stall - (t - epoch) mod period). Reads are never answered from the page cache
 * (direct_io), and are served by as many threads as there are reads at once. It runs in the foreground; SIGTERM unmounts.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 512

static int below; /* DIRECTORY */
static long long epoch_ns, period_ns, stall_ns;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Until the stall is over in which this instant is, if it is in one. The end is an instant, not a length: being woken
 * late by one timer does not add to the next. */
static void wait_for_the_schedule(void)
{
	long long now = now_ns(), begin = now - (now - epoch_ns) % period_ns, end = begin + stall_ns;
	struct timespec until = {end / 1000000000LL, end % 1000000000LL};

	if (now < end)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
}

/* "/a/b" as the system calls with a directory take it. */
static const char *name_of(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int outcome(int result)
{
	return result < 0 ? -errno : 0;
}

static int do_getattr(const char *path, struct stat *found, struct fuse_file_info *file)
{
	if (file)
		return outcome(fstat((int)file->fh, found));
	return outcome(fstatat(below, name_of(path), found, AT_SYMLINK_NOFOLLOW));
}

static int do_readlink(const char *path, char *text, size_t size)
{
	ssize_t length = readlinkat(below, name_of(path), text, size - 1);

	if (length < 0)
		return -errno;
	text[length] = 0;
	return 0;
}

static int do_mkdir(const char *path, mode_t mode)
{
	return outcome(mkdirat(below, name_of(path), mode));
}

static int do_unlink(const char *path)
{
	return outcome(unlinkat(below, name_of(path), 0));
}

static int do_rmdir(const char *path)
{
	return outcome(unlinkat(below, name_of(path), AT_REMOVEDIR));
}

static int do_symlink(const char *to, const char *path)
{
	return outcome(symlinkat(to, below, name_of(path)));
}

static int do_rename(const char *from, const char *to, unsigned int flags)
{
	return outcome(renameat2(below, name_of(from), below, name_of(to), flags));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
	return outcome(file ? fchmod((int)file->fh, mode) : fchmodat(below, name_of(path), mode, 0));
}

static int do_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *file)
{
	(void)file;
	return outcome(fchownat(below, name_of(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
	(void)file;
	return outcome(utimensat(below, name_of(path), times, AT_SYMLINK_NOFOLLOW));
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
	int fd, result;

	if (file)
		return outcome(ftruncate((int)file->fh, size));
	fd = openat(below, name_of(path), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = outcome(ftruncate(fd, size));
	close(fd);
	return result;
}

static int opened(const char *path, struct fuse_file_info *file, int flags, mode_t mode)
{
	int fd = openat(below, name_of(path), flags | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	file->fh = (uint64_t)fd;
	file->direct_io = 1;
	return 0;
}

/* O_DIRECT and O_APPEND are the kernel's business above: a tmpfs may refuse the one, and the other is in the offsets. */
static int do_open(const char *path, struct fuse_file_info *file)
{
	return opened(path, file, file->flags & ~(O_DIRECT | O_APPEND | O_CREAT | O_EXCL), 0);
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	return opened(path, file, (file->flags & ~(O_DIRECT | O_APPEND)) | O_CREAT, mode);
}

static int do_read(const char *path, char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t done;

	(void)path;
	wait_for_the_schedule();
	done = pread((int)file->fh, data, size, offset);
	return done < 0 ? -errno : (int)done;
}

static int do_write(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t done = pwrite((int)file->fh, data, size, offset);

	(void)path;
	return done < 0 ? -errno : (int)done;
}

static int do_fallocate(const char *path, int mode, off_t offset, off_t size, struct fuse_file_info *file)
{
	(void)path;
	return outcome(fallocate((int)file->fh, mode, offset, size));
}

static int do_fsync(const char *path, int data, struct fuse_file_info *file)
{
	(void)path;
	return outcome(data ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static int do_release(const char *path, struct fuse_file_info *file)
{
	(void)path;
	return outcome(close((int)file->fh));
}

static int do_statfs(const char *path, struct statvfs *found)
{
	(void)path;
	return outcome(fstatvfs(below, found));
}

static int do_access(const char *path, int mode)
{
	return outcome(faccessat(below, name_of(path), mode, 0));
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file,
		      enum fuse_readdir_flags flags)
{
	int fd = openat(below, name_of(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	(void)offset;
	(void)file;
	(void)flags;
	if (!directory) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return -error;
	}
	while ((entry = readdir(directory)))
		if (fill(buffer, entry->d_name, NULL, 0, 0))
			break;
	closedir(directory);
	return 0;
}

/* The schedule begins when the file system does, and nothing is kept by the kernel but what it looked up. */
static void *do_init(struct fuse_conn_info *connection, struct fuse_config *settings)
{
	(void)connection;
	settings->use_ino = 1;
	settings->nullpath_ok = 0;
	settings->attr_timeout = 0;
	printf("{\"epoch_ns\":%lld,\"period_ns\":%lld,\"stall_ns\":%lld}\n", epoch_ns, period_ns, stall_ns);
	fflush(stdout);
	return NULL;
}

static const struct fuse_operations operations = {
	.init = do_init,	 .getattr = do_getattr,	  .readlink = do_readlink, .mkdir = do_mkdir,
	.unlink = do_unlink,	 .rmdir = do_rmdir,	  .symlink = do_symlink,   .rename = do_rename,
	.chmod = do_chmod,	 .chown = do_chown,	  .utimens = do_utimens,   .truncate = do_truncate,
	.open = do_open,	 .create = do_create,	  .read = do_read,	   .write = do_write,
	.fallocate = do_fallocate, .fsync = do_fsync,	  .release = do_release,   .statfs = do_statfs,
	.access = do_access,	 .readdir = do_readdir,
};

/* Serves the mount until it is unmounted; one thread for each request under way, kept when idle. */
static int serve(struct fuse *fuse, const char *mountpoint)
{
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	int result = 1;

	if (!loop || fuse_mount(fuse, mountpoint))
		goto out;
	if (fuse_set_signal_handlers(fuse_get_session(fuse)))
		goto unmount;
	fuse_loop_cfg_set_max_threads(loop, MOST_THREADS);
	fuse_loop_cfg_set_idle_threads(loop, MOST_THREADS);
	result = fuse_loop_mt(fuse, loop);
	fuse_remove_signal_handlers(fuse_get_session(fuse));
unmount:
	fuse_unmount(fuse);
out:
	if (loop)
		fuse_loop_cfg_destroy(loop);
	return result < 0;
}

static long long milliseconds(const char *text)
{
	char *end;
	long long number = strtoll(text, &end, 10);

	return *end || end == text || number < 0 || number > 3600000 ? -1 : number * 1000000LL;
}

int main(int argc, char **argv)
{
	struct fuse_args arguments;
	const char *mountpoint;
	struct fuse *fuse;
	int status;

	if (argc < 5 || (period_ns = milliseconds(argv[2])) <= 0 || (stall_ns = milliseconds(argv[3])) < 0 ||
	    stall_ns >= period_ns) {
		fprintf(stderr, "stall_fuse: expected DIRECTORY PERIOD_MS STALL_MS MOUNTPOINT, with a stall below its period\n");
		return 2;
	}
	below = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (below < 0) {
		fprintf(stderr, "stall_fuse: %s: %s\n", argv[1], strerror(errno));
		return 3;
	}
	epoch_ns = now_ns();
	mountpoint = argv[4];
	argv[4] = argv[0]; /* what is left for the library: the program's name, and options */
	arguments = (struct fuse_args)FUSE_ARGS_INIT(argc - 4, argv + 4);
	fuse = fuse_new(&arguments, &operations, sizeof operations, NULL);
	if (!fuse)
		return 2;
	status = serve(fuse, mountpoint);
	fuse_destroy(fuse);
	return status;
}
