/* Calls whose trace can be checked one by one: threads, signals, children and deaths, all at once, for a time.
 *
 * soak COUNTS SECONDS THREADS CALLS_A_SECOND
 * soak COUNTS child STEPS
 *
 * Each sequence of calls is a lane: what its n-th call is, with which arguments and which result, follows from n alone
 * (`step_whole`, `step_signal`). Most calls carry lane << 40 | n * 64 as an offset. How far each lane has come stands in
 * the file COUNTS, which all processes share, so that it is known also of those that are killed. bench/soaks/rules.py has
 * the same rules, and reads both.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LANES = 1 << 20, LONGEST = 4200, OWN = 1 << 16, STACK = 1 << 17, LONG = 6000 };
enum { WHOLE = 1, HANDLER = 2, MORTAL = 4, JUMPER = 8 }; /* of a lane: which rule; run by signals; killed; jumped out of */

struct lane {
    uint32_t flags, pid, tid, times; /* signals handled, or jumps */
    volatile uint64_t begun, done;   /* calls */
    uint64_t buffer, pieces;         /* addresses, as they are passed */
    int32_t null, zero, own, unused;
};

extern char **environ;
static struct lane *lanes; /* the first is the head: `begun` lanes are given out, `done` processes were started */
static const char *counts, *self;
static char names[LONGEST + 1], buffer[64];
static struct iovec pieces[2];
static int null = -1, zero = -1, shared = -1;
static uint32_t mortal; /* what every new lane of this process is */
static volatile int over;
static __thread struct lane *by_signal[3];

static struct lane *new_lane(uint32_t flags, int own) {
    uint64_t number = __atomic_add_fetch(&lanes->begun, 1, __ATOMIC_RELAXED);
    if (number >= LANES) _exit(70);
    struct lane *lane = lanes + number;
    lane->pid = getpid(), lane->tid = gettid();
    lane->buffer = (uintptr_t)buffer, lane->pieces = (uintptr_t)pieces;
    lane->null = null, lane->zero = zero, lane->own = own;
    lane->flags = flags | mortal;
    return lane;
}

static uint64_t place(struct lane *lane, uint64_t n) { return (uint64_t)(lane - lanes) << 40 | n * 64; }
static size_t length(uint64_t n) { return 1 + n * 7 % 61; }

/* A path of any length that leads nowhere: an end of `names`. */
static const char *path(uint64_t x) {
    return names + LONGEST - (x % 4 ? 1 + x * 37 % 120 : 1 + x / 4 * 1543 % LONGEST);
}

static long straight(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return number;
}

/* All of these may be made by a handler, and by a child of vfork. */
static void step_signal(struct lane *lane, uint64_t n) {
    uint64_t at = place(lane, n);
    lane->begun = n + 1;
    switch (n % 8) {
    case 0: pwrite(null, buffer, length(n), at); break;
    case 1: pread(zero, buffer, length(n), at); break;
    case 2: syscall(SYS_pwrite64, null, buffer, length(n), at); break;
    case 3: syscall(SYS_pread64, zero, buffer, length(n), at); break;
    case 4: straight(SYS_pwrite64, null, (long)buffer, length(n), at); break;
    case 5: pwritev(null, pieces, 2, at); break;
    case 6: truncate(path(n / 8), at); break;
    case 7: ftruncate(-1, at); break;
    }
    lane->done = n + 1;
}

struct held { /* by one lane, from one call to the next */
    int first, second;
    char *memory;
};

