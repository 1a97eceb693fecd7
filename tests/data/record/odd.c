/* Programs that do what a recorder would rather they did not. odd WHAT [ARGUMENT ...] */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void say(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0) _exit(9);
}

/* All descriptors, those that it does not know, too; then it goes on with new ones. */
static int close_all(const char *path) {
    for (int fd = 0; fd < 65536; fd++) close(fd);
    syscall(SYS_close_range, 0, ~0U, 0);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    say(fd, "first\n");
    return fd != 0;
}

static int sandbox(void) {
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    char bytes[16];
    int fd = open("/dev/zero", O_RDONLY);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 1;
    for (int n = 0; n < 100; n++)
        if (read(fd, bytes, 16) != 16) return 2;
    say(1, "within\n");
    _exit(0);
}

/* The strictest list of all, under which the processor's clock may not be read either. */
static int strict(int by_call) {
    char bytes[16];
    int fd = open("/dev/zero", O_RDONLY);
    if (by_call ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 1;
    if (read(fd, bytes, 16) == 16) say(1, "within\n");
    syscall(SYS_exit, 0);
    return 3;
}

static int no_clock(void) {
    int status, fd = open("/dev/zero", O_RDONLY);
    char bytes[16];
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    if (read(fd, bytes, 16) != 16) return 1;
    pid_t child = fork();
    if (child == 0) _exit(read(fd, bytes, 16) != 16);
    waitpid(child, &status, 0);
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    return status != 0;
}

static unsigned long gs(void) {
    unsigned long base = 0;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    return base;
}

static void *has_gs(void *wanted) {
    int fd = open("/dev/null", O_RDONLY);
    return (void *)(long)(fd < 0 || gs() != (unsigned long)wanted);
}

/* Its own %gs: a block of memory, a number that points to nothing, nothing. */
static int own_gs(void) {
    static long block[8];
    unsigned long bases[] = {(unsigned long)block, 0x123456789000, 0};
    for (int n = 0; n < 3; n++) {
        pthread_t thread;
        void *wrong = 0;
        int status, fd;
        char bytes[16];
        syscall(SYS_arch_prctl, ARCH_SET_GS, bases[n]);
        fd = open("/dev/zero", O_RDONLY);
        if (read(fd, bytes, 16) != 16 || gs() != bases[n]) return 1;
        if (n == 2) return 0;
        pid_t child = fork();
        if (child == 0) _exit(gs() != bases[n] || read(fd, bytes, 16) != 16);
        waitpid(child, &status, 0);
        if (status) return 2;
        pthread_create(&thread, 0, has_gs, (void *)bases[n]);
        pthread_join(thread, &wrong);
        if (wrong) return 3;
    }
    return 0;
}

/* Code that is taken away and mapped again in the same place: odd over LIBRARY FILE */
static int over(const char *library, const char *path) {
    int fd = open(path, O_RDONLY), last = 0;
    for (int n = 0; n < 20; n++) {
        void *handle = dlopen(library, RTLD_NOW);
        if (!handle) return 1;
        int (*first)(int) = (int (*)(int))dlsym(handle, "first_byte");
        last = first(fd);
        dlclose(handle);
    }
    return last != 'a';
}

/* A byte of every free place that a program may ask for in a fixed place is its own. */
static int beside(void) {
    char *page = mmap((void *)0x10000000, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) return errno == EEXIST ? 0 : 1;
    memset(page, 1, 1 << 24);
    return munmap(page, 1 << 24);
}

static void *executes(void *words) {
    char **argv = words;
    execv(argv[0], argv);
    return 0;
}

static int exec_from_thread(char **words) {
    pthread_t thread;
    pthread_create(&thread, 0, executes, words);
    pthread_join(thread, 0);
    return 1;
}

/* Writes a numbered line, again and again; and after N of them to itself the signal that nobody survives. */
static int killed(const char *path, int lines) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char text[32];
    for (int n = 0; n < lines; n++) {
        int length = snprintf(text, sizeof text, "%d\n", n);
        if (pwrite(fd, text, length, n) != length) return 1;
    }
    kill(getpid(), SIGKILL);
    return 1;
}

/* A child that lives on when its parent has ended. */
static int daemonise(const char *path) {
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    usleep(200000);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    say(fd, "from the daemon\n");
    _exit(0);
}

/* Says that it runs; when it is told, by a byte, that the recorder is gone, makes calls and loads code, and ends. */
static int orphan(const char *library) {
    char byte;
    say(1, "ready\n");
    if (read(0, &byte, 1) != 1) return 1;
    int fd = open("/dev/zero", O_RDONLY);
    for (int n = 0; n < 100000; n++)
        if (read(fd, &byte, 1) != 1) return 2;
    if (library && !dlopen(library, RTLD_NOW)) return 3;
    say(1, "done\n");
    return 0;
}

/* Takes away, maps over and locks all that is mapped here and is no part of it: what is executable and has no name, and
   what a recorder shares with it. Prints how often it was refused, at least. */
