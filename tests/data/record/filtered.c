/* Executes a program under a filter that kills it for calls which a recorder makes in it: mseal, socketpair, futex,
   and openat of a file for reading and writing. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MSEAL 462
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IS(value, behind) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, behind)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)

int main(int count, char **words) {
    struct sock_filter steps[] = {
        LOAD(nr),
        IS(MSEAL, 1), RETURN(KILL_PROCESS),
        IS(SYS_socketpair, 1), RETURN(KILL_PROCESS),
        IS(SYS_futex, 1), RETURN(KILL_PROCESS),
        IS(SYS_openat, 4), LOAD(args[2]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_ACCMODE), IS(O_RDWR, 1),
        RETURN(KILL_PROCESS),
        RETURN(ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 9;
    execvp(words[1], words + 1);
    return 8;
}
