/* tensor_share.c - tests of memory shared by DLPack: what is handed out and taken in, what each side sees, when it is
 * given back, what is refused. */
#include "cekernels/dlpack.h"
#include "core/base/fault.h"
#include "tensors.h"

/* What another library would hand over. */
typedef struct lender {
    DLManagedTensorVersioned managed;
    int deleted;
} lender;

static void lender_delete(DLManagedTensorVersioned *self)
{
    lender *l = self->manager_ctx;

    l->deleted++;
}

static void lender_make(lender *l, void *data, int rank, int64_t *shape, int64_t *strides)
{
    *l = (lender){ .managed = { .version = { 1, 3 },
                                .manager_ctx = l,
                                .deleter = lender_delete,
                                .dl_tensor = { .data = data,
                                               .device = { kDLCPU, 0 },
                                               .ndim = rank,
                                               .dtype = { kDLFloat, 32, 1 },
                                               .shape = shape,
                                               .strides = strides } } };
}

START_TEST(what_is_handed_out_is_the_same_memory)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x, *view;
        DLManagedTensorVersioned *m;
        float *at;

        assert_ok(cek_tensor_arange(device, CEK_F32, 0, 12, 1, &x));
        assert_ok(cek_tensor_reshape(x, 2, (int64_t[]){ 3, 4 }, &view));
        cek_tensor_free(x);
        x = view;
        assert_ok(cek_tensor_transpose(x, 0, 1, &view));
        assert_ok(cek_tensor_to_dlpack(view, 0, &m));
        ck_assert_uint_eq(m->version.major, 1);
        ck_assert_uint_eq(m->flags, 0);
        ck_assert_int_eq(m->dl_tensor.device.device_type, kDLCPU);
        ck_assert_int_eq(m->dl_tensor.ndim, 2);
        ck_assert(m->dl_tensor.shape[0] == 4 && m->dl_tensor.shape[1] == 3);
        ck_assert(m->dl_tensor.strides[0] == 1 && m->dl_tensor.strides[1] == 4);
        ck_assert(m->dl_tensor.dtype.code == kDLFloat && m->dl_tensor.dtype.bits == 32 &&
                  m->dl_tensor.dtype.lanes == 1);
        at = (float *)((char *)m->dl_tensor.data + m->dl_tensor.byte_offset);
        for (int i = 0; i < 12; i++)
            ck_assert(at[i] == (float)i);
        at[5] = -5;
        assert_ok(cek_device_sync(device));
        cek_tensor_free(view);
        assert_holds(x, 2, (int64_t[]){ 3, 4 }, (double[]){ 0, 1, 2, 3, 4, -5, 6, 7, 8, 9, 10, 11 }, NULL,
                     "theirs is ours");
        ck_assert(at[11] == 11); /* x is free, and the memory is there */
        m->deleter(m);
    }
}
END_TEST

START_TEST(memory_outlives_tensor_and_engine_until_it_is_deleted)
{
    cek_engine *own;
    cek_device *device;
    cek_tensor *x;
    DLManagedTensor *m;

    assert_ok(cek_engine_create(NULL, &own));
    assert_ok(cek_engine_find(own, "cpu:0", &device));
    assert_ok(cek_tensor_full(device, CEK_I32, 1, (int64_t[]){ 1000 }, 7, &x));
    assert_ok(cek_tensor_to_dlpack_unversioned(x, &m));
    cek_tensor_free(x);
    cek_engine_free(own);
    ck_assert(m->dl_tensor.dtype.code == kDLInt && ((int32_t *)m->dl_tensor.data)[999] == 7);
    m->deleter(m);
}
END_TEST

