/* shards.c - who owns which range of the parameters, and through whom contributions come to the owner. */
#include "nn/train/branches.h"
#include "scratch.h"

START_TEST(shards_tile_every_bucket)
{
    static const uint64_t sizes[] = { 64, 640, 65536, 65537, 1000000, 25690112 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t devices = 1; devices <= 7; devices++) {
        cek__shards shards;
        assert_ok(cek__shards_create(SIZES, sizes, devices, &shards));
        for (size_t b = 0; b < SIZES; b++) {
            uint64_t covered = 0, owned[7] = { 0 };
            for (size_t s = shards.of_bucket[b]; s < shards.of_bucket[b + 1]; s++) {
                const cek__shard *shard = &shards.list[s];
                ck_assert_uint_eq(shard->bucket, b);
                ck_assert_uint_lt(shard->first, shard->end);
                ck_assert_uint_eq(shard->first % CEK__SHARD_UNIT, 0);
                ck_assert(devices == 1 || cek__shard_elements(shard) <= CEK__SHARD_MOST);
                covered += cek__shard_elements(shard);
                owned[shard->owner] += cek__shard_elements(shard);
                for (size_t t = shards.of_bucket[b]; t < s; t++) /* none overlaps another */
                    ck_assert(shards.list[t].end <= shard->first || shard->end <= shards.list[t].first);
            }
            ck_assert_uint_eq(covered, sizes[b]);
            for (size_t o = 1; o < devices && sizes[b] >= CEK__SHARD_LEAST; o++) /* even to a unit */
                ck_assert(owned[o] <= owned[0] && owned[0] - owned[o] <= 2 * CEK__SHARD_UNIT);
        }
        cek__shards_close(&shards);
    }
}
END_TEST

/* Small shards in as many rounds as there are doublings up to the number of devices, large ones in one. */
START_TEST(contributions_come_to_the_owner_through_few_others_and_the_nearest_is_taken_first)
{
    for (size_t devices = 1; devices <= 65; devices++) {
        cek__shards shards;
        size_t rounds = 0;
        assert_ok(cek__shards_create(2, (uint64_t[]){ 64, CEK__SHARD_LEAST }, devices, &shards));
        while ((size_t)1 << rounds < devices)
            rounds++;
        for (size_t s = 0; s < shards.count; s++) {
            size_t owner = shards.list[s].owner, all = 0;
            ck_assert_int_eq(shards.list[s].branched, shards.list[s].bucket == 0);
            for (size_t d = 0; d < devices; d++) {
                size_t way = 0, last = 0, giver;
                for (size_t at = d; at != owner; at = cek__branch_taker(&shards, s, at))
                    ck_assert_uint_le(++way, shards.list[s].branched ? rounds : 1);
                for (size_t i = 0; (giver = cek__branch_giver(&shards, s, d, i)) != SIZE_MAX; i++, all++) {
                    size_t behind = (giver + devices - d) % devices;
                    ck_assert_uint_eq(cek__branch_taker(&shards, s, giver), d);
                    ck_assert_uint_gt(behind, last);
                    last = behind;
                }
                ck_assert_uint_le(cek__branch_givers(&shards, s, d), shards.list[s].branched ? rounds : devices - 1);
            }
            ck_assert_uint_eq(all, devices - 1);
        }
        cek__shards_close(&shards);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shards");
    TCase *tc = tcase_create("shards");

    tcase_add_test(tc, shards_tile_every_bucket);
    tcase_add_test(tc, contributions_come_to_the_owner_through_few_others_and_the_nearest_is_taken_first);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
