/* sum N: the sum of all primes below N. */
#include <stdio.h>
#include <stdlib.h>

static int is_prime(long n)
{
    for (long d = 2; d * d <= n; d++)
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
