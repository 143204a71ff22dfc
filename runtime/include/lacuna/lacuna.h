/* Lacuna's C ABI: what host applications link.
 *
 *   engine  --lacuna_compile-->  kernel  --lacuna_prepare-->  ready  --lacuna_launch-->  work on a
 * stream
 *
 * Plain C99, opaque handles, status codes, structs that begin with their size. Zero a struct before
 * its fields are set: one of an older header, which ends earlier, is served, and one of a newer
 * header is served as long as what this version does not know is zero, else refused. Functions
 * never throw, and what a callback throws goes no further. The text of the last error of the
 * calling thread is lacuna_last_error(). Handles are thread-safe: any number of threads may launch
 * one kernel at once. After fork() the child may use CPU engines and kernels; a GPU of the parent
 * is refused there with an error.
 *
 * Tensors are DLPack DLTensors, borrowed for the duration of the call (a launch on a stream uses
 * their memory until the stream has run it). Shapes: q, o [batch, heads, n_q, d]; k, v [batch,
 * heads_kv, n_k, d], heads a multiple of heads_kv; any strides over batch, head and token; on a GPU
 * multiples of 8 elements, that over token below 2^30, and data 16-byte aligned; d contiguous.
 * Outputs (o, lse, counts, tile_mask) overlap neither inputs nor each other, so o is not q; inputs
 * may overlap. Logits are in natural units; times in microseconds.
 *
 * A work tile is one query tile of one head with all its keys. A key that none of its queries sees
 * does not change its results, whatever K holds there: NaN and infinity count as 0 in what several
 * tokens share (means, summaries, scales of 8 bits; an antidiagonal estimate leaves out the cells
 * of queries that meet them), and a row sees no tile that is not visited. On the CPU this holds for
 * each query by itself, and for V.
 * On a GPU V has to be finite in all keys of a visited tile (all gathered keys of a row), seen or
 * not: a weight of 0 times NaN is NaN in every row of the tile. Tiles that a work tile does not
 * visit, and memory behind the last key, may hold anything. Keys that are gathered for 64 queries
 * are, on sm_90a, those of two such work tiles together.
 */
#ifndef LACUNA_LACUNA_H_
#define LACUNA_LACUNA_H_

#include <stddef.h>
#include <stdint.h>

#include "lacuna/dlpack.h"

#if defined(LACUNA_BUILD)
#define LACUNA_API __attribute__((visibility("default")))
#else
#define LACUNA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Out of memory is status 3, wherever an allocation fails, with two exceptions. To free the values
 * of a JSON text (metadata of a kernel, a tuning record, what info_json says) a few bytes are
 * allocated, and if there are none left even for that the process is ended. And NVRTC, which wants
 * some 200 MB, aborts the process where it gets none ("LLVM ERROR: out of memory"). */
#define LACUNA_ABI_VERSION 1
LACUNA_API uint32_t lacuna_abi_version(void);
LACUNA_API const char* lacuna_version(void);

typedef enum lacuna_status {
  LACUNA_OK = 0,
  LACUNA_ERROR_INPUT = 1, /* spec, tensors or parameters are not acceptable */
  LACUNA_ERROR_ENVIRONMENT =
      3, /* no driver, no NVRTC, no device, no kernel and none may be compiled, out of memory */
  LACUNA_ERROR_NOT_PREPARED =
      5, /* launch would have to compile or load: call lacuna_prepare first */
  LACUNA_ERROR_INTERNAL = 70
} lacuna_status;

/* Error of the calling thread: rendered text, and the same as JSON ({"diagnostics": [...]}). Valid
 * until the thread's next call. Empty after a success. */
LACUNA_API const char* lacuna_last_error(void);
LACUNA_API const char* lacuna_last_error_json(void);

typedef struct lacuna_engine lacuna_engine; /* devices, compilers and caches of a process */
typedef struct lacuna_kernel lacuna_kernel; /* one spec, head dim and dtype, for one device */

