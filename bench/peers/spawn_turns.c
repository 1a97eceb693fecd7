/* How long whole programs take that are started in turn: each once a round, in random order, the next when one has ended.
 *
 * spawn_turns SEED ROUNDS PROGRAM [ARG…] [-- PROGRAM [ARG…]]…
 * prints: a line a round, nanoseconds from posix_spawn to wait4 of each, in the order in which they were given. A round
 * before the first is not printed.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define MOST 16

extern char **environ;

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long launch_ns(char **command)
{
	pid_t pid;
	int status;
	struct rusage usage;
	long long start = now_ns();
	int error = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
	if (error) {
		fprintf(stderr, "spawn_turns: %s: %s\n", command[0], strerror(error));
		exit(5);
	}
	if (wait4(pid, &status, 0, &usage) != pid || status) {
		fprintf(stderr, "spawn_turns: %s failed\n", command[0]);
		exit(4);
	}
	return now_ns() - start;
}

static void shuffle(int *order, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int j = random() % (i + 1), held = order[i];
		order[i] = order[j];
		order[j] = held;
	}
}

int main(int argc, char **argv)
{
	char **commands[MOST];
	int order[MOST], count = 0, rounds = argc > 2 ? atoi(argv[2]) : 0;
	for (int i = 3; i < argc && count < MOST; i++) {
		commands[count] = &argv[i];
		order[count] = count;
		count++;
		while (i < argc && strcmp(argv[i], "--"))
			i++;
		argv[i] = NULL; /* argv[argc] is NULL already */
	}
	if (rounds < 1 || !count) {
		fprintf(stderr, "usage: spawn_turns SEED ROUNDS PROGRAM [ARG...] [-- PROGRAM [ARG...]]...\n");
		return 2;
	}
	srandom(atoi(argv[1]));
	for (int round = -1; round < rounds; round++) {
		long long took[MOST];
		shuffle(order, count);
		for (int i = 0; i < count; i++)
			took[order[i]] = launch_ns(commands[order[i]]);
		for (int i = 0; round >= 0 && i < count; i++)
			printf("%lld%c", took[i], i + 1 < count ? ' ' : '\n');
	}
	return 0;
}