static void step_whole(struct lane *lane, uint64_t n, struct held *held) {
    uint64_t at = place(lane, n), x = n / 32, within = n * 64 % OWN;
    int own = lane->own;
    lane->begun = n + 1;
    switch (n % 32) {
    case 2: pwrite(own, buffer, length(n), within); break;
    case 3: pread(own, buffer, length(n), within); break;
    case 4: if (write(null, buffer, length(n))) {} break;
    case 5: if (read(zero, buffer, length(n))) {} break;
    case 6: open(path(x), O_RDONLY); break;
    case 7: lseek(own, n * 64, SEEK_SET); break;
    case 10: held->first = open("/dev/null", O_RDWR | O_CLOEXEC); break;
    case 11: held->second = dup(held->first); break;
    case 12: pwritev(null, pieces, 2, at); break;
    case 13: close(held->second); break;
    case 14: held->second = fcntl(held->first, F_DUPFD_CLOEXEC, 100); break;
    case 15: close(held->second); break;
    case 16: close(held->first); break;
    case 17: rename(path(x), path(x + 1)); break;
    case 18: held->memory = mmap(0, 4096 * (1 + n / 32 % 3), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    case 19: munmap(held->memory, 4096 * (1 + n / 32 % 3)); break;
    case 22: close(0x20000000 + n % 0x1000000); break;
    case 23: open((const char *)8, O_RDONLY); break;
    case 24: syscall(SYS_pwrite64, null, buffer, length(n), at); break;
    case 25: syscall(SYS_pread64, zero, buffer, length(n), at); break;
    case 26: straight(SYS_pwrite64, null, (long)buffer, length(n), at); break;
    case 27: ftruncate(-1, at); break;
    case 28: fallocate(-1, 0, at, length(n)); break;
    case 29: truncate(path(x), at); break;
    case 30: if (readlink(path(x + 2), buffer, sizeof buffer)) {} break;
    case 31: pread(own, buffer, length(n), at); break; /* far behind the end */
    default:
        if (n % 2) pread(zero, buffer, length(n), at);
        else pwrite(null, buffer, length(n), at);
    }
    lane->done = n + 1;
}

static void run(struct lane *lane, uint64_t from, uint64_t to) {
    static __thread struct held held;
    for (uint64_t n = from; n < to; n++)
        if (lane->flags & WHOLE) step_whole(lane, n, &held);
        else step_signal(lane, n);
}

/* --- signals */

static const int signals[] = {SIGALRM, SIGUSR1, SIGUSR2};

static struct lane *handled(int signal) {
    int which = signal == SIGALRM ? 0 : signal == SIGUSR1 ? 1 : 2;
    struct lane *lane = by_signal[which] ? by_signal[which] : (by_signal[which] = new_lane(HANDLER, -1));
    lane->times++;
    return lane;
}

/* Some calls; now and then more than a ring holds. */
static void handler(int signal) {
    int kept = errno;
    struct lane *lane = handled(signal);
    uint64_t n = lane->done, many = lane->times % LONG == 100 ? 6000 : 1 + lane->times % 3;
    for (uint64_t end = n + many; n < end; n++) step_signal(lane, n);
    errno = kept;
}

static __thread sigjmp_buf back;
static __thread struct lane *jumping;

static void jumps(int signal) {
    struct lane *lane = handled(signal);
    uint64_t n = lane->done;
    for (uint64_t end = n + 1 + lane->times % 2; n < end; n++) step_signal(lane, n);
    if (lane->times % 2) {
        jumping->times++;
        siglongjmp(back, 1);
    }
}

static void mask(int how, int but) {
    sigset_t set;
    sigfillset(&set);
    if (but) sigdelset(&set, but);
    pthread_sigmask(how, &set, 0);
}

static timer_t timer(int signal, long every_ns) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event._sigev_un._tid = gettid();
    struct itimerspec every = {{0, every_ns}, {0, every_ns}};
    timer_t made;
    timer_create(CLOCK_MONOTONIC, &event, &made);
    timer_settime(made, 0, &every, 0);
    return made;
}

static void alarms(long every_us) {
    struct itimerval every = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &every, 0);
}

static void nap(double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ns = until.tv_nsec + (long)(seconds * 1e9);
    until.tv_sec += ns / 1000000000, until.tv_nsec = ns % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == EINTR);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* --- threads */