/* Events for logging and progress; detail_json is an object:
 *   "device"         an engine was created: {device, name, target, note}
 *   "warnings"       of a spec that was accepted: {diagnostics: [...]}
 *   "compile"        a kernel was compiled: what lacuna_kernel_info_json says
 *   "cache_hit"      a kernel was taken from the cache: the same
 *   "cache_warning"  the cache cannot be written, dropped an entry or skipped a tuning file:
 *                    {message}
 * Called from the thread that makes the call, or, for warnings, from one of the library's own, and
 * from several threads at once. A callback may read the texts of other engines and kernels and use
 * those; of the engine and kernel that the event is about it must call nothing, because locks are
 * held, and last_error of the call that is under way is not set yet. It must return: no longjmp, no
 * end of the thread. What it throws is dropped, and the call goes on. The texts are gone when it
 * returns. */
typedef void (*lacuna_event_callback)(void* user, const char* event, const char* detail_json);

typedef struct lacuna_engine_options {
  size_t struct_size;
  const char* device; /* "cpu", "cuda:N", or NULL: the first GPU, and the CPU on a machine that has
                         none (lacuna_engine_device tells which). A GPU that is there and cannot be
                         used is an error: nobody is moved to the CPU by the way */
  const char*
      cache_directory;       /* NULL: LACUNA_CACHE_DIR, XDG_CACHE_HOME/lacuna, HOME/.cache/lacuna */
  const char* template_path; /* NULL: the embedded device headers */
  int32_t threads;           /* CPU threads; 0: all */
  lacuna_event_callback on_event;
  void* user;
  int32_t forbid_compiling; /* not 0, or LACUNA_COMPILE=off: kernels for a GPU come from
                               lacuna_engine_add_kernels and the cache; lacuna_prepare of any other
                               is an error (E0714). The CPU's code is always made here */
} lacuna_engine_options;

LACUNA_API lacuna_status lacuna_engine_create(const lacuna_engine_options* options,
                                              lacuna_engine** engine);
/* Engine and kernels may be destroyed in any order, also while launches are under way: a kernel
 * keeps what it needs of its engine. `user` of on_event and bundles have to outlive all of them. */
LACUNA_API void lacuna_engine_destroy(lacuna_engine* engine);
/* "cuda:0", "NVIDIA H200", "sm_90a" or "cpu", "x86-64 ...", "cpu"; valid while the engine lives. Of
 * a null handle this and every other text is "", and lacuna_last_error says so. */
LACUNA_API const char* lacuna_engine_device(const lacuna_engine* engine);
LACUNA_API const char* lacuna_engine_device_name(const lacuna_engine* engine);
LACUNA_API const char* lacuna_engine_target(const lacuna_engine* engine);
/* What is missing on this machine and what serves in its place, in one line; "" if nothing is. */
LACUNA_API const char* lacuna_engine_note(const lacuna_engine* engine);

/* Adds kernels that were compiled elsewhere: what `lacuna build --bundle` writes, as an embedded
 * array or a mapped file, of any alignment. They serve where spec, head dims, dtype, batch, kv and
 * architecture are the same and the same version of the library made them; whichever NVRTC did,
 * none has to be there. All of it is checked at once (status 1 if it is not intact: then nothing is
 * added). The bytes are not copied: they have to stay as they are until the engine and all its
 * kernels are destroyed. What is added serves every later lacuna_prepare, ahead of the cache. On
 * the CPU they are checked, and not used. */
LACUNA_API lacuna_status lacuna_engine_add_kernels(lacuna_engine* engine, const void* data,
                                                   size_t bytes);

typedef enum lacuna_dtype {
  LACUNA_BF16 = 0,
  LACUNA_F16 = 1,
  LACUNA_F32 = 2 /* CPU only */
} lacuna_dtype;

typedef struct lacuna_shape {
  size_t struct_size;
  int32_t batch, heads, heads_kv, n_q, n_k;
} lacuna_shape;

/* How the entries of a batch lie in memory; lacuna_sequences below. */
typedef enum lacuna_batch {
  LACUNA_BATCH_UNIFORM = 0,   /* all of one length: q [batch, heads, n_q, d] */
  LACUNA_BATCH_SEQUENCES = 1, /* one behind the other, each of its own lengths */
  LACUNA_BATCH_PAGES = 2      /* the same, with keys and values in pages */
} lacuna_batch;

