/* SPDX-License-Identifier: MIT
 *
 * cekernels.h - the core library, libcekernels: devices of every plugin behind one API, memory,
 * streams, tensors.
 *
 *     cek_engine *engine = NULL;   cek_device *device = NULL;
 *     cek_tensor *a = NULL, *b = NULL, *c = NULL;
 *     float host[6] = {1, 2, 3, 4, 5, 6}, product[4];
 *     if (cek_engine_create(NULL, &engine) ||
 *         cek_engine_find(engine, "cuda:0,cpu:0", &device) ||            // the first that is there
 *         cek_tensor_from_host(device, CEK_F32, 2, (int64_t[]){2, 3}, host, &a) ||
 *         cek_tensor_from_host(device, CEK_F32, 2, (int64_t[]){3, 2}, host, &b) ||
 *         cek_matmul(a, b, &c) || cek_tensor_read(c, product, sizeof product))
 *         fprintf(stderr, "%s\n", cek_error_text());
 *     cek_tensor_free(c);  cek_tensor_free(b);  cek_tensor_free(a);  cek_engine_free(engine);
 *
 * Models, training and data are in nn.h; the ABI of device plugins is plugin.h.
 *
 * Conventions. Everything that can fail returns a cek_status and leaves a text for this thread
 * (cek_error_text); outputs are the last parameters and are NULL or 0 after a failure; arguments
 * are then unchanged. NULL for a pointer is CEK_INVALID with a text that names the argument, unless
 * the function says what it means; functions that free do nothing then, and those that answer
 * without a status answer 0, NULL or "". Structs of options start with `size` (sizeof the
 * struct); zero in any other field means the default, and NULL options mean all defaults. The
 * library never prints, never exits and installs no signal handler. Shapes are int64_t, outermost
 * dimension first; images are NHWC, convolution weights [out][kh][kw][in/groups].
 *
 * Threads. Different objects may be used from different threads at once; one object from one thread
 * at a time unless its function says otherwise. Engines and devices may be used from all threads.
 * Several engines in one process are independent.
 *
 * fork. A child of fork() must not use an engine of its parent, nor free it: threads and driver
 * state are not inherited. It may create one of its own if no GPU or OpenCL plugin had been opened
 * before the fork; else exec first.
 */
#ifndef CEKERNELS_H
#define CEKERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cekernels/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CEK_API __attribute__((visibility("default")))
#define CEK_CHECKED __attribute__((warn_unused_result))

/* ---- Version, errors, log -------------------------------------------------------------------- */

CEK_API const char *cek_version(void); /* of the library that runs, "0.1.0" */

/* Statuses of the libraries, beyond those of plugin.h (0 to 63). */
enum {
    CEK_BAD_INPUT = 64,  /* a file or a text does not hold what it should */
    CEK_IO = 65,         /* the system refused to read or write */
    CEK_NOT_FOUND = 66,  /* nothing has that name */
    CEK_CANCELLED = 67,  /* stopped on request */
    CEK_NO_DEVICE = 68,  /* no device fits the request; the text quotes the load report */
    CEK_BAD_PLUGIN = 69, /* a plugin broke the ABI or was refused */
    CEK_NOT_FINITE = 70  /* a loss or a weight is NaN or infinite */
};

/* The text of this thread's latest failure: one line that names the object and the cause. "" before
 * the first; valid until the next failure on this thread. */
CEK_API const char *cek_error_text(void);

/* Makes a text of unknown origin (a file's name, what is in a file) fit for a line on a terminal, in
 * place: what breaks a line or moves on becomes a blank; other control characters, those that change
 * the direction of writing and bytes that are not UTF-8 become '?'; all else stays. Error texts, log
 * messages, and what is told of plugins and devices have been through it. */
CEK_API void cek_text_printable(char *text);

/* cek_text_nearest - which of `words` (ended by NULL) somebody meant who wrote `text`: the one from which the fewest
 * letters were left out, put in, changed or swapped, at most two; or which begins with it, where it has three letters
 * or more. NULL where none is near. Error texts of the libraries name such a word by themselves. Threads: any. */
CEK_API const char *cek_text_nearest(const char *text, const char *const *words);

/* The constant's name in lower case without CEK_, "out_of_memory"; "unknown" for other values. */
CEK_API const char *cek_status_name(cek_status status);

/* Process-wide log. Messages up to `level` (CEK_LOG_...) go to `fn`, from any thread, several at
 * once; NULL: no log, which is how a program starts. Once this has returned, the former callback is
 * not running and will not be called again. */
typedef void (*cek_log_fn)(void *user, int level, const char *text);
CEK_API void cek_log_set(cek_log_fn fn, void *user, int level);

/* ---- Engine: plugins and devices ------------------------------------------------------------- */

typedef struct cek_engine cek_engine;
typedef struct cek_device cek_device;

typedef struct cek_engine_options {
    uint32_t size;
    uint32_t flags;
    /* Extra plugin files, loaded before the search path, NULL-terminated; "/a/b/foo.so". */
    const char *const *plugin_files;
    /* true: load plugin_files alone. */
    bool only_plugin_files;
    uint8_t reserved[7];
    /* How long a device may be busy without one of its commands finishing before it counts as lost: every wait for a
     * device ends by then. Later calls on it fail with CEK_DEVICE_LOST, and what it may still use is never freed or
     * used again. A call of a program's own thread that the plugin does not return from cannot be ended, but other
     * threads go on; trainers and predictors (nn.h) call devices on threads that they can do without. 0: the variable
     * CEKERNELS_TIMEOUT in seconds, else 600 s: longer than any one operation, copy or command buffer takes, so that a
     * slow device is not called lost. */
    uint64_t timeout_ns;
    /* The same of calls that make or compile something: opening a device, creating operations and command buffers,
     * starting a plugin. 0: the variable CEKERNELS_MAKING_TIMEOUT in seconds, else ten times the other. */
    uint64_t making_timeout_ns;
} cek_engine_options;

