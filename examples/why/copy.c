/* copy MIB BUFFER [OPTION…]: adds up MIB MiB of the file copy.data, read by a buffer of BUFFER bytes, and before
 * that does what each option says: one cause each by which programs become slower.
 *
 *   chains=N    20000 look-ups in a hash table with chains of N entries
 *   cold=MIB    the device copy.disk is read, nothing of which is in memory (as root)
 *   exec=N      N programs are started
 *   fault=MIB   memory is touched for the first time
 *   fsync=N     N bytes are written, each synced
 *   hash=N      N rounds of a slow function
 *   hog=MS      a process computes for MS milliseconds on the same CPU
 *   lock=MS     another thread holds a lock that is waited for, and computes
 *   resolve=MS  a name server does not answer within MS milliseconds
 *   sleep=MS    a sleep
 *   sync=N      N bytes are written with O_SYNC
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

NOINLINE static unsigned long add_up(const unsigned char *buffer, long length)
{
    unsigned long sum = 0;
    for (long n = 0; n < length; n++)
        sum = sum * 31 + buffer[n];
    return sum;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

NOINLINE static void compute(long ms)
{
    volatile long rounds = 0;
    for (double end = now_ms() + ms; now_ms() < end;)
        for (long n = 0; n < 1000; n++)
            rounds++;
}

NOINLINE static void look_up(long entries)
{
    struct entry { struct entry *next; long key; } *chain = NULL;
    for (long n = 0; n < entries; n++) {
        struct entry *made = malloc(sizeof *made);
        *made = (struct entry){chain, n};
        chain = made;
    }
    for (long n = 0; n < 20000; n++)
        for (struct entry *each = chain; each && each->key != 0; each = each->next)
            __asm__ volatile("");
}

NOINLINE static void start_programs(long count)
{
    char *arguments[] = {"true", NULL}, *environment[] = {NULL};
    for (long n = 0; n < count; n++) {
        pid_t child;
        if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment) != 0)
            exit(5);
        waitpid(child, NULL, 0);
    }
}

NOINLINE static void touch(long mib)
{
    char *memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, mib << 20, MADV_NOHUGEPAGE);
    for (long n = 0; n < mib << 20; n += 4096)
        memory[n] = 1;
    munmap(memory, mib << 20);
}

NOINLINE static void write_bytes(long count, int flags, int synced)
{
    int file = open("copy.log", O_CREAT | O_WRONLY | O_TRUNC | flags, 0644);
    for (long n = 0; n < count; n++)
        if (write(file, "x", 1) != 1 || (synced && fsync(file) != 0))
            exit(5);
    close(file);
    unlink("copy.log");
}

NOINLINE static void slow_hash(long rounds)
{
    volatile unsigned long sum = 1;
    for (long n = 0; n < rounds; n++)
        sum = sum * 6364136223846793005UL + 1;
}

NOINLINE static void share_the_cpu(long ms)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    if (fork() == 0) {
        compute(ms);
        _exit(0);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int held;

static void *hold_the_lock(void *ms)
{
    pthread_mutex_lock(&lock);
    held = 1;
    compute((long)ms);
    pthread_mutex_unlock(&lock);
    return NULL;
}

NOINLINE static void wait_for_the_lock(long ms)
{
    pthread_t other;
    pthread_create(&other, NULL, hold_the_lock, (void *)ms);
    while (!held)
        sched_yield();
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(other, NULL);
}

NOINLINE static void resolve(long ms)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof server;
    int silent = socket(AF_INET, SOCK_DGRAM, 0), asking = socket(AF_INET, SOCK_DGRAM, 0);
    bind(silent, (struct sockaddr *)&server, size);
    getsockname(silent, (struct sockaddr *)&server, &size);
    sendto(asking, "?", 1, 0, (struct sockaddr *)&server, size);
    poll(&(struct pollfd){asking, POLLIN, 0}, 1, ms);
    close(asking);
    close(silent);
}

NOINLINE static void read_cold(long mib)
{
    static unsigned char buffer[4096];
    int file = open("copy.disk", O_RDONLY);
    if (ioctl(file, BLKFLSBUF) != 0)
        exit(5);
    for (long left = mib << 20; left > 0; left -= sizeof buffer)
        if (read(file, buffer, sizeof buffer) != sizeof buffer)
            exit(5);
    close(file);
}

static void apply(const char *option)
{
    const char *value = strchr(option, '=');
    long count = value ? atol(value + 1) : 0;
#define IS(name) (!strncmp(option, name "=", sizeof name))
    if (IS("chains"))
        look_up(count);
    else if (IS("cold"))
        read_cold(count);
    else if (IS("exec"))
        start_programs(count);
    else if (IS("fault"))
        touch(count);
    else if (IS("fsync"))
        write_bytes(count, 0, 1);
    else if (IS("hash"))
        slow_hash(count);
    else if (IS("hog"))
        share_the_cpu(count);
    else if (IS("lock"))
        wait_for_the_lock(count);
    else if (IS("resolve"))
        resolve(count);
    else if (IS("sleep"))
        nanosleep(&(struct timespec){count / 1000, count % 1000 * 1000000}, NULL);
    else if (IS("sync"))
        write_bytes(count, O_SYNC, 0);
    else
        exit(2);
}

int main(int argc, char **argv)
{
    long left = argc > 2 ? atol(argv[1]) << 20 : 0, size = argc > 2 ? atol(argv[2]) : 0, got;
    int file = open("copy.data", O_RDONLY);
    if (left <= 0 || size <= 0 || file < 0) {
        fprintf(stderr, "usage: copy MIB BUFFER [OPTION=NUMBER…], in a directory with a file copy.data\n");
        return 2;
    }
    for (int n = 3; n < argc; n++)
        apply(argv[n]);
    unsigned char *buffer = malloc(size);
    unsigned long sum = 0;
    while (left > 0 && (got = read(file, buffer, size)) > 0) {
        sum += add_up(buffer, got);
        left -= got;
    }
    printf("%lu\n", sum);
    return 0;
}