/* Keys and values in 8 bits: DLPack's kDLFloat8_e4m3fn. A number is its code times its scale (of
 * the launch), rounded to q's type; all else is as with k and v of that type. On a GPU from sm_89
 * on, for head dims that are multiples of 32; strides are multiples of 16 elements there. Where a
 * predictor compares keys token by token in 16 bits, 16-bit copies of k and v are made first. */
typedef enum lacuna_kv {
  LACUNA_KV_SAME = 0, /* the type of q */
  LACUNA_KV_E4M3 = 1
} lacuna_kv;

typedef struct lacuna_compile_options {
  size_t struct_size;
  int32_t head_dim; /* 64, 80, 96, 112, 128, 192, 256, 512, 576; on the CPU every multiple of 8 up
                       to 576 */
  lacuna_dtype dtype;
  const char* path; /* shown in errors; NULL: "<memory>" */
  const lacuna_shape*
      shape; /* about the problems it is for: tuned tiles of the nearest measured shape are taken
                (lacuna tune); NULL: those of the largest. Any shape may be launched */
  lacuna_batch batch; /* what launches will pass: a kernel is made for one of them */
  int32_t head_dim_v; /* of v and o, the same values; 0: the spec's first, else head_dim */
  lacuna_kv kv;       /* of which type k and v are */
} lacuna_compile_options;

/* Reads, checks and lowers a spec. Nothing is compiled for the GPU yet; the CPU code is. */
LACUNA_API lacuna_status lacuna_compile(lacuna_engine* engine, const char* spec_json, size_t bytes,
                                        const lacuna_compile_options* options,
                                        lacuna_kernel** kernel);
LACUNA_API void lacuna_kernel_destroy(lacuna_kernel* kernel);

/* Compiles (or takes from the cache), loads, and sets attributes. Blocks; idempotent; thread-safe.
 *
 * Signals: in its first compilation in a process NVRTC puts handlers of its own in the place of
 * those of SIGINT and SIGTERM, for some milliseconds, which end the process with status 4 and no
 * word. The library blocks both signals in its threads and in the calling one meanwhile, and puts
 * the host's handlers back as they were, flags and masks included. So a process in which no other
 * thread takes these signals is safe; one of several threads is where both are blocked in all of
 * them and one thread waits for them (sigwait, signalfd), as `lacuna` does. */
LACUNA_API lacuna_status lacuna_prepare(lacuna_kernel* kernel);

/* Facts about a kernel as JSON; valid while the kernel lives.
 *   always    {spec, device, target, head_dim, dtype, tile: {q, k}, signature}; head_dim_v where
 *             it is not head_dim
 *             signature: {tensors: ["q", ...], parameters: [{name, dtype, shape, minimum,
 *             maximum, default, unit, doc}], lse, keeps_selection}: inputs that a launch has
 *             to be given, and parameters; bounds without end are "inf" and "-inf", a
 *             parameter without default is required; where summaries may stay from launch to
 *             launch (k_summaries) also summaries: {tile_k, elements}, of one
 *   CPU       and {backend, compile_ms}
 *   GPU       and {stages: ["prepare_q", ..., "attend"]}, the kernels of a launch in their order
 *   GPU, once prepared, and {entry, registers, spill_bytes, stack_bytes, smem_bytes,
 *             compile_ms, cache: {hit, key}}. If registers of the first choice spilled, there is
 *             also relief, a number: `lacuna explain --relief NUMBER` shows the plan that was built
 *             instead. smem_bytes is all shared memory of a block. They are
 *             attend's; kernels: [{entry, ..., smem_bytes}] has all kernels of a launch in
 *             their order
 *   of specs with branches {branches: [{..., branch}]}, all this of each, with the name that the
 *             spec gives it; means and dims where it has them. What stands at the top is the first
 *             one's, but for stages, which are all, as "BRANCH.STAGE" */