/* cek_engine_create - finds the files of plugins. None is opened yet: a plugin is loaded and its
 * driver started when something first asks for a device that it may have (cek_engine_select,
 * cek_engine_find), or for all (cek_engine_start, cek_engine_device_count).
 *
 * Directories, in this order: those of CEKERNELS_PLUGIN_PATH (absolute ones, separated by ':';
 * ignored in a program with raised privileges), `cekernels/` beside this library, the installed
 * plugin directory. A plugin is called like its file there, NAME.so or NAME-ANYTHING.so, so that
 * others need not be opened to find it; files of plugin_files may have any name, and are opened
 * to learn the plugin's. The first plugin of a name wins. A file or directory that others may write to,
 * or that belongs to someone else, is refused. CEKERNELS_PLUGINS=-opencl,-cuda leaves plugins out;
 * =cpu,cuda takes these alone; neither applies to plugin_files.
 * A plugin that cannot be used makes nothing fail: it leaves a line in the load report. No
 * device at all is no error either; the first request for one is. Devices are opened when first
 * used.
 * Errors: CEK_OUT_OF_MEMORY, CEK_INVALID (a malformed variable). */
CEK_API CEK_CHECKED cek_status cek_engine_create(const cek_engine_options *options, cek_engine **out);

/* cek_plugin_file_check - whether a file can be given to dlopen() without harm, as every file is that an engine opens:
 * a regular file and a whole shared object for this machine. For programs that open a plugin by themselves. Errors:
 * CEK_NOT_FOUND, CEK_BAD_PLUGIN (cut off, of another machine, no shared object). */
CEK_API CEK_CHECKED cek_status cek_plugin_file_check(const char *path);

/* The engine goes now or, where objects of its devices are still there (memory, streams, markers,
 * tensors, operations, trainers, predictors, loaders), with the last of them: they may be used and
 * freed in any order, as garbage collectors do, and keep their devices. */
CEK_API void cek_engine_free(cek_engine *engine);

/* One line for every candidate file, and for every plugin of this project that was left out when it
 * was configured. Lines are fixed when the engine is made, what they say changes as plugins are
 * started. Texts belong to the engine. */
typedef struct cek_load_entry {
    const char *path;   /* as the system has it: see cek_text_printable */
    const char *plugin; /* its name, "" if it did not get that far */
    const char *version;
    const char *stage;  /* "not built", "search", "permissions", "not started", "open", "query",
                            * "create", "devices", "loaded" */
    const char *reason; /* why it stopped there; "" for a loaded one */
    cek_status status;  /* CEK_OK loaded; CEK_NOT_READY not started, since nothing has asked for
                            * it; CEK_UNAVAILABLE absent hardware, driver, library or folder, or
                            * left out on purpose (by CEKERNELS_PLUGINS, or behind another of its
                            * name); else a fault */
    uint32_t profile;   /* CEK_PROFILE_..., 0 unless loaded */
    uint32_t device_count;
    uint32_t abi;
} cek_load_entry;
CEK_API size_t cek_engine_load_count(const cek_engine *engine);
CEK_API cek_status cek_engine_load_entry(cek_engine *engine, size_t index, cek_load_entry *out);
/* All entries as text, a line each; the caller's (free). */
CEK_API CEK_CHECKED cek_status cek_engine_load_report(cek_engine *engine, char **out);

/* cek_engine_start - starts every plugin that is not, but opens no device; what became of each is in
 * the load report. Blocks: while drivers initialise. Errors: CEK_OUT_OF_MEMORY of the host, and
 * CEK_TIMEOUT behind another thread that starts one; both leave some for the next call. */
CEK_API CEK_CHECKED cek_status cek_engine_start(cek_engine *engine);

/* All devices of all plugins, in the order of the load report and of their indices, also those that
 * never join by themselves. Starts the plugins as cek_engine_start does; 0 and NULL where that
 * fails. They belong to the engine; a device and its place stay what they are. */
CEK_API size_t cek_engine_device_count(cek_engine *engine);
CEK_API cek_device *cek_engine_device(cek_engine *engine, size_t index);

/* cek_engine_select - resolves a list such as "cpu", "cpu:0,cuda:1-3" or "opencl:0,cpu" to devices,
 * in that order, each once, for a job that needs `profile` (CEK_PROFILE_...). In "cuda:0,2,4-6" bare
 * numbers go on with the plugin before.
 *
 * Starts the plugins that are named and no other: for "cpu" nothing of OpenCL or CUDA is loaded.
 * `cpu` means every cpu:*; of `opencl` not those that are taken only when named, such as a
 * simulator's, unless it has no other. `list` NULL: the variable CEKERNELS_DEVICES; without it
 * every device that joins by itself (not only when named) and can do the job, one per processor
 * (CUDA before OpenCL for a GPU, the CPU plugin before OpenCL for a CPU). "all" means the same.
 * "gpu" means those of them that are GPUs, "gpu:0" the first and so on. "fastest" is the one of them of
 * which the most is to be expected by what plugins report (nothing is measured, so it is always the
 * same): whatever is no processor before what is, then the more compute units, then the more memory,
 * then the first. Each of these starts every plugin. "cpu" is always the plugin of that name, never an
 * OpenCL driver for processors.
 * *out is an array of *count devices, the caller's (free); the devices are the engine's.
 * Threads: any; a driver that hangs while it starts holds up those alone that ask for it.
 * Blocks: while drivers initialise.
 * Errors: CEK_NO_DEVICE (names the part that fits nothing, and the name that is nearest, and quotes the load report,
 * or the device whose plugin has less than `profile`), CEK_INVALID (malformed: nothing is started then),
 * CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_engine_select(cek_engine *engine, const char *list, uint32_t profile,
                                                 cek_device ***out, size_t *count);

/* The first device of a list of alternatives that exists, of any profile: "cuda:0,opencl:0,cpu:0"
 * falls back from left to right, and starts what is on the right only then. NULL: the first of
 * cek_engine_select(NULL, CEK_PROFILE_INFERENCE). Errors as there. */
