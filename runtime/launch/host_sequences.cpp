#include "runtime/launch/host_sequences.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/whole_tiles.hpp"
#include "runtime/launch/argument_block.hpp"
#include "runtime/launch/host_codes.hpp"
#include "runtime/launch/param_promises.hpp"

namespace lacuna {
namespace {

using enum TensorRole;

/// Rows and lengths of one sequence.
struct Sequence {
  std::int32_t index = 0;
  std::int32_t q_begin = 0, n_q = 0;
  std::int32_t k_begin = 0, n_k = 0;  ///< with pages k_begin means nothing
};

const std::int32_t* numbers_of(const BoundLaunch& bound, TensorRole role) {
  return static_cast<const std::int32_t*>(bound[role].data);
}

const std::int32_t* pages_of(const BoundLaunch& bound, std::int32_t sequence) {
  return numbers_of(bound, kPages) + sequence * bound[kPages].stride[0];
}

std::vector<Sequence> sequences_of(const BoundLaunch& bound, bool has_pages) {
  std::vector<Sequence> sequences(static_cast<std::size_t>(bound.shape.n_b));
  const std::int32_t* q_begin = numbers_of(bound, kQBegin);
  for (std::int32_t b = 0; b < bound.shape.n_b; ++b) {
    Sequence& sequence = sequences[static_cast<std::size_t>(b)];
    sequence.index = b;
    sequence.q_begin = q_begin[b];
    // Wraps where starts are nonsense, which the checks find.
    sequence.n_q = static_cast<std::int32_t>(static_cast<std::uint32_t>(q_begin[b + 1]) -
                                             static_cast<std::uint32_t>(q_begin[b]));
    sequence.n_k = numbers_of(bound, kLengths)[b];
    if (!has_pages) sequence.k_begin = numbers_of(bound, kKBegin)[b];
  }
  return sequences;
}

/// The contents of the tensors of a batch, which only the CPU can look at before it runs.
class ContentsCheck {
 public:
  ContentsCheck(const LaunchContract& contract, const BoundLaunch& bound, Diagnostics& diagnostics)
      : contract_(contract), bound_(bound), diagnostics_(diagnostics) {}

  bool check(const std::vector<Sequence>& sequences) {
    for (const Sequence& sequence : sequences) {
      if (complete_) check_one(sequence);  // one error says enough about a table
    }
    return complete_;
  }

 private:
  void check_one(const Sequence& s) {
    const std::int64_t q_rows = bound_[kQ].extent[2], k_rows = bound_[kK].extent[2];
    const std::string number = "[" + std::to_string(s.index) + "]";
    const std::int64_t q_end = numbers_of(bound_, kQBegin)[s.index + 1];
    if (s.q_begin < 0 || q_end < s.q_begin || q_end > q_rows) {
      return refuse("q_begin", "expected rows 0 to " + std::to_string(q_rows) +
                                   " in ascending order, got " + std::to_string(s.q_begin) +
                                   " and " + std::to_string(q_end) + " from " + number + " on");
    }
    if (s.n_q > bound_.shape.n_q) {
      return refuse("q_begin", "expected at most max_n_q = " + std::to_string(bound_.shape.n_q) +
                                   " queries in sequence " + std::to_string(s.index) + ", got " +
                                   std::to_string(s.n_q));
    }
    if (s.n_k < 0 || s.n_k > bound_.shape.n_k) {
      return refuse("n_k" + number, "expected 0 to max_n_k = " + std::to_string(bound_.shape.n_k) +
                                        ", got " + std::to_string(s.n_k));
    }
    if (contract_.takes_order && s.n_k != s.n_q) {
      return refuse("n_k" + number,
                    "expected " + std::to_string(s.n_q) +
                        " (its queries: queries and keys are permuted alike), got " +
                        std::to_string(s.n_k));
    }
    check_promises(s);
    if (contract_.batch == BatchLayout::kPages) return check_pages(s);
    if (s.k_begin < 0 || s.k_begin > k_rows - s.n_k) {
      refuse("k_begin" + number, "expected 0 to " + std::to_string(k_rows - s.n_k) + " for " +
                                     std::to_string(s.n_k) + " keys of " + std::to_string(k_rows) +
                                     ", got " + std::to_string(s.k_begin));
    }
  }

  /// What a dimension of a parameter has for a sequence: others are as long as they are.
  std::int32_t extent_of(ParamAxis axis, const Sequence& s) const {
    switch (axis) {
      case ParamAxis::kNQ:
        return s.n_q;
      case ParamAxis::kNK:
        return s.n_k;
      case ParamAxis::kQTiles:
        return ceil_div(s.n_q, contract_.tile_q);
      case ParamAxis::kKTiles:
        return ceil_div(s.n_k, contract_.tile_k);
      default:
        return std::numeric_limits<std::int32_t>::max();
    }
  }

