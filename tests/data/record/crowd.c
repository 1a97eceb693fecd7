/* Threads that read, open and load code, under signals whose handler reads, while the process forks, spawns and vforks.
   crowd FILE LIBRARY ROUNDS: prints how many of the reads were right, all of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *path, *library;
static int file, rounds;
static volatile int handled, wrong;

static void handler(int signal) {
    int kept = errno;
    char byte;
    (void)signal;
    if (pread(file, &byte, 1, 3) != 1 || byte != 'd') wrong = 1;
    handled = 1;
    errno = kept;
}

static void *reads(void *unused) {
    (void)unused;
    char bytes[8];
    for (int n = 0; n < rounds * 100; n++) {
        if (pread(file, bytes, 4, n % 4) != 4 || bytes[0] != "abcd"[n % 4]) wrong = 1;
        if (n % 10 == 0) {
            int fd = open(path, O_RDONLY);
            if (fd < 0 || read(fd, bytes, 8) != 8 || memcmp(bytes, "abcdefgh", 8)) wrong = 1;
            close(fd);
        }
    }
    return 0;
}

static void *loads(void *unused) {
    (void)unused;
    for (int n = 0; n < rounds; n++) {
        void *handle = dlopen(library, RTLD_NOW);
        int (*first)(int) = handle ? (int (*)(int))dlsym(handle, "first_byte") : 0;
        if (!first || first(file) != 'a') wrong = 1;
        if (handle) dlclose(handle);
    }
    return 0;
}

static void children(void) {
    int status;
    char bytes[8], *words[] = {"true", 0};
    pid_t child = fork();
    if (child == 0) _exit(pread(file, bytes, 8, 0) != 8);
    while (waitpid(child, &status, 0) < 0);
    if (status) wrong = 1;
    if (posix_spawn(&child, "/bin/true", 0, 0, words, environ)) wrong = 1;
    while (waitpid(child, &status, 0) < 0);
    if (status) wrong = 1;
    child = vfork();
    if (child == 0) {
        execv("/bin/true", words);
        _exit(1);
    }
    while (waitpid(child, &status, 0) < 0);
    if (status) wrong = 1;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    path = words[1], library = words[2], rounds = atoi(words[3]);
    file = open(path, O_RDONLY);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval every = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t threads[4];
    for (int n = 0; n < 4; n++) pthread_create(threads + n, 0, n < 3 ? reads : loads, 0);
    for (int n = 0; n < rounds / 10; n++) children();
    for (int n = 0; n < 4; n++) pthread_join(threads[n], 0);
    printf("%s %s\n", wrong ? "wrong" : "right", handled ? "handled" : "not handled");
    return 0;
}