static double rate; /* calls a second of each worker */
static pthread_t workers[64];
static int many;

static void *works(void *number) {
    char name[32];
    struct held held;
    snprintf(name, sizeof name, "own-%ld", (long)number);
    int own = open(name, O_RDWR | O_CREAT, 0644);
    if (ftruncate(own, OWN + 64)) _exit(71);
    struct lane *lane = new_lane(WHOLE, own);
    timer_t every = timer(SIGUSR2, 4000000);
    double began = now();
    static const int bursts[] = {50, 500, 50, 6000, 1, 700};
    uint64_t n = 0;
    for (int turn = (int)(long)number; !over; turn++) {
        for (uint64_t end = n + bursts[turn % 6]; n < end; n++) step_whole(lane, n, &held);
        double ahead = began + n / rate - now();
        if (ahead > 0) nap(ahead);
    }
    timer_delete(every);
    return 0;
}

static void *jumper(void *unused) {
    (void)unused;
    struct lane *volatile lane = jumping = new_lane(JUMPER, -1);
    mask(SIG_BLOCK, SIGVTALRM);
    if (sigsetjmp(back, 1) == 0) timer(SIGVTALRM, 2000000);
    while (!over) {
        for (int k = 0; k < 20; k++) step_signal(lane, lane->begun); /* one that was left is not made again */
        struct timespec little = {0, 5000000}; /* where most jumps begin */
        if (lane->begun / 20 % 2) nanosleep(&little, 0);
    }
    mask(SIG_BLOCK, 0);
    return 0;
}

static void *short_lived(void *steps) {
    run(new_lane((long)steps % 2 ? WHOLE : 0, shared), 0, (long)steps);
    return 0;
}

/* Until it is killed: seven of eight rest now and then. */
static void *endless(void *which) {
    struct lane *lane = new_lane((long)which % 2 ? WHOLE : 0, shared);
    for (uint64_t n = 0;; n += 64) {
        run(lane, n, n + 64);
        if ((long)which % 8) nap(0.0005);
    }
}

static pthread_t begin(void *(*what)(void *), long with) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    if (pthread_create(&thread, &small, what, (void *)with)) _exit(72);
    return thread;
}

static void *comes_and_goes(void *unused) {
    (void)unused;
    for (long turn = 0; !over; turn++) {
        pthread_t threads[3];
        for (int n = 0; n < 3; n++) threads[n] = begin(short_lived, 20 + turn * 13 % 300 + n);
        for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
        nap(0.1);
    }
    return 0;
}

static void *kills(void *unused) {
    (void)unused;
    for (unsigned turn = 0; !over; turn++) {
        pthread_kill(workers[turn % many], SIGUSR1);
        nap(0.002);
    }
    return 0;
}

/* --- processes */

static void count_process(void) { __atomic_add_fetch(&lanes->done, 1, __ATOMIC_RELAXED); }

/* In a child, all signals blocked: its lanes are its own. */
static void alone(uint32_t flags) {
    memset(by_signal, 0, sizeof by_signal);
    mortal = flags;
    mask(SIG_UNBLOCK, 0);
    alarms(1000);
}

static void child(long turn, char **words) {
    switch (turn % 8) {
    case 0: /* some calls */
    case 1:
        alone(0);
        run(new_lane(turn % 16 < 8 ? WHOLE : 0, shared), 0, 100 + turn % 400);
        alarms(0), mask(SIG_BLOCK, 0);
        _exit(0);
    case 2: { /* threads of its own */
        alone(0);
        pthread_t threads[2] = {begin(short_lived, 200), begin(short_lived, 301)};
        for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
        alarms(0), mask(SIG_BLOCK, 0);
        _exit(0);
    }
    case 3: /* until it is killed */
        alone(MORTAL);
        endless((void *)(turn / 8));
    case 4: /* with threads, until it is killed */
        alone(MORTAL);
        begin(endless, turn / 8), endless((void *)(turn / 8 + 1));
    case 5: /* it ends, or executes, while its threads are at it */
        alone(MORTAL);
        begin(endless, turn / 8), begin(endless, turn / 8 + 1);
        nap(0.004);
        alarms(0);
        if (turn % 16 < 8) _exit(0);
        execv(self, words);
        _exit(73);
    case 6: /* executes another program; vfork and posix_spawn are below */
        execv(self, words);
        _exit(73);
    }
}

