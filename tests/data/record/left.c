/* Calls at a place that no jump can take, for the flags are needed behind it: in threads, children and handlers, under
   signals. left FILE ROUNDS: whether all was right. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int file, rounds;
static volatile int wrong, handled;

__attribute__((noinline)) static long flagged(long fd, char *to, long size, long at, int equal) {
    long result;
    unsigned char kept;
    register long r10 __asm__("r10") = at;
    __asm__ volatile("cmp $1, %[equal]\n mov %[number], %%eax\n syscall\n sete %[kept]"
                     : "=&a"(result), [kept] "=&r"(kept)
                     : [equal] "r"(equal), [number] "i"(SYS_pread64), "D"(fd), "S"(to), "d"(size), "r"(r10)
                     : "rcx", "r11", "memory", "cc");
    if (kept != (equal == 1)) wrong = 1;
    return result;
}

/* The same, but the call's number comes from elsewhere. */
__attribute__((noinline)) static long any(long number, long a, long b, long c, int equal) {
    unsigned char kept;
    long result;
    __asm__ volatile("cmp $1, %[equal]\n syscall\n mov %%rax, %[result]\n sete %[kept]"
                     : "+a"(number), [kept] "=&r"(kept), [result] "=&r"(result)
                     : [equal] "r"(equal), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory", "cc");
    if (kept != (equal == 1)) wrong = 1;
    return result;
}

static void handler(int signal) {
    char byte;
    (void)signal;
    if (flagged(file, &byte, 1, 3, 1) != 1 || byte != 'd') wrong = 1;
    handled = 1;
}

static void *reads(void *unused) {
    char bytes[4];
    for (int n = 0; n < rounds; n++)
        if (flagged(file, bytes, 4, n % 4, n % 2) != 4 || bytes[0] != "abcd"[n % 4]) wrong = 1;
    return unused;
}

static volatile int trapped;
static void traps(int signal) {
    (void)signal;
    trapped++;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    file = open(words[1], O_RDONLY), rounds = atoi(words[2]);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t threads[3];
    sigset_t alarms; /* for this thread alone: one that is woken for a signal that another takes counts, unseen */
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, 0);
    for (int n = 0; n < 3; n++) pthread_create(threads + n, 0, reads, 0);
    pthread_sigmask(SIG_UNBLOCK, &alarms, 0);
    int ends[2], status;
    char byte = 0;
    if (pipe(ends)) return 3;
    pid_t child = any(SYS_fork, 0, 0, 0, 1);
    if (child == 0) {
        reads(0);
        usleep(50000);
        if (any(SYS_write, ends[1], (long)"x", 1, 0) != 1) wrong = 1;
        any(SYS_exit_group, wrong, 0, 0, 0);
    }
    if (any(SYS_read, ends[0], (long)&byte, 1, 1) != 1 || byte != 'x') wrong = 1; /* waits, and is begun again */
    while (waitpid(child, &status, 0) < 0);
    if (status) wrong = 1;
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    setitimer(ITIMER_REAL, &never, 0);
    signal(SIGTRAP, traps);
    __asm__ volatile("int3");
    raise(SIGTRAP);
    if (trapped != 2) wrong = 1; /* they are its own */
    printf("%s %s\n", wrong ? "wrong" : "right", handled ? "handled" : "not handled");
    return 0;
}
