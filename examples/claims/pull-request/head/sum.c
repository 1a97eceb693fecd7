/* sum N: the sum of all primes below N. */
#include <stdio.h>
#include <stdlib.h>

static int is_prime(long n)
{
    if (n > 2 && n % 2 == 0)
        return 0;
    for (long d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return 0;
    return n >= 2;
}

int main(int argc, char **argv)
{
    long sum = 0, limit = argc > 1 ? atol(argv[1]) : 0;
    for (long n = 0; n < limit; n++)
        if (is_prime(n))
            sum += n;
    printf("%ld\n", sum);
    return 0;
}