  /// What parameters promise, along the tokens of the sequence: what is behind its last one is not
  /// read.
  void check_promises(const Sequence& s) {
    for (std::size_t p = 0; p < contract_.params.size(); ++p) {
      const ParamSymbol& symbol = contract_.params[p].symbol;
      if (symbol.shape.empty()) continue;
      ParamView view = bound_.params[p];
      for (std::size_t d = 0; d < symbol.shape.size(); ++d)
        view.extent[d] = std::min(view.extent[d], extent_of(symbol.shape[d].axis, s));
      if (symbol.shape[0].axis == ParamAxis::kBatch && view.extent[0] > 1) {
        constexpr std::int64_t kElementBytes = 4;
        view.data =
            static_cast<const unsigned char*>(view.data) + s.index * view.stride[0] * kElementBytes;
        view.extent[0] = 1;
      }
      if (const auto broken = broken_promise(contract_.params[p], view)) {
        complete_ = false;
        diagnostics_.add({.code = Code::kParamArgument,
                          .message = "kernel " + contract_.kernel + ", parameter " + symbol.name +
                                     ": of sequence " + std::to_string(s.index) + ": " + *broken});
      }
    }
  }

  void check_pages(const Sequence& s) {
    const BoundTensor& k = bound_[kK];
    const auto count = ceil_div<std::int64_t>(s.n_k, k.extent[2]);
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int32_t page = pages_of(bound_, s.index)[n];
      if (page >= 0 && page < k.extent[0]) continue;
      return refuse(
          "pages[" + std::to_string(s.index) + ", " + std::to_string(n) + "]",
          "expected a page below " + std::to_string(k.extent[0]) + ", got " + std::to_string(page));
    }
  }

  void refuse(const std::string& subject, const std::string& text) {
    complete_ = false;
    Diagnostic d;
    d.code = Code::kTensorArgument;
    d.message = "kernel " + contract_.kernel + ", argument sequences." + subject + ": " + text;
    diagnostics_.add(std::move(d));
  }

  const LaunchContract& contract_;
  const BoundLaunch& bound_;
  Diagnostics& diagnostics_;
  bool complete_ = true;
};

void advance(BoundTensor& tensor, int dimension, std::int64_t count, std::int64_t bytes) {
  if (tensor.data == nullptr) return;
  tensor.data = static_cast<unsigned char*>(tensor.data) + count * tensor.stride[dimension] * bytes;
}

/// The rows of a sequence out of their pages, [heads_kv, n_k, head_dim], contiguous in `memory`, of
/// the contract's dtype; returns what takes the place of the paged tensor.
BoundTensor gather_pages(const LaunchContract& contract, const BoundLaunch& bound, TensorRole role,
                         const Sequence& sequence, std::vector<unsigned char>& memory) {
  const bool is_coded = contract.kv == KvFormat::kE4M3;
  const BoundTensor& scales = bound[role == kK ? kKScale : kVScale];
  const std::int64_t element_bytes = number_bytes(contract.dtype);
  const BoundTensor& paged = bound[role];
  const std::int64_t heads = paged.extent[1], page_tokens = paged.extent[2];
  const std::int64_t head_dim = paged.extent[3];
  const auto row_bytes = static_cast<std::size_t>(head_dim * element_bytes);
  memory.resize(static_cast<std::size_t>(heads * sequence.n_k) * row_bytes + 1);  // never null
  const std::int32_t* pages = pages_of(bound, sequence.index);
  unsigned char* target = memory.data();
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t n = 0; n < sequence.n_k; ++n, target += row_bytes) {
      const std::int64_t page = pages[n / page_tokens];
      const std::int64_t offset =
          page * paged.stride[0] + h * paged.stride[1] + n % page_tokens * paged.stride[2];
      const auto* data = static_cast<const unsigned char*>(paged.data);
      if (is_coded) {
        write_numbers(data + offset, head_dim, scale_at(scales, page, h), contract.dtype, target);
      } else {
        std::memcpy(target, data + offset * element_bytes, row_bytes);
      }
    }
  }
  BoundTensor rows = paged;
  rows.data = memory.data();
  rows.stride[2] = head_dim;
  rows.stride[1] = sequence.n_k * head_dim;
  rows.stride[0] = heads * rows.stride[1];
  return rows;
}

/// What lies in rows of the sequence, or is reported of it.
void move_to(const Sequence& sequence, std::int64_t element_bytes, BoundLaunch& own) {
  const auto tensor = [&](TensorRole role) -> BoundTensor& {
    return own.tensors[static_cast<std::size_t>(role)];
  };
  for (const TensorRole role : {kQ, kO}) advance(tensor(role), 2, sequence.q_begin, element_bytes);
  for (const TensorRole role : {kLse, kPreviousLse})
    advance(tensor(role), 2, sequence.q_begin, sizeof(float));
  advance(tensor(kOrder), 0, sequence.q_begin, sizeof(std::int32_t));
  for (const TensorRole role : {kCounts, kListIndices, kListCounts})
    advance(tensor(role), 0, sequence.index, sizeof(std::int32_t));
  advance(tensor(kTileMask), 0, sequence.index, 1);
}

