#include <vector>

#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {

Array token_mean(const Array& x, const Threads& threads) {
  Array mean = make_array(Element::kF32, x.batches(), x.heads(), x.width());
  const auto d = static_cast<std::size_t>(x.width());
  const std::size_t workers = worker_count(threads, x.head_count());
  struct Scratch {
    std::vector<float> row;
    std::vector<double> sum;
  };
  std::vector<Scratch> scratch(workers, {std::vector<float>(d), std::vector<double>(d)});
  parallel_for(threads, workers, x.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(x, item);
    auto& [row, sum] = scratch[worker];
    sum.assign(d, 0.0);
    for (int n = 0; n < x.tokens(); ++n) {
      load_row(x, head, n, row.data());
      for (std::size_t c = 0; c < d; ++c) sum[c] += double{finite_or_zero(row[c])};
    }
    float* to = at<float>(mean, head, 0);
    for (std::size_t c = 0; c < d; ++c) {
      to[c] = x.tokens() == 0 ? 0.0F : static_cast<float>(sum[c] / x.tokens());
    }
  });
  return mean;
}

Array project(const Array& x, const Array* mean, const Array& onto, int n_h,
              const Threads& threads) {
  Array result = make_array(Element::kF32, x.batches(), n_h, x.tokens());
  const auto d = static_cast<std::size_t>(x.width());
  const std::size_t workers = worker_count(threads, result.head_count());
  std::vector<std::vector<float>> rows(workers, std::vector<float>(d));
  parallel_for(threads, workers, result.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(result, item);
    const HeadIndex x_head = head_of(x, head, n_h);
    const float* centre = mean ? at<float>(*mean, head_of(*mean, head, n_h), 0) : nullptr;
    const float* direction = at<float>(onto, head_of(onto, head, n_h), 0);
    std::vector<float>& row = rows[worker];
    for (int n = 0; n < x.tokens(); ++n) {
      load_centred(x, centre, x_head, n, row.data());
      double sum = 0;
      for (std::size_t c = 0; c < d; ++c) sum += double{row[c]} * double{direction[c]};
      *at<float>(result, head, n) = static_cast<float>(sum);
    }
  });
  return result;
}

}  // namespace lacuna::predict
