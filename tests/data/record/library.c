/* A library that makes a call of its own. */
#include <sys/syscall.h>

int first_byte(int fd) {
    char byte = 0;
    long result;
    register long r10 __asm__("r10") = 0;
    __asm__ volatile("mov %1, %%eax\n syscall"
                     : "=&a"(result)
                     : "i"(SYS_pread64), "D"((long)fd), "S"(&byte), "d"(1L), "r"(r10)
                     : "rcx", "r11", "memory");
    return result == 1 ? byte : -1;
}
