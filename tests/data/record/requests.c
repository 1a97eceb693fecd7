// Writes blocks of 4 KiB to a file by asynchronous requests, makes them durable, and reads them back.
// requests uring|fixed|links|aio DEPTH COUNT FILE

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, MOST = 1024 };

static char buffers[MOST][BLOCK] __attribute__((aligned(4096)));
static int file, depth, fixed;

struct ring {
    int fd;
    unsigned *sq_head, *sq_tail, *sq_mask, *array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
};
static struct ring ring;

static void make_ring(void)
{
    struct io_uring_params params = { 0 };
    ring.fd = syscall(SYS_io_uring_setup, depth, &params);
    if (ring.fd < 0)
        err(77, "io_uring_setup");
    size_t queue = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t done = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    int both = PROT_READ | PROT_WRITE;
    char *sq = mmap(0, queue, both, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    char *cq = mmap(0, done, both, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(0, params.sq_entries * sizeof(struct io_uring_sqe), both, MAP_SHARED, ring.fd,
                        IORING_OFF_SQES);
    ring.sq_head = (unsigned *)(sq + params.sq_off.head);
    ring.sq_tail = (unsigned *)(sq + params.sq_off.tail);
    ring.sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
    ring.array = (unsigned *)(sq + params.sq_off.array);
    ring.cq_head = (unsigned *)(cq + params.cq_off.head);
    ring.cq_tail = (unsigned *)(cq + params.cq_off.tail);
    ring.cq_mask = (unsigned *)(cq + params.cq_off.ring_mask);
    ring.completions = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
    if (fixed && syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &file, 1) < 0)
        err(1, "io_uring_register");
}

static void put(int opcode, int number, long offset, int length, int flags)
{
    unsigned tail = *ring.sq_tail, place = tail & *ring.sq_mask;
    struct io_uring_sqe *entry = &ring.entries[place];
    memset(entry, 0, sizeof *entry);
    entry->opcode = opcode;
    entry->flags = flags | (fixed ? IOSQE_FIXED_FILE : 0);
    entry->fd = fixed ? 0 : file;
    entry->off = offset;
    entry->addr = length ? (unsigned long)buffers[number % MOST] : 0;
    entry->len = length;
    entry->user_data = 0x5a5a0000 + number;
    ring.array[place] = place;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static int enter(int submit, int wait)
{
    int taken = syscall(SYS_io_uring_enter, ring.fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, 0, 0);
    if (taken < 0)
        err(1, "io_uring_enter");
    return taken;
}

static int reap(void)
{
    int many = 0;
    unsigned head = *ring.cq_head;
    for (; head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE); head++, many++)
        if (ring.completions[head & *ring.cq_mask].res < 0)
            errx(1, "a request: %s", strerror(-ring.completions[head & *ring.cq_mask].res));
    __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    return many;
}

static void by_ring(int opcode, int count)
{
    int under_way = 0, next = 0;
    while (next < count || under_way) {
        int more = 0;
        for (; next < count && under_way + more < depth; next++, more++)
            put(opcode, next, (long)next * BLOCK, BLOCK, 0);
        under_way += more;
        enter(more, 1);
        under_way -= reap();
    }
}

static void linked(int count)
{
    for (int next = 0; next < count; next++) {
        put(IORING_OP_WRITE, next, (long)next * BLOCK, BLOCK, IOSQE_IO_LINK);
        put(IORING_OP_FSYNC, next, 0, 0, 0);
        for (int left = 2; left;) {
            enter(left == 2 ? 2 : 0, left);
            left -= reap();
        }
    }
}

static void by_aio(int opcode, int count)
{
    static struct iocb requests[MOST];
    struct iocb *pointers[MOST];
    struct io_event events[MOST];
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, depth, &context) < 0)
        err(77, "io_setup");
    for (int next = 0; next < count;) {
        int many = count - next < depth ? count - next : depth;
        for (int place = 0; place < many; place++, next++) {
            requests[place] = (struct iocb) { .aio_fildes = file, .aio_lio_opcode = opcode,
                .aio_buf = (unsigned long)buffers[place], .aio_nbytes = BLOCK,
                .aio_offset = (long)next * BLOCK };
            pointers[place] = &requests[place];
        }
        if (syscall(SYS_io_submit, context, many, pointers) != many)
            err(1, "io_submit");
        if (syscall(SYS_io_getevents, context, many, many, events, 0) != many)
            err(1, "io_getevents");
        for (int place = 0; place < many; place++)
            if (events[place].res != BLOCK)
                errx(1, "a request: %lld", (long long)events[place].res);
    }
    syscall(SYS_io_destroy, context);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        errx(2, "expected: uring|fixed|links|aio DEPTH COUNT FILE");
    int count = atoi(argv[3]);
    struct timespec begin, end;
    depth = atoi(argv[2]);
    fixed = !strcmp(argv[1], "fixed");
    file = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0644);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!strcmp(argv[1], "aio")) {
        by_aio(IOCB_CMD_PWRITE, count);
        fsync(file);
        by_aio(IOCB_CMD_PREAD, count);
    } else {
        make_ring();
        if (!strcmp(argv[1], "links"))
            linked(count);
        else
            by_ring(IORING_OP_WRITE, count);
        put(IORING_OP_FSYNC, 0, 0, 0, 0);
        enter(1, 1);
        reap();
        by_ring(IORING_OP_READ, count);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9);
    close(file);
    return 0;
}
