/* chase PAGES REPEATS: nanoseconds a load takes, in a random cycle over one line of each of PAGES pages of 4 KiB, and
 * over as many lines side by side. The caches are filled alike; what the first takes longer are address translations. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, LINE = 64, LOADS = 1 << 20 };

static uint64_t state = 88172645463325252u;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

static double chased(char *memory, size_t count, size_t stride, size_t *order)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count - 1; i > 0; i--) { /* a cycle through all: Sattolo's */
        size_t j = drawn(i), other = order[i];
        order[i] = order[j], order[j] = other;
    }
    for (size_t i = 0; i < count; i++) {
        size_t shift = stride == PAGE ? i % (PAGE / LINE) * LINE : 0, next = order[i];
        size_t there = stride == PAGE ? next % (PAGE / LINE) * LINE : 0;
        *(void **)(memory + i * stride + shift) = memory + next * stride + there;
    }
    void **at = (void **)memory;
    struct timespec begin, end;
    for (size_t i = 0; i < count; i++)
        at = *at;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t i = 0; i < LOADS; i++)
        at = *at;
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!at)
        abort();
    return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / LOADS;
}

int main(int words, char **word)
{
    size_t pages = words == 3 ? strtoul(word[1], 0, 10) : 0, repeats = words == 3 ? strtoul(word[2], 0, 10) : 0;
    if (!pages || !repeats)
        return 2;
    char *memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t *order = malloc(pages * sizeof *order);
    if (memory == MAP_FAILED || !order || madvise(memory, pages * PAGE, MADV_NOHUGEPAGE))
        return 1;
    for (size_t i = 0; i < repeats; i++) {
        double spread = chased(memory, pages, PAGE, order);
        printf("%.3f %.3f\n", spread, chased(memory, pages, LINE, order));
    }
    return 0;
}