CEK_API CEK_CHECKED cek_status cek_engine_find(cek_engine *engine, const char *alternatives, cek_device **out);

/* cek_inside_plugin - whether this thread is in a function of a plugin, and which: "cuda", "create";
 * "cpu:0", "queue_sync"; a file's path, "open". For the handler of a crash, which can say then who
 * has crashed: async-signal-safe. The texts live as long as the call; NULL where it is in none. */
CEK_API bool cek_inside_plugin(const char **who, const char **call);

/* ---- Device ---------------------------------------------------------------------------------- */

CEK_API const char *cek_device_name(const cek_device *device); /* "cuda:1" */
CEK_API cek_engine *cek_device_engine(const cek_device *device);
/* cek_device_require - whether the device's plugin is of this profile or a higher one (CEK_PROFILE_...), as trainers
 * and predictors ask of theirs. Errors: CEK_NO_DEVICE, with the device, what it has and what is needed. */
CEK_API CEK_CHECKED cek_status cek_device_require(const cek_device *device, uint32_t profile);
/* As the plugin describes it; free_bytes is current. out->size must be set. */
CEK_API CEK_CHECKED cek_status cek_device_describe(cek_device *device, cek_device_info *out);
/* Waits until everything that was queued on the device through this library has finished. No other
 * thread may be using a stream of the device meanwhile. */
CEK_API CEK_CHECKED cek_status cek_device_sync(cek_device *device);

/* The plugin's table and device handle, for programs that call what has no function here. Opens the device. Both live
 * as long as the engine. Every slot may be called: those that the plugin lacks answer CEK_UNSUPPORTED. The text of a
 * failed call of the table, where the plugin gave one, is in cek_error_text(). */
CEK_API CEK_CHECKED cek_status cek_device_raw(cek_device *device, const cek_plugin **plugin, cek_dev **dev);

/* cek_device_read_times - what the device has done up to now, on its own clock. The caller sets out->size. Errors:
 * CEK_UNSUPPORTED where it does not count. */
CEK_API CEK_CHECKED cek_status cek_device_read_times(cek_device *device, cek_device_times *out);

/* cek_device_read_sensors - how much the device has to do, how hot it is, what it draws, how fast its clock runs, how
 * much of its memory is taken, by whatever program, and whether heat or power hold it back. plugin.h has the struct;
 * the caller sets out->size. out->known says which of them the driver tells; the others are 0:
 *
 *     cek_device_sensors now = { .size = sizeof now };
 *     if (!cek_device_read_sensors(device, &now) && now.known & CEK_SENSOR_TEMPERATURE)
 *         printf("%.0f degrees Celsius\n", now.celsius);
 *
 * Of a processor utilization is that since the reading before it, so the first has none. Does not open the device.
 * Threads: any, also while the device works. Takes no memory, but for the first call, in which the plugin may load a
 * library of the driver's. Blocks: for no work of the device's.
 * Errors: CEK_UNSUPPORTED where the plugin reads no sensors, CEK_DEVICE_LOST, CEK_BAD_PLUGIN (a value that cannot be,
 * such as a utilization of 2), CEK_INVALID (the size). All but size is 0 then. */
CEK_API CEK_CHECKED cek_status cek_device_read_sensors(cek_device *device, cek_device_sensors *out);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Device memory comes from a caching allocator per device: freed memory is kept for the next
 * request. When the device (or the limit) is exhausted, the cache is emptied and the request tried
 * again before it fails. */
typedef struct cek_memory_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t used_bytes;   /* in the hands of callers, rounded as allocated */
    uint64_t cached_bytes; /* kept for reuse */
    uint64_t peak_used_bytes;
    uint64_t limit_bytes; /* of used + cached; CEK_UNKNOWN without a limit */
    uint64_t alloc_count; /* requests; those served by the plugin rather than the cache: */
    uint64_t plugin_alloc_count;
    uint64_t device_free_bytes, device_total_bytes; /* as the device says, or CEK_UNKNOWN */
} cek_memory_stats;
CEK_API CEK_CHECKED cek_status cek_device_memory_stats(cek_device *device, cek_memory_stats *out);
CEK_API void cek_device_reset_peak(cek_device *device);
/* 0 takes the limit away. A limit below what is used now makes the next requests fail. */
CEK_API CEK_CHECKED cek_status cek_device_set_memory_limit(cek_device *device, uint64_t bytes);
/* Gives cached memory back to the device. */
CEK_API void cek_device_empty_cache(cek_device *device);

typedef struct cek_memory cek_memory;
/* Offset 0 of a cek_mem of its own, so that it may be mapped. */
enum { CEK_MEMORY_ALONE = 1u << 0 };
/* cek_memory_alloc - `bytes` > 0 of device memory, aligned to CEK_ALIGNMENT, contents undefined.
 * The caller frees it after the work that uses it has finished. Threads: any. Errors:
 * CEK_OUT_OF_MEMORY (needed, used, limit and free in the text). */
