#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

struct TileScratch {
  std::vector<float> row;
  std::vector<double> sum;
};

/// visit(head, tile, first token, end token, scratch) for every tile of x.
template <class Visit>
void for_each_tile(const Array& x, int tile, const Threads& threads, Visit visit) {
  const int tiles = ceil_div(x.tokens(), tile);
  const std::int64_t items = x.head_count() * tiles;
  const std::size_t workers = worker_count(threads, items);
  const auto d = static_cast<std::size_t>(x.width());
  std::vector<TileScratch> scratch(workers, {std::vector<float>(d), std::vector<double>(d)});
  parallel_for(threads, workers, items, [&](std::int64_t item, std::size_t worker) {
    const int t = static_cast<int>(item % tiles);
    scratch[worker].sum.assign(d, 0.0);
    visit(head_at(x, item / tiles), t, t * tile, std::min((t + 1) * tile, x.tokens()),
          scratch[worker]);
  });
}

const float* mean_of(const Array* mean, HeadIndex head) {
  return mean ? at<float>(*mean, head, 0) : nullptr;
}

double squared_length(const auto& values) {
  double sum = 0;
  for (const auto value : values) sum += double{value} * double{value};
  return sum;
}

}  // namespace

Array summarise(const Array& x, const Array* mean, int tile, const Threads& threads) {
  Array result =
      make_array(Element::kF32, x.batches(), x.heads(), ceil_div(x.tokens(), tile), x.width());
  for_each_tile(x, tile, threads,
                [&](HeadIndex head, int t, int begin, int end, TileScratch& scratch) {
                  for (int n = begin; n < end; ++n) {
                    load_centred(x, mean_of(mean, head), head, n, scratch.row.data());
                    for (std::size_t c = 0; c < scratch.row.size(); ++c) {
                      scratch.sum[c] += double{finite_or_zero(scratch.row[c])};
                    }
                  }
                  float* to = at<float>(result, head, t);
                  for (const double sum : scratch.sum) {
                    *to++ = static_cast<float>(sum / (end - begin));
                  }
                });
  return result;
}

Array bound(const Array& x, int tile, const Threads& threads) {
  const int d = x.width();
  Array result =
      make_array(Element::kF32, x.batches(), x.heads(), ceil_div(x.tokens(), tile), 2 * d);
  for_each_tile(x, tile, threads,
                [&](HeadIndex head, int t, int begin, int end, TileScratch& scratch) {
                  float* const smallest = at<float>(result, head, t);
                  float* const largest = smallest + d;
                  for (int n = begin; n < end; ++n) {
                    load_row(x, head, n, scratch.row.data());
                    for (int c = 0; c < d; ++c) {
                      const float value = finite_or_zero(scratch.row[static_cast<std::size_t>(c)]);
                      smallest[c] = n == begin ? value : std::min(smallest[c], value);
                      largest[c] = n == begin ? value : std::max(largest[c], value);
                    }
                  }
                });
  return result;
}

Array similarity(const Array& x, const Array* mean, int tile, SimilarityForm form,
                 const Threads& threads) {
  Array result = make_array(Element::kF32, x.batches(), x.heads(), ceil_div(x.tokens(), tile));
  for_each_tile(
      x, tile, threads, [&](HeadIndex head, int t, int begin, int end, TileScratch& scratch) {
        int count = 0;
        double longest = 0;
        for (int n = begin; n < end; ++n) {
          load_centred(x, mean_of(mean, head), head, n, scratch.row.data());
          const double square = squared_length(scratch.row);
          if (!(square > 0) || std::isinf(square)) continue;  // the token has no direction
          ++count;
          longest = std::max(longest, square);
          const double weight = form == SimilarityForm::kCosine ? 1 / std::sqrt(square) : 1.0;
          for (std::size_t c = 0; c < scratch.row.size(); ++c) {
            scratch.sum[c] += weight * double{scratch.row[c]};
          }
        }
        // The mean of a Gram matrix is the squared length of the mean row; its largest magnitude
        // stands on the diagonal.
        const double unit = form == SimilarityForm::kCosine ? 1.0 : longest;
        *at<float>(result, head, t) =
            count == 0 ? -std::numeric_limits<float>::infinity()
                       : static_cast<float>(squared_length(scratch.sum) /
                                            (double(count) * double(count) * unit));
      });
  return result;
}

}  // namespace lacuna::predict
