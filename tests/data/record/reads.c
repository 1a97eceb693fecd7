/* Opens, reads and closes a file so many times; ends with 3 where it cannot. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    char bytes[16];
    for (int n = count > 2 ? atoi(words[2]) : 0; n > 0; n--) {
        int fd = open(words[1], O_RDONLY);
        if (fd < 0 || read(fd, bytes, sizeof bytes) != sizeof bytes || close(fd)) return 3;
    }
    return 0;
}