/// Keys and values of one sequence after the other, as numbers of the contract's type.
class SequenceKeys {
 public:
  SequenceKeys(const KernelState& kernel, const BoundLaunch& bound)
      : contract_(kernel.lowered().contract),
        bound_(bound),
        threads_(kernel.threads, kernel.engine->threads.lender()) {}

  /// Where those of the sequence lie until the next one is asked for.
  void take(const Sequence& sequence, BoundLaunch& own) {
    own.tensors[static_cast<std::size_t>(kK)] = rows_of(kK, sequence, keys_);
    own.tensors[static_cast<std::size_t>(kV)] = rows_of(kV, sequence, values_);
  }

 private:
  BoundTensor rows_of(TensorRole role, const Sequence& sequence,
                      std::vector<unsigned char>& memory) const {
    if (contract_.batch == BatchLayout::kPages)
      return gather_pages(contract_, bound_, role, sequence, memory);
    const bool is_coded = contract_.kv == KvFormat::kE4M3;
    BoundTensor rows = bound_[role];
    advance(rows, 2, sequence.k_begin, is_coded ? 1 : number_bytes(contract_.dtype));
    if (!is_coded) return rows;
    return numbers_of_codes(rows, bound_[role == kK ? kKScale : kVScale], 1, sequence.n_k,
                            contract_.dtype, threads_, memory);
  }

  const LaunchContract& contract_;
  const BoundLaunch& bound_;
  Threads threads_;
  std::vector<unsigned char> keys_, values_;
};

/// Reports have rows and tiles for the longest sequence.
void clear_reports(const BoundLaunch& bound) {
  for (const TensorRole role : {kCounts, kTileMask}) {
    const ClearedReport report = cleared_report(bound, role);
    if (report.data != nullptr) std::memset(report.data, 0, report.bytes);
  }
}

/// A sequence's part of kept bits, which has room for the longest.
KeptBits part_of(const KeptBits& kept, const KernelState& kernel, LaunchShape shape,
                 const Sequence& sequence) {
  if (kept.data == nullptr) return kept;
  shape.n_b = 1;
  const std::size_t words = host_mask_bytes(kernel, shape) / sizeof(std::uint32_t);
  return {kept.data + static_cast<std::size_t>(sequence.index) * words, kept.decided};
}

/// Calls run(sequence, launch of it alone) for each sequence that has work, until one returns
/// false.
template <class Run>
bool run_each(const KernelState& kernel, const BoundLaunch& bound, Diagnostics& diagnostics,
              Run run) {
  const LaunchContract& contract = kernel.lowered().contract;
  const std::vector<Sequence> sequences =
      sequences_of(bound, contract.batch == BatchLayout::kPages);
  if (!ContentsCheck(contract, bound, diagnostics).check(sequences)) return false;
  SequenceKeys keys(kernel, bound);
  for (const Sequence& sequence : sequences) {
    BoundLaunch own = bound;
    own.shape.n_b = 1;
    own.shape.n_q = sequence.n_q;
    own.shape.n_k = sequence.n_k;
    if (own.empty()) continue;
    move_to(sequence, number_bytes(contract.dtype), own);
    take_order(kernel.lowered().plan.program, own);
    keys.take(sequence, own);
    if (!run(sequence, own)) return false;
  }
  return true;
}

}  // namespace

bool run_sequences_on_host(const KernelState& kernel, const BoundLaunch& bound,
                           const KeptBits& kept, Diagnostics& diagnostics) {
  clear_reports(bound);
  return run_each(kernel, bound, diagnostics, [&](const Sequence& sequence, BoundLaunch& own) {
    return run_on_host(kernel, own, part_of(kept, kernel, bound.shape, sequence), sequence.index,
                       diagnostics);
  });
}

bool run_branches_of_sequences_on_host(const KernelState& kernel, const BoundLaunch& bound,
                                       const BranchLaunches& launches, Diagnostics& diagnostics) {
  const std::size_t count = kernel.branches.size();
  const DType dtype = kernel.lowered().contract.dtype;
  for (std::size_t n = 0; n < count; ++n) clear_reports(launches[n].bound);
  return run_each(kernel, bound, diagnostics, [&](const Sequence& sequence, BoundLaunch& whole) {
    BranchLaunches own;
    for (std::size_t n = 0; n < count; ++n) {
      const LoweredKernel& lowered = kernel.branches[n]->lowered();
      BoundLaunch branch = bind_branch(kernel.branches[n]->document.spec, lowered.contract,
                                       lowered.plan.program, KvFormat::kSame, whole);
      BoundLaunch reports = launches[n].bound;
      move_to(sequence, number_bytes(dtype), reports);
      for (const TensorRole role : {kCounts, kTileMask})
        branch.tensors[static_cast<std::size_t>(role)] = reports[role];
      own[n].bound = branch;
      own[n].kept =
          part_of(launches[n].kept, *kernel.branches[n], launches[n].bound.shape, sequence);
    }
    return run_branches_on_host(kernel, whole.shape, own, sequence.index, diagnostics);
  });
}

}  // namespace lacuna