LACUNA_API const char* lacuna_kernel_info_json(const lacuna_kernel* kernel);
/* What a launch takes, as JSON; valid while the kernel lives. All that "signature" above has, and
 *   {spec, digest, head_dim, dtype, batch: "uniform" | "sequences" | "pages",
 *    arguments: [{name, dtype, shape: ["batch", "heads", ...], output, required}]}
 * digest: SHA-256 of the spec's canonical JSON (lacuna emit --form spec), the same however the
 * text was laid out. arguments: all tensors that the kernel has a use for, in the order of
 * lacuna_launch_args; those of lacuna_sequences are named "sequences.q_begin", ... */
LACUNA_API const char* lacuna_kernel_signature_json(const lacuna_kernel* kernel);
LACUNA_API lacuna_status lacuna_kernel_tile(const lacuna_kernel* kernel, int32_t* tile_q,
                                            int32_t* tile_k);

/* Bytes of device memory that a launch of this shape needs in `workspace` (0: none). It depends on
 * the target too: on sm_90a specs without a predictor need a little as well. Of a batch of one
 * length it grows with each extent of the shape, so that of the largest serves all smaller ones; of
 * sequences fewer queries may need more, as their work is split further: take the largest. */
LACUNA_API lacuna_status lacuna_workspace_bytes(const lacuna_kernel* kernel,
                                                const lacuna_shape* shape, size_t* bytes);

/* A parameter: a tensor (f32 or i32, of the declared shape), or one number for all elements. */
typedef struct lacuna_param {
  const char* name;
  const DLTensor* tensor; /* NULL: `value` */
  double value;
} lacuna_param;

/* Which tiles a predictor kept, for specs with "reuse": n: one decision serves n launches. Memory
 * and struct are the caller's, one for each layer (or whatever shares a decision); zero `calls`
 * before the first launch and after anything but the contents of q, k, v changed. Not for two
 * launches at once. A launch that is being captured into a graph refuses a selection: launches are
 * counted on the host, so every replay would do what the captured launch did. Without a selection
 * every launch decides, and so does every replay. Of sequences `data` has a part for each, as large
 * as the longest that `lacuna_shape` admits needs, and what may change is the contents alone: with
 * other lengths the parts mean other tiles. */
typedef struct lacuna_selection {
  size_t struct_size;
  void* data;    /* device memory (CPU: host), 256-byte aligned */
  size_t bytes;  /* at least what lacuna_selection_bytes says */
  int32_t calls; /* launches since `data` was made; counted by lacuna_launch, modulo reuse */
} lacuna_selection;
/* Bytes of `data` for a shape; 0: the spec keeps nothing. */
LACUNA_API lacuna_status lacuna_selection_bytes(const lacuna_kernel* kernel,
                                                const lacuna_shape* shape, size_t* bytes);

/* Extents of k_summaries for sequences of shape->n_k keys in shape->batch slots; all 0: the kernel
 * has no summaries that stay. */
LACUNA_API lacuna_status lacuna_summaries_extents(const lacuna_kernel* kernel,
                                                  const lacuna_shape* shape, int64_t extents[4]);

/* The token order of a spec whose permute generates one (hilbert, row_major, ...): fills `order`
 * (host memory, i32 [count]); copy it to the device once and pass it as `order`. An error if the
 * spec generates none, or for another number of tokens. */
LACUNA_API lacuna_status lacuna_token_order(const lacuna_kernel* kernel, int32_t* order,
                                            size_t count);

