// One makes "before" and then lets another go on, which makes "after".
// meets threads|joins|processes|locks|fcntl|pipes|socketpairs|looks|unix|abstract|eventfd

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t *gate;
static int pair[2], counter;

// A range of the file, from its second byte on.
static void range(int file, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = 1, .l_len = 10};
    if (fcntl(file, F_SETLKW, &range))
        err(1, "fcntl");
}

// A socket that is bound, or connected, to "socket"; of "abstract" to the same name in no file system.
static int named(const char *kind, int (*at)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un name = {AF_UNIX, "socket"};
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    if (!strcmp(kind, "abstract"))
        name.sun_path[0] = 0;
    if (at(own, (struct sockaddr *)&name, sizeof name))
        err(1, "socket");
    return own;
}

static void *waits(void *kind)
{
    char byte;
    uint64_t count;
    if (!strcmp(kind, "locks")) {
        int own = open("lock", O_RDWR);
        flock(own, LOCK_EX);
    } else if (!strcmp(kind, "fcntl")) {
        range(open("lock", O_RDWR), F_WRLCK);
    } else if (!strcmp(kind, "eventfd")) {
        if (read(counter, &count, 8) != 8)
            err(1, "read");
    } else if (!strcmp(kind, "pipes")) {
        if (read(pair[0], &byte, 1) != 1)
            err(1, "read");
    } else if (!strcmp(kind, "socketpairs")) {
        if (recv(pair[0], &byte, 1, 0) != 1 || send(pair[0], &byte, 1, 0) != 1)
            err(1, "recv");
        close(pair[1]);
        if (read(pair[0], &byte, 1))
            err(1, "more");
    } else if (!strcmp(kind, "unix") || !strcmp(kind, "abstract")) {
        if (accept(pair[0], 0, 0) < 0)
            err(1, "accept");
    } else if (!strcmp(kind, "looks")) {
        // As an event loop does.
        struct pollfd asked = {pair[0], POLLIN, 0};
        while (recv(pair[0], &byte, 1, MSG_DONTWAIT) != 1)
            if (errno != EAGAIN || poll(&asked, 1, -1) != 1)
                err(1, "recv");
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
        errx(2, "expected: threads|joins|processes|locks|fcntl|pipes|socketpairs|looks|unix|abstract|eventfd");
    int threads = !strcmp(argv[1], "threads"), locks = !strcmp(argv[1], "locks");
    int ranges = !strcmp(argv[1], "fcntl");
    if (!strcmp(argv[1], "joins")) {
        pthread_create(&other, 0, ends, 0);
        pthread_join(other, 0);
        mkdir("after", 0755);
        return 0;
    }
    gate = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(gate, !threads, 0);
    int sockets = !strcmp(argv[1], "socketpairs") || !strcmp(argv[1], "looks");
    int connects = !strcmp(argv[1], "unix") || !strcmp(argv[1], "abstract");
    if (connects) {
        pair[0] = named(argv[1], bind);
        listen(pair[0], 5);
    } else if (sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, pair) : pipe(pair))
        err(1, "pair");
    int own = open("lock", O_RDWR | O_CREAT, 0644);
    counter = eventfd(0, 0);
    if (locks)
        flock(own, LOCK_EX);
    else if (ranges)
        range(own, F_RDLCK);
    if (threads)
        pthread_create(&other, 0, waits, argv[1]);
    else if (!fork())
        _exit(waits(argv[1]) != 0);
    usleep(20000); // it waits now
    mkdir("before", 0755);
    usleep(5000);
    if (locks)
        flock(own, LOCK_UN);
    else if (ranges)
        range(own, F_UNLCK);
    else if (!strcmp(argv[1], "eventfd"))
        return write(counter, &(uint64_t){1}, 8) != 8 || wait(0) < 0;
    else if (connects)
        close(named(argv[1], connect));
    else if (sockets) {
        char byte = 'x';
        if (send(pair[1], &byte, 1, 0) != 1)
            err(1, "send");
        if (!strcmp(argv[1], "socketpairs") && (recv(pair[1], &byte, 1, 0) != 1 || shutdown(pair[1], SHUT_WR)))
            err(1, "shutdown");
    } else if (!strcmp(argv[1], "pipes"))
        return write(pair[1], "x", 1) != 1 || wait(0) < 0;
    else
        sem_post(gate);
    if (threads)
        pthread_join(other, 0);
    else
        wait(0);
    return 0;
}