static void one_child(long turn) {
    char steps[16];
    snprintf(steps, sizeof steps, "%ld", 100 + turn % 200);
    char *words[] = {"soak", (char *)counts, "child", steps, 0}, *nothing[] = {"true", 0};
    pid_t pid;
    mask(SIG_BLOCK, 0);
    count_process();
    if (turn % 8 == 7 && turn % 16 < 8) { /* its calls are made in this process's memory */
        pid = vfork();
        if (pid == 0) {
            run(new_lane(0, shared), 0, 50);
            if (turn % 32 < 16) _exit(0);
            execv(self, words);
            _exit(73);
        }
    } else if (turn % 8 == 7) {
        if (posix_spawn(&pid, turn % 32 < 16 ? self : "/bin/true", 0, 0, turn % 32 < 16 ? words : nothing, environ)) _exit(74);
    } else {
        pid = fork();
        if (pid == 0) child(turn, words);
    }
    if (pid < 0) _exit(75);
    mask(SIG_UNBLOCK, 0);
    if (turn % 8 == 3 || turn % 8 == 4) nap(turn * 7 % 13 * 0.0005), kill(pid, SIGKILL);
    while (waitpid(pid, 0, 0) < 0 && errno == EINTR);
}

static void *forks(void *first) {
    for (long turn = (long)first; !over; turn += 2) {
        one_child(turn);
        nap(0.06);
    }
    return 0;
}

/* --- all of it */

static void prepare(void) {
    for (int k = 1; k <= LONGEST; k++) names[LONGEST - k] = k % 97 ? 'a' + (k * k + 3 * k) % 26 : '/';
    pieces[0] = (struct iovec){buffer, 5}, pieces[1] = (struct iovec){buffer, 11};
    int file = open(counts, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || ftruncate(file, LANES * sizeof *lanes)) exit(5);
    lanes = mmap(0, LANES * sizeof *lanes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    null = open("/dev/null", O_RDWR | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    shared = open("shared", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lanes == MAP_FAILED || null < 0 || zero < 0 || shared < 0 || ftruncate(shared, OWN + 64)) exit(5);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (int n = 0; n < 3; n++) sigaction(signals[n], &action, 0);
    action.sa_handler = jumps;
    sigaction(SIGVTALRM, &action, 0);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    counts = words[1];
    self = "/proc/self/exe";
    prepare();
    if (!strcmp(words[2], "child")) {
        alone(0);
        run(new_lane(WHOLE, shared), 0, atol(words[3]));
        alarms(0), mask(SIG_BLOCK, 0);
        return 0;
    }
    if (count < 5) return 2;
    double seconds = atof(words[2]);
    many = atoi(words[3]);
    if (many < 1 || many > 64) return 2;
    rate = atof(words[4]) / many;
    count_process();
    for (int n = 0; n < many; n++) workers[n] = begin(works, n);
    pthread_t others[] = {begin(jumper, 0), begin(comes_and_goes, 0), begin(kills, 0), begin(forks, 0), begin(forks, 1)};
    alarms(1000);
    nap(seconds);
    alarms(0);
    over = 1;
    for (size_t n = 0; n < sizeof others / sizeof *others; n++) pthread_join(others[n], 0);
    for (int n = 0; n < many; n++) pthread_join(workers[n], 0);
    printf("%lu lanes, %lu processes\n", (unsigned long)lanes->begun, (unsigned long)lanes->done);
    return 0;
}