/* A batch of sequences of different lengths, for kernels that were compiled for one. Everything
 * that a spec may have works on it, each sequence as in a launch of its own (summaries, scales,
 * rank and mass are those of its tokens alone, as are the means of a branch, and a token order has
 * places within each sequence). Parameters of tokens have max_n_q or max_n_k of them for each
 * sequence. Tensors:
 *
 *   q, o        [1, heads, tokens, d], any strides; lse f32 [1, heads, tokens]
 *   k, v        sequences: [1, heads_kv, tokens, d]
 *               pages:     [pages, heads_kv, page_tokens, d], any strides, so both orders of heads
 *                          and tokens; page_tokens 16, 32, 64 or 128
 *   counts, tile_mask, lists   as without sequences, batch = count, q_tiles and k_tiles for
 *                          max_n_q and max_n_k; what is behind the end of a sequence is 0. Where
 *                          the query heads of a KV head share work tiles (sm_90a, unless the spec
 *                          has a gate, a predictor, lists or quantised operands), there are no
 *                          reports, and they are refused: the queries of a tile depend on heads /
 *                          heads_kv of the launch, so nothing there is visited by tiles of tile_q.
 *                          "loader": "cp_async" or LACUNA_ATTEND_FAMILY=mma has them
 *   a parameter with a dimension batch, n_q or n_k   of count, max_n_q, max_n_k elements there
 *
 * In formulas b is the number of a sequence and n_q, n_k, q and k are those of the sequence:
 * without an offset in the spec its first query and its first key are token 0, with `q + n_k - n_q`
 * its last ones meet.
 *
 * Results of a sequence do not depend on what else is in the batch if the spec says how often rows
 * are split (tile.split_kv, 1 for never); otherwise the device splits them as all lengths together
 * ask for.
 *
 * What the tensors below hold is read when the work runs, on a GPU from device memory: nothing is
 * planned on the host, and a captured graph runs with other lengths, a length of 0 included. Only
 * count, max_n_q and max_n_k are taken from the call: grid and workspace follow from them
 * (lacuna_shape: batch = count, n_q = max_n_q, n_k = max_n_k). On a GPU a sequence that is longer
 * is cut at the end; other contents are the caller's to get right: starts and pages outside of the
 * tensors read foreign memory. On the CPU they are checked. */
typedef struct lacuna_sequences {
  size_t struct_size;
  int32_t count;            /* sequences, up to 65535 where they do not share work tiles */
  int32_t max_n_q, max_n_k; /* the most queries and keys that one of them may have */
  const DLTensor* q_begin;  /* i32 [count + 1]: first row of each in q, o and lse, ascending;
                               sequence i has q_begin[i + 1] - q_begin[i] queries */
  const DLTensor* n_k;      /* i32 [count]: keys of each */
  const DLTensor* k_begin;  /* sequences: i32 [count]: first row of each in k and v; they may share
                               rows. NULL with pages */
  const DLTensor* pages;    /* pages: i32 [count, max_pages]: where the keys of each lie, page after
                               page; any stride over count; what is behind its last page is not read.
                               Else NULL */
} lacuna_sequences;

/* What one branch of a spec with branches reports and keeps; everything is optional. */
typedef struct lacuna_branch_args {
  size_t struct_size;
  const char* name;            /* of the branch, as in the spec */
  const DLTensor* counts;      /* as in lacuna_launch_args, in tiles of lacuna_branch_tile */
  const DLTensor* tile_mask;   /* the same; keys of a branch over means are these */
  lacuna_selection* selection; /* of a branch with a predictor; "reuse" is that of the branch */
} lacuna_branch_args;

/* Of a branch, by its name: the tiles of its reports, and bytes of its selection's `data` for the
 * shape of a launch. An error if the spec has no such branch. */
LACUNA_API lacuna_status lacuna_branch_tile(const lacuna_kernel* kernel, const char* branch,
                                            int32_t* tile_q, int32_t* tile_k);
LACUNA_API lacuna_status lacuna_branch_selection_bytes(const lacuna_kernel* kernel,
                                                       const char* branch,
                                                       const lacuna_shape* shape, size_t* bytes);