START_TEST(what_is_taken_in_is_the_same_memory_and_given_back_once)
{
    FOR_EACH_DEVICE(device)
    {
        float values[1 + 24];
        lender l;
        int64_t shape[] = { 3, 1, 2 }, strides[] = { 8, -3, 2 }; /* of one element none is walked */
        cek_tensor *x, *y, *view;

        for (int i = 0; i < 25; i++)
            values[i] = (float)i;
        lender_make(&l, values, 3, shape, strides);
        l.managed.dl_tensor.byte_offset = sizeof(float); /* nothing of it is aligned */
        assert_ok(cek_tensor_from_dlpack(device, &l.managed, &x));
        assert_ok(cek_add(x, x, &y));
        assert_holds(y, 3, shape, (double[]){ 2, 6, 18, 22, 34, 38 }, NULL, "read through strides");
        values[1] = 100;
        assert_ok(cek_tensor_select(x, 0, 0, &view));
        assert_holds(view, 2, (int64_t[]){ 1, 2 }, (double[]){ 100, 3 }, NULL, "what they wrote");
        assert_ok(cek_tensor_select(x, 2, 1, &view));
        assert_ok(cek_tensor_full(device, CEK_F32, 0, NULL, -1, &y));
        assert_ok(cek_tensor_assign(view, y));
        assert_ok(cek_device_sync(device));
        for (int i = 0; i < 25; i++)
            ck_assert(values[i] == (i == 3 || i == 11 || i == 19 ? -1 : i == 1 ? 100 : (float)i));
        cek_tensor_free(y);
        cek_tensor_free(x);
        ck_assert_int_eq(l.deleted, 0); /* the view still looks at it */
        cek_tensor_free(view);
        ck_assert_int_eq(l.deleted, 1);
    }
}
END_TEST

START_TEST(what_we_hand_out_we_can_take_in)
{
    cek_device *cpu;
    cek_tensor *x, *y;
    DLManagedTensorVersioned *m;

    assert_ok(cek_engine_find(engine, "cpu:0", &cpu));
    assert_ok(cek_tensor_arange(cpu, CEK_U8, 0, 5, 1, &x));
    assert_ok(cek_tensor_to_dlpack(x, CEK_DLPACK_READ_ONLY, &m));
    ck_assert_uint_eq(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    assert_ok(cek_tensor_from_dlpack(reference(), m, &y)); /* on another device, without a copy */
    assert_ok(cek_tensor_write(x, (uint8_t[]){ 9, 8, 7, 6, 5 }, 5));
    assert_ok(cek_device_sync(cpu));
    cek_tensor_free(x);
    uint8_t got[5];
    assert_ok(cek_tensor_read(y, got, 5));
    ck_assert_mem_eq(got, ((uint8_t[]){ 9, 8, 7, 6, 5 }), 5);
    assert_fails(cek_tensor_write(y, got, 5), CEK_INVALID, "cek_tensor_write", "only be read");
    assert_fails(cek_tensor_assign(y, y), CEK_INVALID, "cek_tensor_assign", "only be read");
    DLManagedTensor *old;
    assert_fails(cek_tensor_to_dlpack_unversioned(y, &old), CEK_UNSUPPORTED, "cek_tensor_to_dlpack_unversioned",
                 "only be read");
    assert_ok(cek_tensor_to_dlpack(y, 0, &m));
    ck_assert_uint_eq(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY); /* still */
    m->deleter(m);
    cek_tensor_free(y);
    assert_fails(cek_tensor_to_dlpack(NULL, 0, &m), CEK_INVALID, "x is NULL", "");
}
END_TEST

START_TEST(what_overlaps_under_two_names_is_assigned_whole)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *row, *x, *y, *turned, *seen;
        DLManagedTensorVersioned *m;

        assert_ok(cek_tensor_arange(device, CEK_F32, 0, 9, 1, &row));
        assert_ok(cek_tensor_reshape(row, 2, (int64_t[]){ 3, 3 }, &x));
        assert_ok(cek_tensor_to_dlpack(x, 0, &m));
        assert_ok(cek_tensor_from_dlpack(device, m, &y));
        assert_ok(cek_tensor_transpose(y, 0, 1, &turned));
        for (int way = 0; way < 2; way++) {
            assert_ok(way ? cek_tensor_assign(x, turned) : cek_tensor_assign(turned, x));
            assert_ok(cek_tensor_contiguous(x, &seen));
            assert_holds(seen, 2, (int64_t[]){ 3, 3 },
                         way ? (double[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8 } : (double[]){ 0, 3, 6, 1, 4, 7, 2, 5, 8 }, NULL,
                         "turned within itself");
        }
        cek_tensor_free(turned);
        cek_tensor_free(y);
        cek_tensor_free(x);
        cek_tensor_free(row);
    }
}
END_TEST