CEK_API CEK_CHECKED cek_status cek_memory_alloc(cek_device *device, uint64_t bytes, uint32_t flags, cek_memory **out);
CEK_API void cek_memory_free(cek_memory *memory);
CEK_API cek_ref cek_memory_ref(const cek_memory *memory);
CEK_API uint64_t cek_memory_bytes(const cek_memory *memory); /* as it was asked for */
CEK_API cek_device *cek_memory_device(const cek_memory *memory);
/* The memory's address in the host, or NULL where it has none. A range of it may be read and written while no queued
 * work uses that range. Opened devices' memory only; threads: any. */
CEK_API void *cek_memory_host(const cek_memory *memory);

/* Host memory from which `device` copies fastest (page-locked where the backend offers that, else
 * aligned). */
CEK_API CEK_CHECKED cek_status cek_pinned_alloc(cek_device *device, uint64_t bytes, void **out);
CEK_API void cek_pinned_free(cek_device *device, void *ptr);
/* Instead of cek_pinned_free, where a copy may still use the memory and will not end: of a device
 * that is lost or hangs. It is never freed. */
CEK_API void cek_pinned_abandon(cek_device *device, void *ptr);

/* cek_pinned_register - makes memory of the caller's as good as pinned memory for copies to and from `device`, in
 * place: a data set that is mapped, say. Any address and size; it stays the caller's, may be read and written as
 * before, but for what a copy that is queued reads or writes (cek_stream_upload), and has to stay until
 * cek_pinned_unregister, which gets the same address when no copy from or to it is under way; for ever, once the
 * device is lost. May block: pages are brought into memory. The same range may be registered with several devices,
 * and several times with one, which then needs as many calls of cek_pinned_unregister. Ranges of one device that
 * overlap otherwise are refused. Each keeps the device's engine.
 * Errors: CEK_UNSUPPORTED where the device reads any memory itself, or its plugin or driver cannot, of this memory or
 * at all (it then serves as it is, as after any error but CEK_DEVICE_LOST); CEK_OUT_OF_MEMORY; CEK_INVALID for 0
 * bytes, NULL and overlaps. Threads: any. */
CEK_API CEK_CHECKED cek_status cek_pinned_register(cek_device *device, void *ptr, uint64_t bytes);
/* NULL, and an address at which nothing is registered with `device`, are ignored. Does not call a lost device. */
CEK_API void cek_pinned_unregister(cek_device *device, void *ptr);

/* ---- Streams and events: asynchronous work --------------------------------------------------- */

typedef struct cek_stream cek_stream;
typedef struct cek_marker cek_marker; /* an event: a point in a stream */

/* A stream is an in-order queue of one device. One thread at a time. */
CEK_API CEK_CHECKED cek_status cek_stream_create(cek_device *device, cek_stream **out);
CEK_API void cek_stream_free(cek_stream *stream);
CEK_API cek_device *cek_stream_device(const cek_stream *stream);
/* The name of its line in a trace; a string that outlives the stream. Before its first command. */
CEK_API void cek_stream_set_name(cek_stream *stream, const char *name);
CEK_API cek_queue *cek_stream_raw(const cek_stream *stream);
/* CEK_OK, CEK_TIMEOUT, or the failure of the stream's work; CEK_FOREVER ends at the engine's timeout_ns. */
CEK_API CEK_CHECKED cek_status cek_stream_sync(cek_stream *stream, uint64_t timeout_ns);
/* Contents of memory. What does not lie within the memory that was asked for is CEK_INVALID.
 * Host memory stays valid and untouched until the stream has passed the copy; for ever, once the
 * device is lost. */
CEK_API CEK_CHECKED cek_status cek_stream_upload(cek_stream *stream, cek_ref dst, const void *src, uint64_t bytes);
CEK_API CEK_CHECKED cek_status cek_stream_download(cek_stream *stream, void *dst, cek_ref src, uint64_t bytes);
/* Repeats the low pattern_bytes (1, 2 or 4) of `pattern`, of which offset and bytes are multiples. */
CEK_API CEK_CHECKED cek_status cek_stream_fill(cek_stream *stream, cek_ref dst, uint32_t pattern,
                                               uint32_t pattern_bytes, uint64_t bytes);
/* Up to 4096 bytes, offset and size multiples of 4; `src` is copied before the call returns. For the blocks of
 * plugin.h. */
CEK_API CEK_CHECKED cek_status cek_stream_update(cek_stream *stream, cek_ref dst, const void *src, uint64_t bytes);

/* cek_stream_copy - `bytes` from `src`, produced on the stream `from`, to `dst` on the device of
 * `to`; any two devices. Ordered after all work queued on `from` and before work queued on `to`
 * later. The calling thread waits for `from`; with a link between the devices the copy is then
 * queued, otherwise it goes through host memory (without staging where one side is host memory).
 * cek_stream_pull waits for nothing. Both streams are the caller's for the duration. from == to is
 * allowed.
 * As with uploads, `src` must stay as it is until `to` has passed the copy. Where a device is lost meanwhile, it may
 * still read `src` and write to `dst` on the other: neither is freed then (cek_tensor_to sees to that itself). */
CEK_API CEK_CHECKED cek_status cek_stream_copy(cek_stream *to, cek_ref dst, cek_stream *from, cek_ref src,
                                               uint64_t bytes);

/* cek_stream_pull - enqueues a copy of `bytes` at `offset` of `src` to `dst` on the device of `to`, by the plugin that
 * drives both devices. Not ordered after the work that makes `src`, which must be seen to have finished, and which must
 * stay as it is until `to` has passed the copy. Never waits. Errors: CEK_UNSUPPORTED where no plugin drives both, or it
 * does not reach one device's memory from the other: then download and upload. */