typedef struct lacuna_launch_args {
  size_t struct_size;
  const DLTensor *q, *k, *v, *o; /* v: NULL, or the first elements of each row of k, where the spec
                                    says "v": "k" */
  const DLTensor* lse;           /* optional: f32 [batch, heads, n_q], natural log, or that
                                    of base 2 if the spec says so; none of branches with weights */
  const DLTensor* counts; /* optional: i32 [batch, heads, q_tiles, 3]: visible, visited, gated;
                             of specs with branches none: lacuna_branch_args has those of each */
  const DLTensor*
      tile_mask; /* optional: u8 [batch, heads, q_tiles, k_tiles]: 0 no, 1 visited, 2 gated */
  const DLTensor*
      list_indices; /* specs with "mask": "external": i32 [batch, heads, q_tiles, capacity],
                       ascending tile indices; bit 31: the tile needs the mask */
  const DLTensor* list_counts; /* i32 [batch, heads, q_tiles] */
  const lacuna_param* params;
  size_t params_count;
  void* workspace; /* device memory (CPU: host), 256-byte aligned, with any contents; launches that
                      follow each other may share it, not two at once. NULL if none is needed */
  size_t workspace_bytes; /* at least what lacuna_workspace_bytes says */
  void* stream;           /* CUstream; NULL: the legacy default stream (CU_STREAM_LEGACY) of the
                             device's context. The CPU runs before returning. */
  const DLTensor*
      previous_lse;            /* specs with "normalise": "previous_lse": f32 [batch, heads, n_q] */
  const DLTensor* order;       /* specs with permute: i32 [n_q]; n_q = n_k. Of sequences
                                  [tokens], as q: places within each sequence */
  lacuna_selection* selection; /* optional; without it every launch decides anew */
  void* const*
      stage_events; /* optional, GPU only: CUevents of the caller's, recorded on `stream`: one
                       before everything else, then one after each kernel, also after one that this
                       launch leaves out. Captured into a graph they time nothing */
  size_t stage_events_count;         /* kernels ("stages" of lacuna_kernel_info_json) and 1 */
  const lacuna_sequences* sequences; /* of kernels compiled for LACUNA_BATCH_SEQUENCES or _PAGES */
  double softmax_scale; /* what dot products are multiplied with, a positive f32; 0: the spec's
                           attention.scale, else 1 / sqrt(head_dim). Estimates of a predictor take
                           it too: forget a selection that was decided with another one */
  const DLTensor *k_scale, *v_scale; /* of kernels compiled for k and v of e4m3; NULL: 1. f32
                                        [batch, heads_kv], with pages [pages, heads_kv], of
                                        sequences [1, heads_kv]; an extent of 1 stands for all */
  int64_t sm_margin; /* GPU only: multiprocessors that persistent kernels, those with at most a
                        block for each, leave to kernels of other streams; 0: none. Launches of a
                        group take 0: its options have a margin of their own */
  const lacuna_branch_args* const* branches; /* optional, of specs with branches: those that are to
                                                report or to keep something */
  size_t branches_count;
  /* Optional, of specs whose "signature" has summaries: what a predictor makes of the keys of a
   * tile (their mean, their bounds) stays from launch to launch, so that a query of many keys does
   * not wait for the read of all of them. On a GPU a launch makes the summaries of tiles that are
   * not whole in `summarised`, leaves them in k_summaries, and reads the others there: who appends
   * tokens passes the n_k of the launch before, who changes older keys passes less. Tiles of other
   * keys than summarised says are the caller's to avoid; so are two launches at once with the same
   * slot. On the CPU all summaries are made anew, and k_summaries is neither read nor written. */
  const DLTensor* k_summaries;   /* f32 [slots, heads_kv, summary_tiles, summary_elements], compact;
                                    lacuna_summaries_extents */
  const DLTensor* summary_slots; /* optional: i32 [batch], the slot of each entry or sequence, each
                                    another one; NULL: entry b has slot b */
  const DLTensor* summarised;    /* i32 [batch]: keys of each whose summaries are in its slot; read
                                    when the work runs, like n_k of lacuna_sequences */
} lacuna_launch_args;

/* Checks the arguments (all mismatches in one error) and enqueues the work. Never compiles, loads,
 * allocates device memory or synchronises; legal during stream capture. */
LACUNA_API lacuna_status lacuna_launch(lacuna_kernel* kernel, const lacuna_launch_args* args);

#ifdef __cplusplus
}
#endif

/* One problem on several GPUs. */
#include "lacuna/group.h"
#endif
