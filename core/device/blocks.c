/* blocks.c - see blocks.h. A block knows its neighbours in the segment, so freed ones grow together; free blocks hang
 * in bins by size, so the best fit is found in a few steps; those in the hands of callers stand in a search tree by
 * place, so the one that holds a byte is found in a few steps too. */
#include "core/device/blocks.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/device/allocator.h"
#include "core/device/device.h"

#define UNIT ((uint64_t)CEK_ALIGNMENT)
#define KEEP_MIN ((uint64_t)1 << 20) /* a remainder of a large block worth a block of its own */

/* ---- bins ---- */

static unsigned bin_of(uint64_t bytes)
{
    uint64_t units = bytes / UNIT;
    unsigned power;

    if (units < 8)
        return (unsigned)units;
    power = 63 - (unsigned)__builtin_clzll(units);
    return (power - 2) * 8 + ((units >> (power - 3)) & 7);
}

static cek__bins *bins_of(cek__allocator *allocator, const cek__segment *s)
{
    return &allocator->bins[s->reuse][s->large];
}

void cek__bin_put(cek__allocator *allocator, cek_memory *block)
{
    cek__bins *bins = bins_of(allocator, block->segment);
    unsigned bin = bin_of(block->bytes);

    block->free = true;
    block->bin_prev = NULL;
    block->bin_next = bins->first[bin];
    if (block->bin_next != NULL)
        block->bin_next->bin_prev = block;
    bins->first[bin] = block;
    bins->used[bin / 64] |= (uint64_t)1 << bin % 64;
}

void cek__bin_take(cek__allocator *allocator, cek_memory *block)
{
    cek__bins *bins = bins_of(allocator, block->segment);
    unsigned bin = bin_of(block->bytes);

    if (block->bin_prev != NULL)
        block->bin_prev->bin_next = block->bin_next;
    else
        bins->first[bin] = block->bin_next;
    if (block->bin_next != NULL)
        block->bin_next->bin_prev = block->bin_prev;
    if (bins->first[bin] == NULL)
        bins->used[bin / 64] &= ~((uint64_t)1 << bin % 64);
    block->free = false;
}

/* The next bin from `bin` on that has a block, or CEK__BINS. */
static unsigned bin_next(const cek__bins *bins, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits;

    if (bin >= CEK__BINS)
        return CEK__BINS;
    bits = bins->used[word] & (UINT64_MAX << bin % 64);
    while (bits == 0 && ++word < CEK__BIN_WORDS)
        bits = bins->used[word];
    return bits != 0 ? word * 64 + (unsigned)__builtin_ctzll(bits) : CEK__BINS;
}

/* Any block of a higher bin fits, in the request's own bin some may be too small. */
cek_memory *cek__blocks_best_fit(const cek__bins *bins, uint64_t bytes)
{
    for (unsigned bin = bin_next(bins, bin_of(bytes)); bin < CEK__BINS; bin = bin_next(bins, bin + 1)) {
        cek_memory *best = NULL;

        for (cek_memory *b = bins->first[bin]; b != NULL; b = b->bin_next)
            if (b->bytes >= bytes && (best == NULL || b->bytes < best->bytes))
                best = b;
        if (best != NULL)
            return best;
    }
    return NULL;
}

/* ---- blocks ---- */

cek_status cek__block_new(cek__allocator *allocator, cek__segment *s, uint64_t offset, uint64_t bytes, cek_memory **out)
{
    cek_status st = cek__calloc(1, sizeof **out, out);

    if (st == CEK_OK)
        **out = (cek_memory){ .device = allocator->device, .segment = s, .offset = offset, .bytes = bytes };
    return st;
}

cek_status cek__block_cut(cek__allocator *allocator, cek_memory *block, uint64_t bytes)
{
    cek_memory *rest;
    cek_status st;

    if (block->bytes - bytes < (block->segment->large ? KEEP_MIN : UNIT)) {
        cek__bin_take(allocator, block);
        return CEK_OK;
    }
    st = cek__block_new(allocator, block->segment, block->offset + bytes, block->bytes - bytes, &rest);
    if (st != CEK_OK)
        return st;
    cek__bin_take(allocator, block);
    block->bytes = bytes;
    rest->left = block;
    rest->right = block->right;
    if (rest->right != NULL)
        rest->right->left = rest;
    block->right = rest;
    cek__bin_put(allocator, rest);
    return CEK_OK;
}

void cek__block_join(cek_memory *left)
{
    cek_memory *right = left->right;

    left->bytes += right->bytes;
    left->right = right->right;
    if (left->right != NULL)
        left->right->left = left;
    free(right);
}

void cek__block_release(cek__allocator *allocator, cek_memory *block)
{
    if (block->right != NULL && block->right->free) {
        cek__bin_take(allocator, block->right);
        cek__block_join(block);
    }
    if (block->left != NULL && block->left->free) {
        block = block->left;
        cek__bin_take(allocator, block);
        cek__block_join(block);
    }
    cek__bin_put(allocator, block);
}

/* ---- in the hands of callers ---- */

/* Places do not overlap; the key of a search is a block of one byte, and equal to the block that holds it. */
static int by_place(const void *a, const void *b)
{
    const cek_memory *x = a, *y = b;

    if (x->segment->mem != y->segment->mem)
        return (uintptr_t)x->segment->mem < (uintptr_t)y->segment->mem ? -1 : 1;
    if (x->offset + x->bytes <= y->offset)
        return -1;
    return y->offset + y->bytes <= x->offset;
}

cek_status cek__block_give(cek__allocator *allocator, cek_memory *block, uint64_t asked)
{
    if (tsearch(block, &allocator->given, by_place) == NULL)
        return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory");
    block->asked = asked;
    return CEK_OK;
}

void cek__block_take_back(cek__allocator *allocator, cek_memory *block)
{
    tdelete(block, &allocator->given, by_place);
}

const cek_memory *cek__block_at(const cek__allocator *allocator, cek_ref ref)
{
    cek__segment segment = { .mem = ref.mem };
    cek_memory key = { .segment = &segment, .offset = ref.offset, .bytes = 1 };
    cek_memory *const *found = tfind(&key, &allocator->given, by_place);

    return found != NULL ? *found : NULL;
}