START_TEST(every_type_goes_out_and_comes_in)
{
    static const cek_dtype types[] = { CEK_F32, CEK_F64, CEK_F16, CEK_BF16, CEK_I32, CEK_U8 };
    cek_tensor *x, *y;
    DLManagedTensorVersioned *m;
    int shared = 0;

    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        double item;

        if (!stores(device, types[i]))
            continue;
        assert_ok(cek_tensor_full(device, types[i], 0, NULL, 3, &x));
        assert_ok(cek_tensor_to_dlpack(x, 0, &m));
        cek_tensor_free(x);
        assert_ok(cek_tensor_from_dlpack(device, m, &y));
        ck_assert_uint_eq(cek_tensor_type(y), types[i]);
        assert_ok(cek_tensor_item(y, &item));
        ck_assert_double_eq(item, 3);
        cek_tensor_free(y);
        shared++;
    }
    ck_assert_int_ge(shared, 8);
    lender l;
    uint8_t bytes[] = { 1, 0, 2 }, back[sizeof bytes];
    lender_make(&l, bytes, 1, (int64_t[]){ sizeof bytes }, NULL);
    l.managed.dl_tensor.dtype = (DLDataType){ kDLBool, 8, 1 };
    assert_ok(cek_tensor_from_dlpack(reference(), &l.managed, &x));
    ck_assert_uint_eq(cek_tensor_type(x), CEK_U8);
    assert_ok(cek_tensor_read(x, back, sizeof back));
    ck_assert_mem_eq(back, bytes, sizeof back); /* the memory is theirs */
    cek_tensor_free(x);
}
END_TEST

START_TEST(what_cannot_be_shared_is_refused_and_stays_the_lenders)
{
    float values[4] = { 0 };
    lender l;
    int64_t shape[] = { 2, 2 }, back[] = { -2, 1 }, far[] = { INT64_MAX, INT64_MAX }, none[] = { 2, 0 };
    int64_t half[] = { (int64_t)1 << 62, 1 };
    cek_tensor *x;

#define REFUSED(status, cause)                                                                                      \
    do {                                                                                                            \
        assert_fails(cek_tensor_from_dlpack(reference(), &l.managed, &x), status, "cek_tensor_from_dlpack", cause); \
        ck_assert_int_eq(l.deleted, 0);                                                                             \
        ck_assert_ptr_null(x);                                                                                      \
        lender_make(&l, values, 2, shape, NULL);                                                                    \
    } while (0)
    lender_make(&l, values, 2, shape, NULL);
    l.managed.version.major = 2;
    REFUSED(CEK_UNSUPPORTED, "DLPack 2.3");
    l.managed.dl_tensor.dtype.lanes = 4;
    REFUSED(CEK_UNSUPPORTED, "4 lanes");
    l.managed.dl_tensor.dtype = (DLDataType){ kDLComplex, 64, 1 };
    REFUSED(CEK_UNSUPPORTED, "type 5 with 64 bits");
    l.managed.dl_tensor.strides = back;
    REFUSED(CEK_UNSUPPORTED, "dimension 0 has the stride -2");
    l.managed.dl_tensor.strides = far;
    REFUSED(CEK_INVALID, "room");
    l.managed.dl_tensor.dtype = (DLDataType){ kDLUInt, 8, 1 };
    l.managed.dl_tensor.strides = half; /* its elements would have an address, the dimension's length has not */
    REFUSED(CEK_INVALID, "room");
    l.managed.dl_tensor.shape = none;
    REFUSED(CEK_INVALID, "dimension 1 is less than 1");
    l.managed.dl_tensor.ndim = 9;
    REFUSED(CEK_INVALID, "rank 9");
    l.managed.dl_tensor.data = NULL;
    REFUSED(CEK_INVALID, "data is NULL");
    l.managed.dl_tensor.byte_offset = 2;
    REFUSED(CEK_INVALID, "odd address");
    l.managed.dl_tensor.byte_offset = UINT64_MAX - 3;
    REFUSED(CEK_INVALID, "byte_offset");
    l.managed.dl_tensor.device.device_type = 8;
    REFUSED(CEK_UNSUPPORTED, "device type 8");
    l.managed.dl_tensor.device = (DLDevice){ kDLCUDA, 3 };
    REFUSED(CEK_UNSUPPORTED, "memory of kind 2, device 3");
    assert_ok(cek_tensor_from_dlpack(reference(), &l.managed, &x));
    cek_tensor_free(x);
    ck_assert_int_eq(l.deleted, 1);
#undef REFUSED
}
END_TEST

