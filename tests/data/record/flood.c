/* So many threads make so many calls each as fast as they can: flood THREADS CALLS [FIFO PRIORITY]. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static long each;

static void *calls(void *unused) {
    char byte;
    int fd = open("/dev/zero", O_RDONLY);
    for (long n = 0; n < each; n++)
        if (pread(fd, &byte, 1, n) != 1) exit(3);
    close(fd);
    return unused;
}

int main(int count, char **words) {
    pthread_t threads[64];
    int many = count > 2 ? atoi(words[1]) : 0;
    if (many < 1 || many > 64) return 2;
    each = atol(words[2]);
    if (count > 3) {
        struct sched_param parameters = {atoi(words[3])};
        if (sched_setscheduler(0, SCHED_FIFO, &parameters)) return 4;
    }
    for (int n = 0; n < many; n++)
        if (pthread_create(threads + n, 0, calls, 0)) return 5;
    for (int n = 0; n < many; n++) pthread_join(threads[n], 0);
    return 0;
}
