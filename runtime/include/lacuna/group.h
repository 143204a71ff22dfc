/* Groups of Lacuna's C ABI: one problem on several GPUs, a rank for each.
 *
 *   group  --compile-->  group kernel  --plan-->  plan  --launch-->  work on a stream
 *
 * The host starts the ranks: processes, or threads of one. Each makes its group and then calls the
 * same functions in the same order; those marked (all) wait for the others. What the ranks ask for
 * is compared: another spec, shape or layout is an error on each of them, and so is a rank that
 * died or did not come within timeout_s. After LACUNA_ERROR_ENVIRONMENT the group is lost. Handles
 * of one group are for one thread at a time, and outlive it in any order.
 *
 * Results are those of one GPU, bit for bit where the same tiles are computed: each row is computed
 * by one rank with all its keys, and nothing is merged. */
#ifndef LACUNA_GROUP_H_
#define LACUNA_GROUP_H_

#include "lacuna/lacuna.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A loopback: ranks that are threads of a process, with engines of the CPU. */
typedef struct lacuna_loopback lacuna_loopback;
typedef struct lacuna_group lacuna_group;
typedef struct lacuna_group_kernel lacuna_group_kernel;
typedef struct lacuna_group_plan lacuna_group_plan;

LACUNA_API lacuna_status lacuna_loopback_create(int32_t size, lacuna_loopback** loopback);
LACUNA_API void lacuna_loopback_destroy(lacuna_loopback* loopback);

#define LACUNA_UNIQUE_ID_BYTES 128
/* For one rank, which gives it to the others by means of the host's: ncclGetUniqueId. */
LACUNA_API lacuna_status lacuna_group_unique_id(lacuna_engine* engine, void* unique_id);

/* How ranks exchange. By copies where none asks for messages and each reaches the memory of every
 * other one, as GPUs of one host do; else by messages. */
typedef enum lacuna_exchange {
  LACUNA_EXCHANGE_AUTO = 0,     /* copies where they are possible, else messages */
  LACUNA_EXCHANGE_MESSAGES = 1, /* of NCCL's */
  LACUNA_EXCHANGE_COPIES = 2    /* by copy engines, into memory that ranks share */
} lacuna_exchange;

typedef struct lacuna_group_options {
  size_t struct_size;
  int32_t rank, size;        /* not with `communicator`, which knows */
  lacuna_loopback* loopback; /* one of these three */
  const void* unique_id;
  void* communicator; /* ncclComm_t of the host's, on the engine's device. It stays the host's; but
                         where a rank is lost it is aborted, and must not be used or destroyed */
  double timeout_s;   /* how long a rank waits for others, and for a stream; 0: 60 */
  double link_gb_s;   /* of the link between ranks; 0: measured (GPU), or known */
  double tflops;      /* of attention on a rank; 0: known for the target, or a guess */
  int32_t sm_margin;  /* GPU: multiprocessors that launches leave to messages that come under
                         them; 0: 16, -1: none */
  int32_t max_ctas; /* GPU: most blocks of NCCL's for messages, ncclConfig_t::maxCTAs; 0: 16, -1: as
                       NCCL decides. Not with `communicator`, whose are the host's */
  lacuna_exchange exchange; /* loopback: the same on all ranks */
} lacuna_group_options;

/* (all) Opens NCCL on the first call: LACUNA_NCCL_PATH, else where CUDA's libraries are. */
LACUNA_API lacuna_status lacuna_group_create(lacuna_engine* engine,
                                             const lacuna_group_options* options,
                                             lacuna_group** group);
/* Work in flight is given up: lacuna_group_synchronize first. */
LACUNA_API void lacuna_group_destroy(lacuna_group* group);

/* (all) As lacuna_compile and lacuna_prepare. Not for pages, external masks, permuted
 * tokens and previous_lse: an error says so. */
LACUNA_API lacuna_status lacuna_group_compile(lacuna_group* group, const char* spec_json,
                                              size_t bytes, const lacuna_compile_options* options,
                                              lacuna_group_kernel** kernel);
LACUNA_API void lacuna_group_kernel_destroy(lacuna_group_kernel* kernel);
LACUNA_API lacuna_status lacuna_group_kernel_tile(const lacuna_group_kernel* kernel,
                                                  int32_t* tile_q, int32_t* tile_k);

/* Which part of q, k, v and o a rank holds. Of n tokens on P ranks, rank r has */
typedef enum lacuna_layout {
  LACUNA_LAYOUT_CONTIGUOUS = 0, /* those from n * r / P to n * (r + 1) / P, rounded down */
  LACUNA_LAYOUT_STRIPED = 1,    /* stripes in ascending order, dealt 0 .. P-1, P-1 .. 0, 0 .. P-1 */
  LACUNA_LAYOUT_HEADS = 2       /* all, of KV heads heads_kv * r / P to heads_kv * (r + 1) / P */
} lacuna_layout;