START_TEST(a_device_that_cannot_share_says_so)
{
    cek_device *device;
    cek_tensor *x, *y;
    DLManagedTensorVersioned *m;
    float values[4] = { 0 };
    lender l;
    int64_t shape[] = { 4 };

    cek_engine *own = engine_of(fake_install("a-lazy.so")); /* its memory has no address of the host's */
    device = cek_engine_device(own, 0);
    assert_ok(cek_tensor_create(device, CEK_F32, 1, shape, &x));
    lender_make(&l, values, 1, shape, NULL);
    assert_fails(cek_tensor_from_dlpack(device, &l.managed, &y), CEK_UNSUPPORTED, "cannot be shared",
                 "the plugin has no mem_import");
    assert_fails(cek_tensor_to_dlpack(x, 0, &m), CEK_UNSUPPORTED, "cannot be shared", "the plugin has no mem_export");
    ck_assert_ptr_null(m);
    ck_assert_int_eq(l.deleted, 0);
    cek_tensor_free(x);
    cek_engine_free(own);
}
END_TEST

START_TEST(what_is_taken_in_stays_until_queued_work_has_ended)
{
    FOR_EACH_DEVICE(device)
    {
        enum { N = 1 << 20 };
        float *values = malloc(N * sizeof *values);
        lender l;
        int64_t shape[] = { N };
        cek_tensor *x, *y, *z;
        double item;

        for (int i = 0; i < N; i++)
            values[i] = 1;
        lender_make(&l, values, 1, shape, NULL);
        assert_ok(cek_tensor_from_dlpack(device, &l.managed, &x));
        for (int round = 0; round < 8; round++) {
            assert_ok(cek_add(x, x, &y));
            cek_tensor_free(y);
        }
        assert_ok(cek_sum(x, 0, NULL, &z));
        cek_tensor_free(x);
        ck_assert_int_eq(l.deleted, 1);
        free(values); /* a sanitizer sees who still reads it */
        assert_ok(cek_tensor_item(z, &item));
        ck_assert_double_eq(item, N);
        cek_tensor_free(z);
    }
}
END_TEST

START_TEST(no_allocation_that_fails_loses_anything)
{
    cek_device *device = reference();
    float values[4] = { 1, 2, 3, 4 };
    int64_t shape[] = { 4 };
    cek_tensor *before; /* opens it */

    assert_ok(cek_tensor_create(device, CEK_F32, 1, shape, &before));
    for (long nth = 1;; nth++) {
        lender l;
        cek_tensor *x = NULL;
        DLManagedTensorVersioned *m = NULL;
        cek_status st;
        bool pending;

        lender_make(&l, values, 1, shape, NULL);
        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_tensor_from_dlpack(device, &l.managed, &x);
        if (st == CEK_OK)
            st = cek_tensor_to_dlpack(x, 0, &m);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        ck_assert(st == CEK_OK || (!pending && st == CEK_OUT_OF_MEMORY));
        if (m != NULL)
            m->deleter(m);
        ck_assert_int_eq(l.deleted, 0);
        cek_tensor_free(x);
        ck_assert_int_eq(l.deleted, x != NULL);
        if (pending)
            break;
    }
    cek_tensor_free(before);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_share");
    TCase *tests = tcase_create("share");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_handed_out_is_the_same_memory);
    tcase_add_test(tests, memory_outlives_tensor_and_engine_until_it_is_deleted);
    tcase_add_test(tests, what_is_taken_in_is_the_same_memory_and_given_back_once);
    tcase_add_test(tests, what_we_hand_out_we_can_take_in);
    tcase_add_test(tests, what_overlaps_under_two_names_is_assigned_whole);
    tcase_add_test(tests, every_type_goes_out_and_comes_in);
    tcase_add_test(tests, what_cannot_be_shared_is_refused_and_stays_the_lenders);
    tcase_add_test(tests, a_device_that_cannot_share_says_so);
    tcase_add_test(tests, what_is_taken_in_stays_until_queued_work_has_ended);
    tcase_add_test(tests, no_allocation_that_fails_loses_anything);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