static int map_over(void) {
    char line[512], rights[8], name[256];
    unsigned long low, high, places[64][2];
    int count = 0, fd = open("/dev/zero", O_RDONLY);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        name[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &low, &high, rights, name) < 3) return 1;
        if ((rights[2] == 'x' && !name[0]) || strstr(name, "etude-record"))
            if (count < 64) places[count][0] = low, places[count++][1] = high - low;
    }
    fclose(maps);
    for (int n = 0; n < count; n++) {
        void *place = (void *)places[n][0];
        unsigned long size = places[n][1];
        munmap(place, size);
        mmap(place, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        mprotect(place, size, PROT_NONE);
    }
    for (int n = 0; n < 100; n++)
        if (read(fd, line, 16) != 16) return 2;
    return 0;
}

static int limited(void) {
    struct rlimit limit = {400 << 20, 400 << 20};
    setrlimit(RLIMIT_AS, &limit);
    execl("/bin/sh", "sh", "-c", "ulimit -v; cat /dev/null; echo still", (char *)0);
    return 1;
}

static sigjmp_buf back;
static void jumps(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

/* A handler that never returns to where it came from, which may be within a call's recording. */
static int jump(void) {
    volatile int jumped = 0;
    int fd = open("/dev/zero", O_RDONLY);
    struct sigaction action = {.sa_handler = jumps};
    sigaction(SIGALRM, &action, 0);
    char byte;
    while (jumped < 2000) {
        if (sigsetjmp(back, 1)) jumped++;
        else {
            ualarm(30, 0);
            for (;;)
                if (read(fd, &byte, 1) != 1) return 1;
        }
    }
    ualarm(0, 0);
    return 0;
}

/* Where a call is interrupted: behind so many instructions, each of which the processor's trap flag makes a signal. */
static volatile long instructions;
enum { TRAP_FLAG = 0x100, TWO_RINGS = 4096 };

static int truncate_one(long n) {
    char path[3] = {'0' + (n >> 6 & 63), '0' + (n & 63), 0};
    return truncate(path, n);
}

static void fills_rings(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (instructions-- > 0) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    for (long n = 0; n < TWO_RINGS; n++) truncate_one(n);
}

/* One call is interrupted behind each of its instructions in turn: by a handler that fills the ring twice. */
static int stepped(void) {
    struct sigaction action = {.sa_sigaction = fills_rings, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, 0);
    for (long n = 0;; n++) {
        instructions = n;
        __asm__ volatile("pushf; orq %0, (%%rsp); popf" ::"i"(TRAP_FLAG) : "memory", "cc");
        truncate_one(TWO_RINGS + n);
        __asm__ volatile("pushf; andq %0, (%%rsp); popf" ::"i"(~TRAP_FLAG) : "memory", "cc");
        if (instructions >= 0) return 0;
    }
}

/* Threads, one after the other, each with its own file. */
static void *copies(void *path) {
    char bytes[100];
    int from = open(path, O_RDONLY);
    while (read(from, bytes, sizeof bytes) > 0);
    lseek(from, 7, SEEK_SET);
    close(from);
    return 0;
}

static int threads(char *path) {
    for (int n = 0; n < 4; n++) {
        pthread_t thread;
        pthread_create(&thread, 0, copies, path);
        pthread_join(thread, 0);
    }
    return 0;
}

/* Job control: stopped, and continued by another. */
static int stopped(void) {
    pid_t child = fork();
    int status, fd = open("/dev/zero", O_RDONLY);
    char byte;
    if (child == 0) {
        raise(SIGSTOP);
        _exit(read(fd, &byte, 1) != 1);
    }
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return 1;
    kill(child, SIGCONT);
    if (waitpid(child, &status, 0) != child) return 2;
    return WEXITSTATUS(status);
}

static int trapped;
static void traps(int signal) { trapped = signal; }

static int own_trap(void) {
    signal(SIGTRAP, traps);
    __asm__ volatile("int3");
    return trapped != SIGTRAP;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "", *first = count > 2 ? words[2] : 0;
#define IS(name) if (!strcmp(what, name))
    IS("close-all") return close_all(first);
    IS("sandbox") return sandbox();
    IS("strict") return strict(0);
    IS("strict-call") return strict(1);
    IS("no-clock") return no_clock();
    IS("own-gs") return own_gs();
    IS("over") return over(first, words[3]);
    IS("beside") return beside();
    IS("exec-from-thread") return exec_from_thread(words + 2);
    IS("killed") return killed(first, 5000);
    IS("daemon") return daemonise(first);
    IS("orphan") return orphan(first);
    IS("map-over") return map_over();
    IS("limited") return limited();
    IS("jump") return jump();
    IS("stepped") return stepped();
    IS("threads") return threads(words[2]);
    IS("stopped") return stopped();
    IS("own-trap") return own_trap();
    return 2;
}
