/* Makes a disk slow: loaded into a process by LD_PRELOAD, it delays the process's writes to files under a folder.

   SLOW_DISK_FOLDER is the folder's path without symbolic links, and SLOW_DISK_CALLS that of a file elsewhere. While this
   file exists, each write or sync of a file under the folder takes 200 to 500 ms more, and the name of the function is
   appended to it as a line. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_MS = 200, STEP_MS = 100, STEPS = 4 };

static const char *folder, *calls;
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_msync)(void *, size_t, int);

__attribute__((constructor)) static void begin(void)
{
    folder = getenv("SLOW_DISK_FOLDER");
    calls = getenv("SLOW_DISK_CALLS");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_pwrite64 = dlsym(RTLD_NEXT, "pwrite64");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_msync = dlsym(RTLD_NEXT, "msync");
}

static int is_slow(void)
{
    return folder != NULL && calls != NULL && access(calls, F_OK) == 0;
}

static int is_in_folder(const char *path)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static void delay(const char *name)
{
    static atomic_uint count;
    long wait_ms = SHORTEST_MS + STEP_MS * (long)(atomic_fetch_add(&count, 1) % STEPS);
    struct timespec left = {0, wait_ms * 1000000};
    char line[32];
    int length = snprintf(line, sizeof line, "%s\n", name);
    int file = open(calls, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) {
        (void)!real_write(file, line, length);
        close(file);
    }
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void delay_file(int file, const char *name)
{
    int before = errno;
    if (is_slow()) {
        char link[32], path[PATH_MAX + 1];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, path, PATH_MAX);
        path[length < 0 ? 0 : length] = '\0';
        if (is_in_folder(path))
            delay(name);
    }
    errno = before;
}

static int maps_file_in_folder(const void *address)
{
    unsigned long at = (unsigned long)address, from, to;
    char line[PATH_MAX + 128];
    int found = 0, path;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return 0;
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &path) == 2 && from <= at && at < to
            && is_in_folder(line + path);
    fclose(maps);
    return found;
}

ssize_t write(int file, const void *data, size_t size)
{
    delay_file(file, "write");
    return real_write(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
    delay_file(file, "pwrite");
    return real_pwrite(file, data, size, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset)
{
    delay_file(file, "pwrite");
    return real_pwrite64(file, data, size, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    delay_file(file, "writev");
    return real_writev(file, parts, count);
}

int fsync(int file)
{
    delay_file(file, "fsync");
    return real_fsync(file);
}

int fdatasync(int file)
{
    delay_file(file, "fdatasync");
    return real_fdatasync(file);
}

int msync(void *address, size_t size, int flags)
{
    int before = errno;
    if (is_slow() && maps_file_in_folder(address))
        delay("msync");
    errno = before;
    return real_msync(address, size, flags);
}