CEK_API CEK_CHECKED cek_status cek_stream_pull(cek_stream *to, cek_ref dst, const cek_memory *src, uint64_t offset,
                                               uint64_t bytes);

CEK_API CEK_CHECKED cek_status cek_marker_create(cek_device *device, bool timing, cek_marker **out);
CEK_API void cek_marker_free(cek_marker *marker);
CEK_API CEK_CHECKED cek_status cek_marker_record(cek_marker *marker, cek_stream *stream);
/* CEK_OK, CEK_NOT_READY, or the failure of the work before it. */
CEK_API CEK_CHECKED cek_status cek_marker_query(cek_marker *marker);
CEK_API CEK_CHECKED cek_status cek_marker_sync(cek_marker *marker, uint64_t timeout_ns);
/* Device time from one to the other, both made with `timing` and recorded; CEK_NOT_READY until they
 * have happened. */
CEK_API CEK_CHECKED cek_status cek_marker_elapsed(cek_marker *start, cek_marker *end, uint64_t *ns);
/* Work queued on `stream` later waits for the marker; across devices the calling thread waits. */
CEK_API CEK_CHECKED cek_status cek_stream_wait(cek_stream *stream, cek_marker *marker);

/* ---- Traces ---------------------------------------------------------------------------------- */

/* cek_trace_start - from now on what streams of the engine's devices execute, and what the library's threads do beside
 * them, is recorded. Operations then run one by one, under the names of their layers, where they would run as command
 * buffers, and each is timed by two events of its device: a run takes longer than without. The default stream of a
 * device that is not inline is not recorded. At most 1,048,576 commands and spans; the file says how many
 * more there were.
 * Threads: any; before the streams that are to be seen have work. Errors: CEK_INVALID if the engine is being traced
 * already, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_trace_start(cek_engine *engine);

/* cek_trace_save - writes the record to a file in the Trace Event format (JSON; chrome://tracing and
 * ui.perfetto.dev show it).
 *
 * A line for each stream and for each thread; arrows join what was done with one range of parameters, from the first
 * contribution that was added to the last device that took the result. Work of a stream is in the record when a later
 * command of that stream was enqueued and found it finished, or the stream was freed: free trainers and predictors
 * first. The file is there completely or not at all. Errors: CEK_INVALID if nothing is
 * traced, CEK_IO, CEK_OUT_OF_MEMORY. */
CEK_API CEK_CHECKED cek_status cek_trace_save(cek_engine *engine, const char *path);

/* The record that the device's commands go into; NULL while its engine is not traced. The engine's. */
typedef struct cek_trace cek_trace;
CEK_API cek_trace *cek_device_trace(const cek_device *device);

/* ---- Operations and command buffers ---------------------------------------------------------- */

/* cek_op_make - an operation of plugin.h (section 7) on a device, for any number of runs on its streams.
 *
 * `info` may be NULL, else info->size is set. *out is the caller's: cek_op_free, with the device that made it, after
 * the work that uses it has finished. Threads: any. Blocks: may choose, tune and compile. Errors: CEK_UNSUPPORTED (what
 * the device does not compute), CEK_INVALID, CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_op_make(cek_device *device, const cek_op_desc *desc, cek_op_info *info,
                                           cek_op **out);
CEK_API void cek_op_free(cek_device *device, cek_op *op);
/* `operands` indexed by slot; `workspace` of what the operation asked for, {NULL, 0} if that is nothing. */
CEK_API CEK_CHECKED cek_status cek_stream_run(cek_stream *stream, const cek_op *op, const cek_ref *operands,
                                              uint32_t count, cek_ref workspace);

/* cek_stream_prepack - writes the packed form of an operation's weights (plugin.h, section 7), of info->prepack_bytes,
 * from the plain ones, which `operands` has in their slot. Errors: CEK_INVALID: not one made with CEK_OP_PREPACKED. */
CEK_API CEK_CHECKED cek_status cek_stream_prepack(cek_stream *stream, const cek_op *op, const cek_ref *operands,
                                                  uint32_t count, cek_ref packed);

/* cek_commands_make - records commands (plugin.h, section 11) that cek_stream_run_commands enqueues with one call.
 *
 * Copies the list; the operations and the memory that it names stay the caller's and outlive *out, which is the
 * caller's: cek_commands_free, with the device that made it, after its last run has finished. Runs do not overlap in
 * time. Threads: any. Errors: CEK_UNSUPPORTED (the device has no command buffers, or none for these commands),
 * CEK_INVALID, CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_commands_make(cek_device *device, const cek_cmd *commands, uint32_t count,
                                                 cek_cmdbuf **out);
CEK_API void cek_commands_free(cek_device *device, cek_cmdbuf *commands);
CEK_API CEK_CHECKED cek_status cek_stream_run_commands(cek_stream *stream, cek_cmdbuf *commands);

/* ---- Tensors --------------------------------------------------------------------------------- */

/* An array on one device. What operations create is dense and row-major; a view walks another tensor's memory
 * through strides (below). Each device has one default stream, shared by its tensors:
 * operations are queued there in the order of the calls and the calls return at once;
 * cek_tensor_read waits. Operations on tensors of one device from several threads are safe and
 * ordered by a lock. When queued work fails, every later operation on that device's tensors fails
 * with its text: what it left behind is never taken for a result.
 *
 * Operations create their result: *out is the caller's. All operands are on one device (else
 * CEK_INVALID, naming both), of one floating type (else CEK_INVALID: cast first) and of fitting
 * shapes (else CEK_INVALID, naming both shapes). What a device does not compute is CEK_UNSUPPORTED;
 * f32 is computed everywhere. */
typedef struct cek_tensor cek_tensor;

