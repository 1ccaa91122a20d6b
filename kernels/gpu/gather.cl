/* SPDX-License-Identifier: MIT
 *
 * gather.cl - rows of a table that an index names, and sums of rows into them, in the order of the index.
 *
 * GATHER_AS: the type that gather moves (bytes, not numbers), NOTHING what it writes where the index names no row.
 * TYPE: the element type of what is summed.
 *
 * Who names the same row is found first: of each element of the index the next with its row, and whether it is the first.
 * The first's work-items then walk along and add, one for each column, so that each sum has one order and no atomics.
 */

/* The place in INDEX of element i of a batch, and whether it names a row. */
#define INDEX_AT(batch, i) (((batch) * a.index_batch + (i)))
#define IS_ROW(row) ((row) >= 0 && (cek_u64)(row) < a.rows)

#ifdef GATHER_AS
KERNEL void gather(GLOBAL char *table, GLOBAL char *index, GLOBAL char *y, const cek_k_gather a)
{
    GLOBAL const cek_i32 *rows = (GLOBAL const cek_i32 *)AT(index, 1);
    GLOBAL const GATHER_AS *from = (GLOBAL const GATHER_AS *)AT(table, 0);
    GLOBAL GATHER_AS *to = (GLOBAL GATHER_AS *)AT(y, 2);
    FOR_EACH(n, a.elements) {
        const cek_u64 item = n / a.columns, batch = item / a.count;
        const cek_i32 row = rows[INDEX_AT(batch, item - batch * a.count)];
        to[n] = IS_ROW(row) ? from[(batch * a.rows + (cek_u64)row) * a.columns + (n - item * a.columns)] : (GATHER_AS)(NOTHING);
    }
}
#else

#define LAST (-1) /* of a chain of elements with one row */

/* links: of each element of INDEX whether it is the first with its row, and the next with it. Each looks for itself,
 * from element `first` on. */
KERNEL void scatter_links(GLOBAL char *index, GLOBAL char *links, const cek_k_gather a)
{
    GLOBAL const cek_i32 *rows = (GLOBAL const cek_i32 *)AT(index, 0);
    GLOBAL cek_i32 *to = (GLOBAL cek_i32 *)AT(links, 1);
    FOR_PIECE(i, a.elements, 1) {
        const cek_u64 n = a.first + i;
        const cek_u64 begin = n / a.count * a.count, end = begin + a.count;
        const cek_i32 row = rows[n];
        cek_u64 before = begin, next = n + 1;
        while (before < n && rows[before] != row)
            before++;
        while (next < end && rows[next] != row)
            next++;
        to[2 * n] = before == n && IS_ROW(row);
        to[2 * n + 1] = next < end ? (cek_i32)(next - begin) : LAST;
    }
}

/* The same of whole batches, `elements` of them, by a walk from the end: `latest` has a place for each row of each. */
KERNEL void scatter_walk(GLOBAL char *index, GLOBAL char *links, GLOBAL char *latest, const cek_k_gather a)
{
    FOR_PIECE(batch, a.elements, 1) {
        GLOBAL const cek_i32 *rows = (GLOBAL const cek_i32 *)AT(index, 0) + batch * a.count;
        GLOBAL cek_i32 *to = (GLOBAL cek_i32 *)AT(links, 1) + batch * a.count * 2;
        GLOBAL cek_i32 *of = (GLOBAL cek_i32 *)AT(latest, 2) + batch * a.rows;
        for (cek_u64 n = 0; n < a.count; n++)
            if (IS_ROW(rows[n]))
                of[rows[n]] = LAST;
        for (cek_u64 n = a.count; n-- > 0;) {
            to[2 * n + 1] = IS_ROW(rows[n]) ? of[rows[n]] : LAST;
            if (IS_ROW(rows[n]))
                of[rows[n]] = (cek_i32)n;
        }
        for (cek_u64 n = 0; n < a.count; n++)
            to[2 * n] = IS_ROW(rows[n]) && of[rows[n]] == (cek_i32)n;
    }
}

KERNEL void scatter_zero(GLOBAL char *table, const cek_k_gather a)
{
    FOR_EACH(n, a.elements)
        ((GLOBAL cek_f32 *)AT(table, 0))[n] = 0.0f;
}

KERNEL void scatter_add(GLOBAL char *dy, GLOBAL char *index, GLOBAL char *links, GLOBAL char *table, const cek_k_gather a)
{
    GLOBAL const cek_i32 *rows = (GLOBAL const cek_i32 *)AT(index, 1), *link = (GLOBAL const cek_i32 *)AT(links, 2);
    FOR_EACH(n, a.elements) {
        const cek_u64 item = n / a.columns, column = n - item * a.columns, batch = item / a.count;
        cek_i32 i = (cek_i32)(item - batch * a.count);
        if (!link[2 * INDEX_AT(batch, (cek_u64)i)])
            continue;
        const cek_u64 to = (batch * a.rows + (cek_u64)rows[INDEX_AT(batch, (cek_u64)i)]) * a.columns + column;
        cek_f32 sum = ((GLOBAL const cek_f32 *)AT(table, 3))[to];
        for (; i != LAST; i = link[2 * INDEX_AT(batch, (cek_u64)i) + 1])
            sum += LOAD(TYPE, AT(dy, 0), (batch * a.count + (cek_u64)i) * a.columns + column);
        ((GLOBAL cek_f32 *)AT(table, 3))[to] = sum;
    }
}
#endif
