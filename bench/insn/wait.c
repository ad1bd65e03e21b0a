/* Has a program that waits in io_uring_enter wait in poll. Valgrind runs one thread at a time and does not know that io_uring_enter
 * may block: the threads that are waited for would never run. For `cargo xtask bench insn --socket` alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <linux/io_uring.h>
#include <linux/time_types.h>

enum { ARGUMENTS = 6, STEP_MS = 1, LONGEST_MS = 1000 };

typedef long (*call)(long, ...);

long syscall(long number, ...) {
    static call real;
    if (!real) real = (call)dlsym(RTLD_NEXT, "syscall");
    va_list list;
    long a[ARGUMENTS];
    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++) a[i] = va_arg(list, long);
    va_end(list);
    long least = a[2], flags = a[3];
    if (number != SYS_io_uring_enter || least == 0) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    long submitted = real(number, a[0], a[1], 0L, flags, a[4], a[5]);
    if (submitted < 0) return submitted;
    long ms = LONGEST_MS;
    if (flags & IORING_ENTER_EXT_ARG) {
        const struct io_uring_getevents_arg *arg = (const void *)a[4];
        const struct __kernel_timespec *time = (const void *)(uintptr_t)arg->ts;
        if (time && time->tv_sec < LONGEST_MS / 1000) ms = (long)(time->tv_nsec / 1000000) + 1;
    }
    struct pollfd ring = {.fd = (int)a[0], .events = POLLIN};
    /* what completes with the ring's own thread alone wakes nobody: it is called for in steps */
    while (poll(&ring, 1, 0) == 0 && ms > 0) {
        poll(&ring, 1, STEP_MS);
        real(number, a[0], 0L, 0L, flags, a[4], a[5]);
        ms -= STEP_MS;
    }
    return submitted;
}