/* Contents undefined; rank 0 to 8, dimensions >= 1. */
CEK_API CEK_CHECKED cek_status cek_tensor_create(cek_device *device, cek_dtype type, int rank, const int64_t *shape,
                                                 cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_from_host(cek_device *device, cek_dtype type, int rank, const int64_t *shape,
                                                    const void *data, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_full(cek_device *device, cek_dtype type, int rank, const int64_t *shape,
                                               double value, cek_tensor **out);
CEK_API void cek_tensor_free(cek_tensor *tensor); /* queued work still finishes */

CEK_API cek_device *cek_tensor_device(const cek_tensor *tensor);
CEK_API cek_dtype cek_tensor_type(const cek_tensor *tensor);
CEK_API int cek_tensor_rank(const cek_tensor *tensor);
CEK_API const int64_t *cek_tensor_shape(const cek_tensor *tensor); /* rank entries, the tensor's */
CEK_API int64_t cek_tensor_count(const cek_tensor *tensor);        /* elements */
CEK_API uint64_t cek_tensor_bytes(const cek_tensor *tensor);
/* Elements from one to the next along each dimension, rank entries, the tensor's. */
CEK_API const int64_t *cek_tensor_strides(const cek_tensor *tensor);
/* Dense and row-major. */
CEK_API bool cek_tensor_is_contiguous(const cek_tensor *tensor);
/* Where its first element lies. */
CEK_API cek_ref cek_tensor_ref(const cek_tensor *tensor);
CEK_API const char *cek_dtype_name(cek_dtype type); /* "f32" */
CEK_API size_t cek_dtype_bytes(cek_dtype type);     /* 0 for an unknown one */

/* cek_tensor_to - copies `src` to `device` and returns the copy in *out (also when it is there
 * already).
 *
 * Any device to any device; one staging copy through host memory where the two share no link.
 * Ordered after all work queued on `src`; *out may be used at once on its own device. `src` stays
 * the caller's and may be freed at once. Errors: CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_tensor_to(const cek_tensor *src, cek_device *device, cek_tensor **out);
/* Waits for the work that makes the tensor, then copies all of it, row-major; `bytes` must equal its size. Writing to
 * a view writes the elements that it shows; memory of another's that may only be read is CEK_INVALID. */
CEK_API CEK_CHECKED cek_status cek_tensor_read(const cek_tensor *tensor, void *dst, uint64_t bytes);
CEK_API CEK_CHECKED cek_status cek_tensor_write(cek_tensor *tensor, const void *src, uint64_t bytes);
/* cek_tensor_cast - each element as the nearest value of `type`, ties to the one that is even.
 *
 * Between floating types what is too large becomes an infinity, and NaN stays NaN. From floating to
 * integer types 2.5 becomes 2, 3.5 becomes 4 and -1.7 becomes -2; what is out of range becomes the
 * end of the range (of u8: 300 becomes 255, -1 becomes 0), and so do the infinities; NaN becomes 0.
 * Note that NumPy and PyTorch truncate towards zero there (-1.7 to -1) and leave the rest undefined:
 * this is the conversion of plugin.h's copy, the same on every device.
 * Errors: CEK_UNSUPPORTED for pairs that the device lacks; u8 and i32 to f32 are there on all. */
CEK_API CEK_CHECKED cek_status cek_tensor_cast(const cek_tensor *x, cek_dtype type, cek_tensor **out);
/* Another shape of the same element count, always a copy. One dimension may be -1. torch.reshape().clone(). */
CEK_API CEK_CHECKED cek_status cek_tensor_reshape(const cek_tensor *x, int rank, const int64_t *shape,
                                                  cek_tensor **out);
/* out.shape[i] = x.shape[axes[i]], always a copy; NCHW to NHWC is {0, 2, 3, 1}. torch.permute().contiguous(). */
CEK_API CEK_CHECKED cek_status cek_tensor_permute(const cek_tensor *x, const int *axes, cek_tensor **out);

/* Elementwise, broadcasting as NumPy does: shapes are aligned at the last dimension, and 1
 * stretches. */
CEK_API CEK_CHECKED cek_status cek_add(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_sub(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_mul(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_div(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
/* x*factor + offset */
CEK_API CEK_CHECKED cek_status cek_scale(const cek_tensor *x, double factor, double offset, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_neg(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_exp(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_log(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_sqrt(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_relu(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tanh(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_sigmoid(const cek_tensor *x, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_gelu(const cek_tensor *x, cek_tensor **out);

/* Over `count` axes (negative ones count from the end), which disappear; count 0: over all, giving
 * rank 0. The result is f64 for f64, else f32. */
CEK_API CEK_CHECKED cek_status cek_sum(const cek_tensor *x, int count, const int *axes, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_mean(const cek_tensor *x, int count, const int *axes, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_max(const cek_tensor *x, int count, const int *axes, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_min(const cek_tensor *x, int count, const int *axes, cek_tensor **out);
/* The place of the largest (smallest) element along one axis, which disappears: i32. Of equal ones the first; a NaN
 * wins, the first of them. torch.argmax(x, axis); over all elements: of x reshaped to {-1}. Types but f32:
 * CEK_UNSUPPORTED where the device lacks them. */
CEK_API CEK_CHECKED cek_status cek_argmax(const cek_tensor *x, int axis, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_argmin(const cek_tensor *x, int axis, cek_tensor **out);
/* ---- Comparisons ---- */

/* 1 where it holds and 0 elsewhere, as u8; operands of any one type, which broadcast. Exact in every type, i32 too. A
 * NaN is equal to nothing, on no side of anything, and ne is 1 there. torch.eq and so on. */
CEK_API CEK_CHECKED cek_status cek_eq(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_ne(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_lt(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_le(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_gt(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_ge(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);
/* The element of a where `condition`, a u8, is not 0, else b's; all three broadcast, a and b are of any one type.
 * torch.where. CEK_UNSUPPORTED: i32 of eight dimensions none of which can be walked with its neighbour. */
CEK_API CEK_CHECKED cek_status cek_where(const cek_tensor *condition, const cek_tensor *a, const cek_tensor *b,
                                         cek_tensor **out);

/* Over the last dimension. */
CEK_API CEK_CHECKED cek_status cek_softmax(const cek_tensor *x, cek_tensor **out);

/* [m,k] x [k,n] -> [m,n]; leading dimensions are batches: equal, or absent on one side. */
CEK_API CEK_CHECKED cek_status cek_matmul(const cek_tensor *a, const cek_tensor *b, cek_tensor **out);

typedef struct cek_conv2d_options {
    uint32_t size;
    uint32_t groups;                 /* 0 = 1 */
    uint32_t stride_h, stride_w;     /* 0 = 1 */
    uint32_t dilation_h, dilation_w; /* 0 = 1 */
    uint32_t pad_top, pad_left, pad_bottom, pad_right;
    uint32_t math; /* CEK_MATH_F32 (default: may be transformed), _STRICT, _TF32 or _FAST of plugin.h */
    uint32_t reserved;
} cek_conv2d_options;
/* cek_conv2d - cross-correlation: x [n,h,w,in], weight [out,kh,kw,in/groups], bias [out] or NULL ->
 * [n,oh,ow,out]. The bias is f64 for f64, else f32.
 * A channel mismatch is CEK_INVALID and names both shapes. */
CEK_API CEK_CHECKED cek_status cek_conv2d(const cek_tensor *x, const cek_tensor *weight, const cek_tensor *bias,
                                          const cek_conv2d_options *options, cek_tensor **out);

/* ---- Views ----------------------------------------------------------------------------------- */

/* A view shows elements of another tensor: a tensor of its own, freed by itself and in any order, over the same
 * memory, which lives as long as any of them. What is written to one is seen in all. Elementwise operations,
 * comparisons, cek_where, sums and the other reductions, and copies of all sorts read views as they lie; cek_matmul,
 * cek_conv2d, cek_softmax, cek_argmax and cek_argmin make a dense copy of one first. Making a view copies nothing,
 * waits for nothing and fails with CEK_INVALID (an axis, an index; the shape in the text) or CEK_OUT_OF_MEMORY of the
 * host alone. A negative axis counts from the end. */

/* x[start:stop:step] along one axis, as Python has it: negative places count from the end, and those outside are cut
 * to it; INT64_MAX as stop: to the end. step >= 1. What would be empty is CEK_INVALID. */
CEK_API CEK_CHECKED cek_status cek_tensor_slice(const cek_tensor *x, int axis, int64_t start, int64_t stop,
                                                int64_t step, cek_tensor **out);
/* `length` >= 1 places from `start` on, which must be there. torch.narrow. */
CEK_API CEK_CHECKED cek_status cek_tensor_narrow(const cek_tensor *x, int axis, int64_t start, int64_t length,
                                                 cek_tensor **out);
/* One place of an axis, which disappears; negative from the end. torch.select, x[index]. */
CEK_API CEK_CHECKED cek_status cek_tensor_select(const cek_tensor *x, int axis, int64_t index, cek_tensor **out);
/* Without a dimension, which must be 1; with a dimension of 1 more, before `axis` (-1: behind the last). torch.squeeze,
 * torch.unsqueeze. */
CEK_API CEK_CHECKED cek_status cek_tensor_squeeze(const cek_tensor *x, int axis, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_unsqueeze(const cek_tensor *x, int axis, cek_tensor **out);
/* Two dimensions change places. torch.transpose. */
CEK_API CEK_CHECKED cek_status cek_tensor_transpose(const cek_tensor *x, int axis0, int axis1, cek_tensor **out);
/* A dense tensor of x's elements: another name for x if it is one, else a copy. tensor.contiguous(). */
CEK_API CEK_CHECKED cek_status cek_tensor_contiguous(const cek_tensor *x, cek_tensor **out);

/* cek_tensor_assign - writes src to dst, which is usually a view: x[2:4] = y. dst.copy_(src).
 *
 * src stretches to dst's shape, and its type is converted as by cek_tensor_cast. They may overlap. Errors: CEK_INVALID
 * (devices, naming both; shapes, naming both; a dst that may only be read, or of which two elements are one
 * in memory, as another library's may be), CEK_UNSUPPORTED (a pair of types). */
CEK_API CEK_CHECKED cek_status cek_tensor_assign(cek_tensor *dst, const cek_tensor *src);

/* `count` >= 1 tensors of one type and device one behind the other along an axis, beside which their shapes are equal;
 * or along a new axis, all of one shape. Copies. torch.cat, torch.stack. */
CEK_API CEK_CHECKED cek_status cek_tensor_cat(int count, const cek_tensor *const *parts, int axis, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_stack(int count, const cek_tensor *const *parts, int axis, cek_tensor **out);

/* ---- Values ---------------------------------------------------------------------------------- */

/* The one element of a tensor of any shape with one; waits. tensor.item(). */
CEK_API CEK_CHECKED cek_status cek_tensor_item(const cek_tensor *tensor, double *out);
/* start, start + step, ... up to but not stop, each as cek_tensor_cast makes it of a double. torch.arange. Without a
 * value it is CEK_INVALID. */
CEK_API CEK_CHECKED cek_status cek_tensor_arange(cek_device *device, cek_dtype type, double start, double stop,
                                                 double step, cek_tensor **out);
/* Ones on the diagonal, else zeros. torch.eye. */
CEK_API CEK_CHECKED cek_status cek_tensor_eye(cek_device *device, cek_dtype type, int64_t rows, int64_t columns,
                                              cek_tensor **out);

/* How a tensor is written out. Zero is NumPy's default. */
typedef struct cek_text_options {
    uint32_t size;
    int32_t precision;  /* digits behind the point at most, up to 100; 0 = 8; CEK_TEXT_WHOLE: none */
    int64_t threshold;  /* elements, above which the middle is left out; 0 = 1000 */
    int32_t edge_items; /* that are then left at each end of a dimension; 0 = 3 */
    int32_t line_width; /* characters; 0 = 75 */
    bool suppress;      /* small numbers as 0. rather than all in scientific form */
    bool repr;          /* with commas, the type, and the shape of what is cut: array([1., 2.], dtype=float32) */
    uint8_t reserved[6];
} cek_text_options;
enum { CEK_TEXT_WHOLE = -1 };

/* cek_tensor_text - the tensor's elements as NumPy 2 writes an array of them: str(), or repr().
 *
 * bf16, which NumPy lacks, is written as f16 is, in the digits that tell its numbers apart. Of a tensor above the
 * threshold only what is shown leaves the device. Waits. *out is the caller's (free): lines without a newline at the
 * end. The locale changes nothing. Errors: CEK_INVALID (options), CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST. */
CEK_API CEK_CHECKED cek_status cek_tensor_text(const cek_tensor *tensor, const cek_text_options *options, char **out);

/* ---- Memory shared with other libraries ------------------------------------------------------ */

/* By DLPack (dlpack.h, which a program that looks into the structs includes), as NumPy and PyTorch speak it: both
 * sides use the same memory and see what the other writes. There is no common queue: cek_tensor_to_dlpack waits until
 * all that was queued with the device's tensors has finished (not for streams of the program's own), and from then on
 * whoever writes sees to it that the other side neither reads nor writes meanwhile (cek_device_sync waits for ours,
 * torch.cuda.synchronize() for theirs). */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
enum { CEK_DLPACK_READ_ONLY = 1u << 0 };

/* cek_tensor_to_dlpack - the tensor, with its strides, for another library. *out is its; it calls (*out)->deleter
 * once, from any thread, after which the memory lives on as long as tensors of ours need it. x stays the caller's and
 * may be freed at once. CEK_DLPACK_READ_ONLY: the other side must not write; so it is where x is such memory itself.
 * Host memory of devices that live there (cpu, reference) becomes kDLCPU, that of cuda kDLCUDA. Errors:
 * CEK_UNSUPPORTED (the device's memory has no address that others know: use cek_tensor_to or cek_tensor_read),
 * CEK_DEVICE_LOST. _unversioned: the struct that had no version and no flags, for what still asks for it ("dltensor");
 * not of memory that may only be read. */
CEK_API CEK_CHECKED cek_status cek_tensor_to_dlpack(const cek_tensor *x, uint32_t flags,
                                                    struct DLManagedTensorVersioned **out);
CEK_API CEK_CHECKED cek_status cek_tensor_to_dlpack_unversioned(const cek_tensor *x, struct DLManagedTensor **out);

/* cek_tensor_from_dlpack - a tensor on `device` over another library's memory, in place.
 *
 * From success on `managed` is the tensor's: its deleter is called once, when the last tensor over the memory has been
 * freed and the work that was queued with it has finished, on the thread that freed it; never, where the device is
 * lost and may still use the memory. After a failure it is the caller's as before. Whatever writes to the memory has
 * finished. bool comes as u8, with the bytes that are there (0 and 1, as who lends it has them). Errors:
 * CEK_UNSUPPORTED (another major version; a type or number of lanes that tensors lack; strides that run backwards;
 * memory that this device does not reach, or one whose plugin cannot share: the reason is in the text, and copying is
 * cek_tensor_from_host), CEK_INVALID (no element, too many dimensions, an address that is no multiple of the
 * element). */
CEK_API CEK_CHECKED cek_status cek_tensor_from_dlpack(cek_device *device, struct DLManagedTensorVersioned *managed,
                                                      cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_from_dlpack_unversioned(cek_device *device, struct DLManagedTensor *managed,
                                                                  cek_tensor **out);

/* ---- Random numbers -------------------------------------------------------------------------- */

/* Counter-based (Philox4x32-10, plugin.h section 9, sample 0): the same numbers on every device,
 * f32, fewer than 2^34. Stream is the caller's choice. Needs a device of CEK_PROFILE_TRAINING. CEK_INVALID: low above
 * high, a negative deviation, numbers that f32 has not. */
CEK_API CEK_CHECKED cek_status cek_tensor_uniform(cek_device *device, int rank, const int64_t *shape, double low,
                                                  double high, uint64_t seed, uint32_t stream, cek_tensor **out);
CEK_API CEK_CHECKED cek_status cek_tensor_normal(cek_device *device, int rank, const int64_t *shape, double mean,
                                                 double std, uint64_t seed, uint32_t stream, cek_tensor **out);
/* Whole numbers from low up to but not high, i32, on any device: low + floor(word * (high - low) / 2^32), with the
 * words that those above have; so one number is at most (high - low) / 2^32 of its share likelier than another.
 * Computed on the host. torch.randint. */
CEK_API CEK_CHECKED cek_status cek_tensor_randint(cek_device *device, int rank, const int64_t *shape, int32_t low,
                                                  int32_t high, uint64_t seed, uint32_t stream, cek_tensor **out);

#ifdef __cplusplus
}
#endif

#endif /* CEKERNELS_H */
