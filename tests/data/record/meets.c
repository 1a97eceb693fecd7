// One makes "before" and then lets another go on, which makes "after".
// meets threads|joins|processes|locks|pipes

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t *gate;
static int pair[2];

static void *waits(void *kind)
{
    char byte;
    if (!strcmp(kind, "locks")) {
        int own = open("lock", O_RDWR);
        flock(own, LOCK_EX);
    } else if (!strcmp(kind, "pipes")) {
        if (read(pair[0], &byte, 1) != 1)
            err(1, "read");
    } else {
        while (sem_wait(gate))
            ;
    }
    mkdir("after", 0755);
    return 0;
}

static void *ends(void *unused)
{
    usleep(20000);
    mkdir("before", 0755);
    usleep(5000);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t other;
    if (argc != 2)
        errx(2, "expected: threads|joins|processes|locks|pipes");
    int threads = !strcmp(argv[1], "threads"), locks = !strcmp(argv[1], "locks");
    if (!strcmp(argv[1], "joins")) {
        pthread_create(&other, 0, ends, 0);
        pthread_join(other, 0);
        mkdir("after", 0755);
        return 0;
    }
    gate = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(gate, !threads, 0);
    if (pipe(pair))
        err(1, "pipe");
    int own = open("lock", O_RDWR | O_CREAT, 0644);
    if (locks)
        flock(own, LOCK_EX);
    if (threads)
        pthread_create(&other, 0, waits, argv[1]);
    else if (!fork())
        _exit(waits(argv[1]) != 0);
    usleep(20000); // it waits now
    mkdir("before", 0755);
    usleep(5000);
    if (locks)
        flock(own, LOCK_UN);
    else if (!strcmp(argv[1], "pipes"))
        return write(pair[1], "x", 1) != 1 || wait(0) < 0;
    else
        sem_post(gate);
    if (threads)
        pthread_join(other, 0);
    else
        wait(0);
    return 0;
}