/* How work is dealt. All of it has all keys of its heads. */
typedef enum lacuna_scheme {
  LACUNA_SCHEME_AUTO = 0,   /* the one that takes the least time by the group's rates */
  LACUNA_SCHEME_GATHER = 1, /* K and V to all; each rank computes the queries it holds */
  LACUNA_SCHEME_ROWS = 2,   /* K and V to all; queries cut where the work is equal */
  LACUNA_SCHEME_HEADS = 3   /* heads one behind the other, cut where the work is equal */
} lacuna_scheme;

typedef struct lacuna_group_problem {
  size_t struct_size;
  const lacuna_shape* shape; /* of the whole */
  lacuna_layout layout;
  int32_t stripe; /* tokens of a stripe, where striped */
  lacuna_scheme scheme;
  int32_t lse;     /* 1: launches pass an lse, on all ranks */
  int32_t strided; /* 1: the stride over tokens of q, k, v or o is not head_dim: rows are packed */
  const float* work; /* optional: [heads, q_tiles] numbers of tiles, by which work is equal, the
                        same on all ranks: counts of an earlier call. NULL: what the mask leaves */
  size_t work_count; /* heads * q_tiles, those of the whole */
  /* Of kernels compiled for LACUNA_BATCH_SEQUENCES: how many there are, and the most queries and
   * keys that one of them may have, as in lacuna_sequences; shape.batch is 1, shape.n_q and
   * shape.n_k are the rows of q and k in the whole. Heads stay whole. Else 0. */
  int32_t sequences, max_n_q, max_n_k;
} lacuna_group_problem;

/* (all) Where ranks copy, a plan has device memory of its own, which they share: no part of the
 * workspace. To destroy it waits for launches, up to timeout_s. */
LACUNA_API lacuna_status lacuna_group_plan_create(lacuna_group_kernel* kernel,
                                                  const lacuna_group_problem* problem,
                                                  lacuna_group_plan** plan);
LACUNA_API void lacuna_group_plan_destroy(lacuna_group_plan* plan);
/* {ranks, rank, layout, scheme, because, exchange, link: {gb_per_s, origin},
 *  kernel: {tflops, origin}, one_gpu_us, efficiency, schemes: [{scheme, possible, reason}, or
 *  {scheme, possible, sent_bytes: [..], sent_bytes_total, least_bytes_total, pairs: [..],
 *  imbalance, launches, chunks, exchange_us, compute_us, total_us}], shared_bytes, events: [..]};
 *  lists are of each rank. total_us is less than exchange_us and compute_us together where the
 *  exchange has chunks, which come under attention. shared_bytes: the plan's memory on this rank,
 *  where ranks copy. Valid while the plan lives. */
LACUNA_API const char* lacuna_group_plan_json(const lacuna_group_plan* plan);
/* Extents of this rank's tensors; of sequences n_q and n_k are their rows. */
LACUNA_API lacuna_status lacuna_group_plan_shape(const lacuna_group_plan* plan,
                                                 lacuna_shape* shape);
LACUNA_API lacuna_status lacuna_group_plan_workspace_bytes(const lacuna_group_plan* plan,
                                                           size_t* bytes);

/* (all) q, k, v, o and lse are this rank's; parameters are those of the whole problem, the same on
 * all ranks. counts are of the whole problem, too: a rank writes those of its tiles and leaves the
 * others, so that the sum over ranks of what was zero is that of one GPU; the visited ones can be
 * `work` of a later plan. No tile_mask or selection. stage_events: those of "events" in the plan's
 * JSON, in its order (GPU only). sequences: those of the whole, the same on all ranks; then
 * counts are refused. Enqueues on `stream`, and on streams
 * of the group's that it waits for, without waiting itself, except where NCCL connects; refused
 * during stream capture. An error on one rank loses the group: the others learn it at once
 * (loopback) or when their time is up. */
LACUNA_API lacuna_status lacuna_group_launch(lacuna_group_plan* plan,
                                             const lacuna_launch_args* args);
/* Waits until `stream` has run. Use it in place of cuStreamSynchronize: where a rank is lost, this
 * one ends with an error after timeout_s and takes NCCL's kernels off the stream. */
LACUNA_API lacuna_status lacuna_group_synchronize(lacuna_group* group, void* stream);

#ifdef __cplusplus
}
#endif
#endif
