/* object.c - looks at a shared object before dlopen() does.
 *
 * dlopen() maps what the program headers promise: of a file that was cut off, half copied for one, it then touches
 * pages that are not there, and the process dies of SIGBUS. So they are held against the file's size first. Whatever
 * else is wrong with an object dlopen() says itself. */
#include "core/device/object.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/nearest.h"

/* The linker's: the header of the object that this is a part of, which says what fits this process. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static cek_status header_check(const ElfW(Ehdr) * h, uint64_t size)
{
    const ElfW(Ehdr) *own = &__ehdr_start;

    if (memcmp(h->e_ident, own->e_ident, SELFMAG) != 0)
        return cek__fail(CEK_BAD_PLUGIN, "no shared object: it does not begin with ELF's signature");
    if (h->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] || h->e_ident[EI_DATA] != own->e_ident[EI_DATA] ||
        h->e_machine != own->e_machine)
        return cek__fail(CEK_BAD_PLUGIN,
                         "built for another machine: ELF class %u, byte order %u, machine %u; this process is %u, %u, "
                         "%u",
                         h->e_ident[EI_CLASS], h->e_ident[EI_DATA], h->e_machine, own->e_ident[EI_CLASS],
                         own->e_ident[EI_DATA], own->e_machine);
    if (h->e_type != ET_DYN)
        return cek__fail(CEK_BAD_PLUGIN, "no shared object: ELF type %u", h->e_type);
    if (h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phnum == 0)
        return cek__fail(CEK_BAD_PLUGIN, "no program headers of this machine's form");
    if (h->e_phoff > size || size - h->e_phoff < (uint64_t)h->e_phnum * sizeof(ElfW(Phdr)))
        return cek__fail(CEK_BAD_PLUGIN, "cut off: its program headers lie behind its end at byte %" PRIu64, size);
    /* Nothing of these is mapped, but they stand last: a file without them was not copied to its end. */
    if (h->e_shoff > size || size - h->e_shoff < (uint64_t)h->e_shnum * h->e_shentsize)
        return cek__fail(CEK_BAD_PLUGIN, "cut off: its section headers lie behind its end at byte %" PRIu64, size);
    return CEK_OK;
}

static cek_status bytes_read(int fd, uint64_t at, void *out, size_t count)
{
    ssize_t got = pread(fd, out, count, (off_t)at);

    if (got < 0)
        return cek__fail_errno(CEK_BAD_PLUGIN, errno, "it cannot be read");
    if ((size_t)got != count)
        return cek__fail(CEK_BAD_PLUGIN, "cut off: it ends at byte %" PRIu64, at + (uint64_t)got);
    return CEK_OK;
}

static cek_status segments_check(int fd, uint64_t size)
{
    cek_status st;
    ElfW(Ehdr) header;

    CEK_TRY(bytes_read(fd, 0, &header, sizeof header));
    CEK_TRY(header_check(&header, size));
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;

        CEK_TRY(bytes_read(fd, header.e_phoff + i * sizeof segment, &segment, sizeof segment));
        if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz)
            CEK_FAIL(CEK_BAD_PLUGIN,
                     "cut off: it has %" PRIu64 " bytes, and its program header %u speaks of %" PRIu64 " from byte "
                     "%" PRIu64,
                     size, i, (uint64_t)segment.p_filesz, (uint64_t)segment.p_offset);
    }
out:
    return st;
}

cek_status cek__object_check(const char *path)
{
    cek_status st;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return cek__fail_errno(CEK_BAD_PLUGIN, errno, "it cannot be opened");
    if (fstat(fd, &info) != 0)
        st = cek__fail_errno(CEK_BAD_PLUGIN, errno, "it cannot be looked at");
    else if (!S_ISREG(info.st_mode))
        st = cek__fail(CEK_BAD_PLUGIN, "it is not a regular file");
    else
        st = segments_check(fd, (uint64_t)info.st_size);
    close(fd);
    return st;
}

cek_status cek_plugin_file_check(const char *path)
{
    cek_status st;
    cek__nearest near;
    struct stat info;

    CEK__NOT_NULL(path);
    if (stat(path, &info) != 0) {
        const bool absent = errno == ENOENT;

        st = cek__fail_errno(absent ? CEK_NOT_FOUND : CEK_BAD_PLUGIN, errno, "file %s", path);
        return absent ? cek__fail(st, "%s%s", cek_error_text(), cek__nearest_file(&near, path)) : st;
    }
    if (!S_ISREG(info.st_mode))
        return cek__fail(CEK_BAD_PLUGIN, "file %s is not a regular file", path);
    st = cek__object_check(path);
    return st == CEK_OK ? CEK_OK : cek__fail_prefix(st, "%s", path);
}
