#include "tests/oracle/order.hpp"

#include <cstdlib>
#include <cstring>

#include "tests/oracle/access.hpp"

namespace lacuna::oracle {
namespace {

std::vector<double> gather(const std::vector<double>& x, int heads, int d,
                           const std::vector<std::int32_t>& order) {
  const auto width = static_cast<std::ptrdiff_t>(d);
  const auto tokens = static_cast<std::ptrdiff_t>(order.size());
  std::vector<double> out;
  out.reserve(x.size());
  for (std::ptrdiff_t head = 0; head < heads; ++head)
    for (const std::int32_t from : order) {
      const auto begin = x.begin() + (head * tokens + from) * width;
      out.insert(out.end(), begin, begin + width);
    }
  return out;
}

}  // namespace

Problem permuted_problem(const Problem& p, const std::vector<std::int32_t>& order) {
  Problem out = p;
  out.q = gather(p.q, p.n_b * p.n_h, p.d, order);
  out.k = gather(p.k, p.n_b * p.n_h_kv, p.d, order);
  out.v = gather(p.v, p.n_b * p.n_h_kv, p.value_dim(), order);
  // Formulas of tokens mean the caller's.
  const auto token = [order](int n) { return order[static_cast<std::size_t>(n)]; };
  if (p.mask)
    out.mask = [=](int q, int k, int h, int b) { return p.mask(token(q), token(k), h, b); };
  if (p.score)
    out.score = [=](double s, int q, int k, int h, int b) {
      return p.score(s, token(q), token(k), h, b);
    };
  if (p.wavers)
    out.wavers = [=](double s, int q, int k, int h, int b) {
      return p.wavers(s, token(q), token(k), h, b);
    };
  if (p.sink) out.sink = [=](int q, int h, int b) { return p.sink(token(q), h, b); };
  return out;
}

Output restored_output(const Problem& p, const Output& output,
                       const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> inverse(order.size());
  for (std::size_t n = 0; n < order.size(); ++n)
    inverse[static_cast<std::size_t>(order[n])] = static_cast<std::int32_t>(n);
  const int heads = p.n_b * p.n_h;
  return {gather(output.o, heads, p.value_dim(), inverse), gather(output.lse, heads, 1, inverse),
          gather(output.row_margin, heads, 1, inverse),
          gather(output.reach, heads, p.value_dim(), inverse)};
}

bool is_permutation(const std::vector<std::int32_t>& order) {
  std::vector<bool> seen(order.size(), false);
  for (const std::int32_t x : order) {
    if (x < 0 || static_cast<std::size_t>(x) >= order.size()) return false;
    if (seen[static_cast<std::size_t>(x)]) return false;
    seen[static_cast<std::size_t>(x)] = true;
  }
  return true;
}

std::vector<std::int32_t> loop_order(int t, int h, int w, const char* loops) {
  const int size[3] = {t, h, w};
  static constexpr char kAxes[] = "thw";
  int axis[3];
  for (int x = 0; x < 3; ++x) axis[x] = static_cast<int>(std::strchr(kAxes, loops[x]) - kAxes);
  std::vector<std::int32_t> order;
  int at[3];
  for (at[axis[0]] = 0; at[axis[0]] < size[axis[0]]; ++at[axis[0]])
    for (at[axis[1]] = 0; at[axis[1]] < size[axis[1]]; ++at[axis[1]])
      for (at[axis[2]] = 0; at[axis[2]] < size[axis[2]]; ++at[axis[2]])
        order.push_back((at[0] * h + at[1]) * w + at[2]);
  return order;
}

double mean_step(const std::vector<std::int32_t>& order, int h, int w) {
  if (order.size() < 2) return 0;
  double sum = 0;
  for (std::size_t n = 1; n < order.size(); ++n) {
    const int a = order[n - 1], b = order[n];
    sum += std::abs(a / (h * w) - b / (h * w)) + std::abs(a / w % h - b / w % h) +
           std::abs(a % w - b % w);
  }
  return sum / static_cast<double>(order.size() - 1);
}

}  // namespace lacuna::oracle
