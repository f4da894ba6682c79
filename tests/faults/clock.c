/* A clock that leaps: every reading of the time of day is years before or after the last one. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long leap(void) {
    static unsigned long calls;
    static const long days[] = {0, -9000, 400, -1, 20000, -3};
    return days[calls++ % 6] * 86400L;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    long done = syscall(SYS_clock_gettime, which, now);
    if (!done && which == CLOCK_REALTIME) now->tv_sec += leap();
    return (int)done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (kept) *kept = found.tv_sec;
    return found.tv_sec;
}
